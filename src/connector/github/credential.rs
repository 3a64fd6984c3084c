//! Where tokens come from: one port for a person's token and for tokens of a GitHub App.
//!
//! Whoever calls the provider says what the call is for, and gets the narrowest token that does. Tokens are kept in memory
//! only; what is written down of one is its fingerprint.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};

use super::app::Permissions;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::connector::ConnectorError;

/// What a call is made for, and with it a token. Whoever merges goes before whoever watches when the budget is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// Looking whether anything happened, and what: the poller.
    Read,
    /// Pushing a fix, and opening, following and closing its pull request: the proposer.
    Propose,
    /// Merging what was approved, with the comparison before it and the proof after it: the executor.
    Execute,
}

impl Use {
    /// Every use.
    pub const ALL: [Self; 3] = [Self::Read, Self::Propose, Self::Execute];

    /// The role that has this use, in one word.
    pub const fn role(self) -> &'static str {
        match self {
            Self::Read => "poller",
            Self::Propose => "proposer",
            Self::Execute => "executor",
        }
    }

    /// How many hundredths of an allowance are kept from this use for those that go before it.
    pub const fn reserve(self) -> u64 {
        match self {
            Self::Read => 10,
            Self::Propose => 5,
            Self::Execute => 0,
        }
    }
}

/// A token that was handed out. Its text shows nowhere: not in `Debug`, not in an error, not in an event.
#[derive(Clone)]
pub struct IssuedToken {
    /// The token itself, for the header or for git's question and for nothing else.
    pub secret: SecretString,
    /// The first 16 hexadecimal digits of its SHA-256: names the token in events and keys what was fetched with it.
    pub fingerprint: String,
    /// When it ends, where that is known.
    pub expires_at: Option<Millis>,
}

impl IssuedToken {
    /// A token with its fingerprint.
    pub fn new(secret: SecretString, expires_at: Option<Millis>) -> Self {
        // Break it: take the token itself; `app::record::the_history_shows_every_token_and_the_database_holds_none` then fails.
        let digest = Sha256Digest::of(secret.expose_secret().as_bytes());
        let fingerprint = hex::encode(digest.as_bytes().get(..8).unwrap_or_default());
        Self {
            secret,
            fingerprint,
            expires_at,
        }
    }

    /// Whether it is still good after `margin` from `now`. One without an end is.
    pub(super) fn lasts(&self, now: Millis, margin: Duration) -> bool {
        let margin = i64::try_from(margin.as_millis()).unwrap_or(i64::MAX);
        self.expires_at
            .is_none_or(|end| end >= now.plus_millis(margin))
    }
}

/// The fingerprint and the end; never the token.
impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedToken")
            .field("fingerprint", &self.fingerprint)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

/// The budget that calls are taken from. It stays while tokens come and go; what was fetched under an `ETag` does not, and is
/// keyed by the fingerprint of the token instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CredentialIdentity {
    /// All tokens of one installation share a budget.
    Installation(u64),
    /// A person's token, by its fingerprint.
    Personal(String),
}

impl fmt::Display for CredentialIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installation(number) => write!(f, "installation:{number}"),
            Self::Personal(fingerprint) => write!(f, "token:{fingerprint}"),
        }
    }
}

// What a person does when there is no token.
const APP_MEND: &str =
    "check github.app.id and github.app.private_key_file, and this machine's clock";
const ABSENT_MEND: &str = "install the App on the repository, then register the project again";
const SUSPENDED_MEND: &str =
    "its owner can unsuspend it at the App's page under Installed GitHub Apps";
const UNGRANTED_MEND: &str = "add it to the App's permissions, then let the owner accept the change on the installation's page";
const OUT_OF_REACH_MEND: &str = "add the repository on the installation's page";

/// Why there is no token. No variant can hold one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Nothing answered, or the provider failed: worth another try later.
    #[error("{action} at {address}: {reason}")]
    Unreachable {
        /// What was being done.
        action: String,
        /// Where.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A limit: come back later.
    #[error("{action}: the provider asks to wait until {until}")]
    Limited {
        /// What was being done.
        action: String,
        /// When to try again.
        until: Millis,
    },
    /// The App itself is not believed.
    #[error(
        "{action}: the provider does not accept the App's signature ({reason}); {mend}",
        mend = APP_MEND
    )]
    App {
        /// What was being done.
        action: String,
        /// The provider's words, and how far the clocks are apart where they are.
        reason: String,
    },
    /// There is no such installation any more, or it is another App's.
    #[error(
        "{action}: {what} does not exist or is not this App's; {mend}",
        mend = ABSENT_MEND
    )]
    Absent {
        /// What was being done.
        action: String,
        /// What was asked for.
        what: String,
    },
    /// The owner suspended the installation.
    #[error(
        "{action}: installation {installation} is suspended; {mend}",
        mend = SUSPENDED_MEND
    )]
    Suspended {
        /// What was being done.
        action: String,
        /// Its number.
        installation: u64,
    },
    /// The installation may less than is needed.
    #[error(
        "{action}: installation {installation} lacks {missing} ({reason}); {mend}",
        mend = UNGRANTED_MEND
    )]
    Ungranted {
        /// What was being done.
        action: String,
        /// Its number.
        installation: u64,
        /// What is lacking.
        missing: Permissions,
        /// The provider's words.
        reason: String,
    },
    /// The installation does not include the repository.
    #[error(
        "{action}: installation {installation} does not reach {repository} ({reason}); {mend}",
        mend = OUT_OF_REACH_MEND
    )]
    OutOfReach {
        /// What was being done.
        action: String,
        /// Its number.
        installation: u64,
        /// The repository, by its number or its name.
        repository: String,
        /// The provider's words.
        reason: String,
    },
    /// No token lasts as long as was asked for, by this machine's clock.
    #[error(
        "{action}: it would have to last {wanted_seconds} s and lasts {found_seconds} s by this machine's clock; check the clock, or do the work in shorter parts"
    )]
    ShortLived {
        /// What was being done.
        action: String,
        /// How long it would have to last, in seconds.
        wanted_seconds: u64,
        /// How long it lasts, in seconds; negative when it is over already.
        found_seconds: i64,
    },
    /// The provider refused, or its answer makes no sense.
    #[error("{action}: {reason}")]
    Refused {
        /// What was being done.
        action: String,
        /// The provider's words, or what is wrong with its answer.
        reason: String,
    },
}

