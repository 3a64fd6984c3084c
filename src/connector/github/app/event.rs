//! What happens to tokens, as told to the history. These are the just-in-time credentials: each is there for one use, on one
//! repository, for at most an hour.

use std::sync::Arc;

use super::super::credential::Use;
use super::{Permissions, Target};
use crate::clock::Millis;
use crate::incident::AuditEvent;

/// Who is told. Called while no lock is held; it must not wait.
pub type TokenSink = Arc<dyn Fn(TokenEvent) + Send + Sync>;

/// A token, described without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The installation that it is of.
    pub installation: u64,
    /// The one repository that it opens, by number where that is known.
    pub repository: Target,
    /// What it is for.
    pub task: Use,
    /// What it may do.
    pub permissions: Permissions,
    /// The first 16 hexadecimal digits of its SHA-256.
    pub fingerprint: String,
    /// When it ends by itself.
    pub expires_at: Millis,
}

/// Why a token ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Its task was done, and the provider was told.
    Released,
    /// The provider did not accept it any more.
    Refused,
}

/// Something happened to a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenEvent {
    /// The provider issued it.
    Issued(TokenRecord),
    /// It was near its end and another one took its place.
    Expired(TokenRecord),
    /// It ended before its time.
    Revoked(TokenRecord, Ended),
}

impl TokenEvent {
    /// The token.
    pub const fn record(&self) -> &TokenRecord {
        match self {
            Self::Issued(record) | Self::Expired(record) | Self::Revoked(record, _) => record,
        }
    }

    /// As an entry of the history.
    pub fn audit(&self) -> AuditEvent {
        let record = self.record();
        let (kind, how) = match self {
            Self::Issued(_) => ("token-issued", "issued"),
            Self::Expired(_) => ("token-expired", "replaced near its end"),
            Self::Revoked(_, Ended::Released) => ("token-revoked", "revoked after its task"),
            Self::Revoked(_, Ended::Refused) => ("token-revoked", "refused by the provider"),
        };
        AuditEvent {
            kind,
            detail: format!(
                "token {} for the {} {how}: installation {}, {}, {}, until {}",
                record.fingerprint,
                record.task.role(),
                record.installation,
                record.repository,
                record.permissions,
                record.expires_at,
            ),
        }
    }
}
