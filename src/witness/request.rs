//! What a log sends (C2SP tlog-witness, `add-checkpoint`).

use thiserror::Error;

use crate::attest::text::shown;
use crate::log::{CheckpointError, MAX_NOTE, MAX_PROOF, SignedCheckpoint, TreeHash};

/// The longest body, in bytes: a checkpoint, and a proof of 63 hashes of 44 characters with room to spare.
pub const MAX_BODY: usize = MAX_NOTE + 4096;

/// Why a body is no request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Too long.
    #[error("a body of {length} bytes: at most {MAX_BODY} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// Not the lines that there should be.
    #[error("{expected} was expected, found {found}")]
    Lines {
        /// What would have been right there.
        expected: &'static str,
        /// What was found, made printable.
        found: String,
    },
    /// More hashes than a proof can have.
    #[error("more than {MAX_PROOF} lines of a proof")]
    LongProof,
    /// The size before is not one of an earlier tree.
    #[error("the old size {old} is beyond the checkpoint's {size} leaves")]
    Backwards {
        /// The size before.
        old: u64,
        /// The checkpoint's.
        size: u64,
    },
    /// No checkpoint behind it.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// A checkpoint, and the proof that it extends an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// Leaves of the checkpoint that the log takes for the last one seen here.
    pub(super) old: u64,
    /// From there to the new one.
    pub(super) proof: Vec<TreeHash>,
    /// Unverified.
    pub(super) checkpoint: SignedCheckpoint,
}

impl Request {
    pub(super) fn parse(body: &[u8]) -> Result<Self, RequestError> {
        if body.len() > MAX_BODY {
            return Err(RequestError::TooLong { length: body.len() });
        }
        let wrong = |expected, found: &str| RequestError::Lines {
            expected,
            found: shown(found),
        };
        let mut rest = str::from_utf8(body).map_err(|_| wrong("UTF-8", "other bytes"))?;
        let mut line = || {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            Some(line)
        };
        let first = line().unwrap_or_default();
        let old = first.strip_prefix("old ").and_then(number);
        let old = old.ok_or_else(|| wrong("the line `old` with a decimal number", first))?;
        let mut proof = Vec::new();
        loop {
            let next = line().ok_or_else(|| wrong("an empty line and a checkpoint", "the end"))?;
            if next.is_empty() {
                break;
            }
            // Break it: leave this out; a body then costs as many hashes as it has lines
            // (`witness::protocol::what_is_no_request_is_refused_unread`).
            if proof.len() == MAX_PROOF {
                return Err(RequestError::LongProof);
            }
            let hash = next.parse().map_err(|_| wrong("base64 of a hash", next))?;
            proof.push(hash);
        }
        let checkpoint = SignedCheckpoint::parse(rest.as_bytes())?;
        let size = checkpoint.claimed().head().size();
        if old > size {
            return Err(RequestError::Backwards { old, size });
        }
        Ok(Self {
            old,
            proof,
            checkpoint,
        })
    }
}

/// A decimal number in its one spelling.
pub(super) fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
