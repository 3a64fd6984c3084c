//! Anchors: what a checkpoint of the log is shown to, so that somebody outside of this installation can tell whether the log is
//! still the one that it was. Each answers with a receipt, which is kept beside the checkpoint and goes into bundles.
//!
//! When and how often is the worker's business; an anchor asks once and keeps nothing.

pub mod timestamp;
pub mod witness;

use async_trait::async_trait;

use crate::clock::Millis;
pub use crate::log::AnchorKind;
use crate::log::{SignedCheckpoint, TileId, TreeHash};

/// Why a checkpoint is not anchored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnchorError {
    /// Nothing usable was answered; another attempt may succeed.
    #[error("{action}: {reason}")]
    Unanswered {
        /// What was being done, and where.
        action: String,
        /// What happened.
        reason: String,
    },
    /// It was answered, and the answer is a refusal that stays until somebody mends something.
    #[error("{action}: {reason}; {mend}")]
    Refused {
        /// What was being done, and where.
        action: String,
        /// The words of the other side, or what is wrong with its answer.
        reason: String,
        /// What a person does about it.
        mend: String,
    },
    /// What is anchored already and the log exclude each other: one of them was changed.
    #[error(
        "{action}: {evidence}; the log or the anchor was changed, look before anything else is merged"
    )]
    Contradiction {
        /// What was being done, and where.
        action: String,
        /// What excludes what.
        evidence: String,
    },
}

impl AnchorError {
    /// Whether the same call may succeed later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

/// What an anchor answered before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Leaves of the checkpoint that it is about.
    pub size: u64,
    /// The receipt, in the form of its kind.
    pub bytes: Vec<u8>,
}

/// The log behind a checkpoint.
#[async_trait]
pub trait LogReader: Send + Sync {
    /// The proof that the log of `new` leaves extends that of `old`; both at least 1. An error where the log does not have so many.
    async fn consistency(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, AnchorError>;
    /// A file of the log (C2SP tlog-tiles) within the checkpoint.
    async fn file(&self, tile: TileId) -> Result<Vec<u8>, AnchorError>;
}

/// Somebody or something that holds checkpoints.
#[async_trait]
pub trait Anchor: Send + Sync {
    /// In which way.
    fn kind(&self) -> AnchorKind;
    /// Its name in the configuration, unique within its kind.
    fn name(&self) -> &str;
    /// Whether a receipt that was kept is this anchor's word for this checkpoint. Whoever writes the database can put one there;
    /// what somebody outside signed or holds, they cannot.
    ///
    /// # Errors
    /// It is not, or nobody can tell now: see [`AnchorError`].
    async fn confirm(
        &self,
        checkpoint: &SignedCheckpoint,
        receipt: &Receipt,
    ) -> Result<(), AnchorError>;
    /// Shows a checkpoint once; its receipt, which was checked as far as this installation can. `last` is the newest receipt
    /// there is.
    ///
    /// # Errors
    /// No answer, a refusal, or a contradiction: see [`AnchorError`].
    async fn anchor(
        &self,
        checkpoint: &SignedCheckpoint,
        log: &dyn LogReader,
        last: Option<&Receipt>,
        now: Millis,
    ) -> Result<Receipt, AnchorError>;
}
