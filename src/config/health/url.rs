//! The address of an endpoint.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};
use url::Url;

/// Longest address, in bytes.
const URL_BYTES: usize = 2_000;

/// Why a text is no address of an endpoint. The text is not repeated: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthUrlError {
    /// Not a URL.
    #[error("this is not a URL ({0}); write it in full, as in https://example.com/health")]
    Form(String),
    /// Neither http nor https, or no host.
    #[error("an endpoint is asked by http or https; write it as in https://example.com/health")]
    Scheme,
    /// Name or password in the URL.
    #[error("the URL holds a user name or password; remove it")]
    Credentials,
    /// A fragment.
    #[error("the URL holds a fragment, which is never sent; remove what starts with #")]
    Fragment,
    /// Longer than any address.
    #[error("the URL is longer than {URL_BYTES} bytes")]
    Long,
}

/// An http or https address without credentials. Shows without its query, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct HealthUrl(Url);

impl HealthUrl {
    /// The whole address, for the request.
    pub const fn url(&self) -> &Url {
        &self.0
    }

    /// The address without its query, for a link.
    pub fn without_query(&self) -> &str {
        let whole = self.0.as_str();
        whole.split_once('?').map_or(whole, |(address, _)| address)
    }
}

impl FromStr for HealthUrl {
    type Err = HealthUrlError;

    fn from_str(text: &str) -> Result<Self, HealthUrlError> {
        if text.len() > URL_BYTES {
            return Err(HealthUrlError::Long);
        }
        let url = Url::parse(text).map_err(|error| HealthUrlError::Form(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(HealthUrlError::Scheme);
        }
        // Break it: leave this out; a password then stands in the draft, in logs and in messages.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HealthUrlError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(HealthUrlError::Fragment);
        }
        Ok(Self(url))
    }
}

impl fmt::Display for HealthUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = if self.0.query().is_some() { "?…" } else { "" };
        write!(f, "{}{query}", self.without_query())
    }
}

impl fmt::Debug for HealthUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for HealthUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for HealthUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