impl TokenError {
    /// Whether the same request may succeed later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Limited { .. })
    }

    /// What a person does at the provider or about the App, where that is known; the error's own words end with it.
    const fn mend(&self) -> Option<&'static str> {
        match self {
            Self::App { .. } => Some(APP_MEND),
            Self::Absent { .. } => Some(ABSENT_MEND),
            Self::Suspended { .. } => Some(SUSPENDED_MEND),
            Self::Ungranted { .. } => Some(UNGRANTED_MEND),
            Self::OutOfReach { .. } => Some(OUT_OF_REACH_MEND),
            Self::Unreachable { .. }
            | Self::Limited { .. }
            | Self::ShortLived { .. }
            | Self::Refused { .. } => None,
        }
    }
}

/// A call that could not be made for want of a token failed as the token did. What only a person can mend keeps its own words,
/// since the mend is not a new token.
impl From<TokenError> for ConnectorError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Unreachable {
                action,
                address,
                reason,
            } => Self::Unreachable {
                action,
                address,
                reason,
            },
            TokenError::Limited { action, until } => Self::Limited { action, until },
            lasting => {
                let words = lasting.to_string();
                // Break it: let all of them be refusals;
                // `watch::conditions::what_keeps_the_app_from_a_token_is_said_with_its_own_mend` then fails.
                match lasting.mend() {
                    Some(mend) => Self::NoToken {
                        reason: words
                            .trim_end_matches(mend)
                            .trim_end_matches("; ")
                            .to_owned(),
                        mend,
                    },
                    None => Self::Refused {
                        action: "getting a token".to_owned(),
                        reason: words,
                    },
                }
            }
        }
    }
}

/// What an owner granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Each permission with how much of it.
    pub permissions: Permissions,
    /// The page where its owner sees and changes it.
    pub page: Option<String>,
}

/// Hands out tokens for one repository.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// A token for this use, valid for at least `at_least` from now.
    ///
    /// # Errors
    /// None can be had: see [`TokenError`].
    async fn token(&self, task: Use, at_least: Duration) -> Result<IssuedToken, TokenError>;

    /// The provider said 401 to this token: it is forgotten. True when another one can be had, so that the call is worth one
    /// more try and no further one.
    async fn refused(&self, token: &IssuedToken) -> bool;

    /// The budget that its calls are taken from; never a token.
    fn identity(&self) -> CredentialIdentity;

    /// What the provider says that tokens from here may do in all, asked now; `None` when it says so of a token only.
    ///
    /// # Errors
    /// The provider cannot be asked, or lets nothing be done: see [`TokenError`].
    async fn granted(&self) -> Result<Option<Grant>, TokenError> {
        Ok(None)
    }

    /// A token of the older, short form in place of this one, for a git server that answers 404 to the long form; `None` when
    /// it has no other form, and the 404 means what it says. To be asked once a git operation.
    ///
    /// # Errors
    /// None can be had: see [`TokenError`].
    async fn compatible_token(
        &self,
        _token: &IssuedToken,
        _task: Use,
        _at_least: Duration,
    ) -> Result<Option<IssuedToken>, TokenError> {
        Ok(None)
    }

    /// The task of this token is done: it is ended at the provider too, where the provider can. Meant for [`Use::Execute`].
    ///
    /// # Errors
    /// The provider could not be told; the token is forgotten here all the same and ends by itself.
    async fn release(&self, _token: &IssuedToken) -> Result<(), TokenError> {
        Ok(())
    }
}

/// A person's token, classic or fine-grained: one for every use, since it cannot be narrowed.
#[derive(Debug, Clone)]
pub struct PersonalToken {
    token: IssuedToken,
}

impl PersonalToken {
    /// Wraps a token.
    pub fn new(secret: SecretString) -> Self {
        Self {
            token: IssuedToken::new(secret, None),
        }
    }
}

#[async_trait]
impl TokenSource for PersonalToken {
    async fn token(&self, _: Use, _: Duration) -> Result<IssuedToken, TokenError> {
        Ok(self.token.clone())
    }

    async fn refused(&self, _: &IssuedToken) -> bool {
        false
    }

    fn identity(&self) -> CredentialIdentity {
        CredentialIdentity::Personal(self.token.fingerprint.clone())
    }
}
