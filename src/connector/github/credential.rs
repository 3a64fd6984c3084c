//! Where tokens come from: one port for a person's token and for tokens of a GitHub App.
//!
//! Whoever calls the provider says what the call is for, and gets the narrowest token that does. Tokens are kept in memory
//! only; what is written down of one is its fingerprint.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};

use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::connector::ConnectorError;

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// Watching and comparing: the poller.
    Read,
    /// Pushing a fix and opening its pull request: the proposer.
    Propose,
    /// Merging what was approved: the executor.
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
        let digest = Sha256Digest::of(secret.expose_secret().as_bytes());
        let fingerprint = hex::encode(digest.as_bytes().get(..8).unwrap_or_default());
        Self {
            secret,
            fingerprint,
            expires_at,
        }
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
}

/// A call that could not be made for want of a token failed as the token did.
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
            TokenError::Refused { action, reason } => Self::Refused { action, reason },
        }
    }
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
