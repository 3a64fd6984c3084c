//! Where the provider is, which repository is meant, and with which credential: checked once, before any call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::credential::TokenSource;
use crate::https::is_loopback;

/// What a [`super::GithubConnector`] is made from. The three bases are separate because enterprise servers put them in
/// different places; none is derived from another.
#[derive(Clone)]
pub struct GithubOptions {
    /// Base of the REST interface, e.g. `https://api.github.com` or `https://HOST/api/v3`. Plain `http` only for loopback.
    pub api_url: String,
    /// Base of the pages for people, e.g. `https://github.com`.
    pub web_url: String,
    /// Base under which git finds `OWNER/NAME.git`; `https`, loopback `http` or `file`.
    pub git_url: String,
    /// Owner of the repository.
    pub owner: String,
    /// Name of the repository.
    pub name: String,
    /// Where tokens come from. They are sent to `api_url` only and handed out for `git_url`.
    pub credential: Arc<dyn TokenSource>,
    /// The repository's number as registered; without it no redirect is ever followed.
    pub expected_repository_id: Option<String>,
    /// How long one call may take, its whole answer and every repetition included.
    pub deadline: Duration,
}

/// Shows everything; of the credential only which one it is.
impl fmt::Debug for GithubOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GithubOptions")
            .field("api_url", &self.api_url)
            .field("web_url", &self.web_url)
            .field("git_url", &self.git_url)
            .field("owner", &self.owner)
            .field("name", &self.name)
            .field("credential", &self.credential.identity())
            .field("expected_repository_id", &self.expected_repository_id)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// Why no connector can be made from some options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GithubSetupError {
    /// A base address that cannot be used.
    #[error("setting up the GitHub connector: {which} {address:?} {reason}")]
    Address {
        /// Which of the three bases.
        which: &'static str,
        /// The address, without any credential in it.
        address: String,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// An owner or a name that cannot be one.
    #[error(
        "setting up the GitHub connector: {which} {found:?} must have 1 to 100 letters, digits, `-`, `_` or `.`, and not be `.` or `..`"
    )]
    Name {
        /// `owner` or `name`.
        which: &'static str,
        /// What was given.
        found: String,
    },
    /// A credential that cannot be sent.
    #[error(
        "setting up the GitHub connector: the token is empty or has spaces, line ends or other characters that a header cannot carry; set its variable to the token alone"
    )]
    Token,
    /// The text of an installation that names none.
    #[error(
        "setting up the GitHub connector: the stored credential names no installation of an App; replace it with `caretaker project credential`"
    )]
    Installation,
    /// A project that acts as an installation of an App, while none is configured.
    #[error(
        "setting up the GitHub connector: the project acts as installation {installation} of a GitHub App, and github.app is not configured; configure the App again, or give the project a token with `caretaker project credential`"
    )]
    NoApp {
        /// Its number.
        installation: u64,
    },
    /// A repository number that is none.
    #[error(
        "setting up the GitHub connector: {found:?} is not the number of a repository; register the project again"
    )]
    RepositoryNumber {
        /// What was given.
        found: String,
    },
    /// A deadline of zero.
    #[error("setting up the GitHub connector: the deadline of a call must be longer than zero")]
    Deadline,
    /// The HTTP client could not be made.
    #[error("setting up the GitHub connector: {reason}")]
    Client {
        /// Why, and the mend.
        reason: String,
    },
}

/// The options after every check.
pub(super) struct Setting {
    /// Base of the REST interface, without a slash at its end.
    pub(super) api: Url,
    /// The same as text, ready for a path to be appended.
    pub(super) api_text: String,
    /// Base of the pages, without a slash at its end.
    pub(super) web_text: String,
    /// Base of git, without a slash at its end.
    pub(super) git_text: String,
    /// Whether git is reached over HTTP and so needs the credential.
    pub(super) git_over_http: bool,
    /// Host as bound in approvals, with its port when it is not the usual one.
    pub(super) host: String,
}

impl Setting {
    pub(super) fn check(options: &GithubOptions) -> Result<Self, GithubSetupError> {
        check_name("owner", &options.owner)?;
        check_name("name", &options.name)?;
        if let Some(number) = &options.expected_repository_id
            && (number.parse::<u64>().is_err() || number.starts_with('+'))
        {
            return Err(GithubSetupError::RepositoryNumber {
                found: number.chars().take(40).collect(),
            });
        }
        if options.deadline.is_zero() {
            return Err(GithubSetupError::Deadline);
        }
        let api = check_base("api_url", &options.api_url, &["https", "http"])?;
        let web = check_base("web_url", &options.web_url, &["https", "http"])?;
        let git = check_base("git_url", &options.git_url, &["https", "http", "file"])?;
        let host = web.host_str().unwrap_or_default();
        Ok(Self {
            api_text: trimmed(&api),
            web_text: trimmed(&web),
            git_text: trimmed(&git),
            git_over_http: git.scheme() != "file",
            host: web
                .port()
                .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
            api,
        })
    }
}

/// Refuses a token that no header can carry, before it is stored or used.
///
/// # Errors
/// It is empty, or has spaces, line ends or characters outside ASCII.
pub fn check_token(token: &SecretString) -> Result<(), GithubSetupError> {
    let token = token.expose_secret();
    if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(GithubSetupError::Token)
}

fn trimmed(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

/// Whether an owner or a repository may be called so: letters, digits, `-`, `_` and `.`, at most 100 of them, so that a name is one
/// part of a path.
pub fn is_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=100).contains(&text.len()) && text.bytes().all(allowed) && !matches!(text, "." | "..")
}

fn check_name(which: &'static str, found: &str) -> Result<(), GithubSetupError> {
    if is_name(found) {
        return Ok(());
    }
    Err(GithubSetupError::Name {
        which,
        found: found.chars().take(120).collect(),
    })
}

pub(super) fn check_base(
    which: &'static str,
    text: &str,
    schemes: &[&str],
) -> Result<Url, GithubSetupError> {
    let refuse = |address: String, reason: &str| {
        Err(GithubSetupError::Address {
            which,
            address,
            reason: reason.to_owned(),
        })
    };
    let Ok(url) = Url::parse(text) else {
        return refuse(
            "(unreadable)".to_owned(),
            "is not an address; write it with its scheme, e.g. https://api.github.com",
        );
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refuse(
            "(hidden)".to_owned(),
            "carries a credential; put the token into its own setting",
        );
    }
    let shown = url.to_string();
    if !schemes.contains(&url.scheme()) {
        return refuse(shown, "has a scheme that is not used here; use https");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refuse(shown, "has a query or a fragment; give the base alone");
    }
    if url.scheme() == "http" && !is_loopback(&url) {
        return refuse(
            shown,
            "would send the token unencrypted; use https (plain http is for loopback alone)",
        );
    }
    Ok(url)
}
