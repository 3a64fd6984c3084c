//! Which repository an address names.

use url::Url;

use crate::config::ServiceUrl;
use crate::connector::github::is_name;

/// A repository at the configured provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Its owner.
    pub owner: String,
    /// Its name.
    pub name: String,
}

/// Why an address names no repository. A credential in the address is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryAddressError {
    /// Not a URL, or one that carries more than an address.
    #[error("reading the repository's address: {reason}; write it as in {web_url}/OWNER/NAME")]
    Form {
        /// What is wrong.
        reason: &'static str,
        /// The configured provider.
        web_url: String,
    },
    /// Another host than the configured one.
    #[error(
        "reading the repository's address: it is at {found}, but the configured provider is {web_url}; set github.web_url (and api_url) to that host, or register a repository of the configured one"
    )]
    Elsewhere {
        /// Scheme, host and port of the address.
        found: String,
        /// The configured provider.
        web_url: String,
    },
}

impl Repository {
    /// Reads `https://HOST/OWNER/NAME`, with or without `.git` or a slash at its end. `web_url` is the configured base of
    /// pages: the repository must be there, since its credential goes there and nowhere else.
    ///
    /// # Errors
    /// Any other form, another host, or anything beside owner and name.
    pub fn parse(text: &str, web_url: &ServiceUrl) -> Result<Self, RepositoryAddressError> {
        let refuse = |reason| RepositoryAddressError::Form {
            reason,
            web_url: web_url.to_string(),
        };
        let url = Url::parse(text).map_err(|_| refuse("it is not a complete URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it carries a user name or password"));
        }
        // Break it: skip this comparison; the token then goes to the configured provider for another host's repository
        // (`onboard::addresses_name_a_repository_of_the_configured_provider_or_nothing`).
        if url.origin() != web_url.url().origin() || !url.origin().is_tuple() {
            return Err(RepositoryAddressError::Elsewhere {
                found: url.origin().ascii_serialization(),
                web_url: web_url.to_string(),
            });
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it has a query or a fragment"));
        }
        let base = web_url.url().path().trim_end_matches('/');
        let rest = url
            .path()
            .strip_prefix(base)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or_else(|| refuse("it is not below the configured provider's address"))?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let rest = rest.strip_suffix(".git").unwrap_or(rest);
        let (owner, name) = rest
            .split_once('/')
            .ok_or_else(|| refuse("it has no owner and name"))?;
        if !is_name(owner) || !is_name(name) {
            return Err(refuse(
                "owner and name have letters, digits, `-`, `_` and `.` only",
            ));
        }
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
        })
    }

    /// `OWNER/NAME`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}
