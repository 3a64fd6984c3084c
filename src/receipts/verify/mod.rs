//! Verification of receipts by whoever has them and the public keys: offline, and without believing the gate.
//!
//! A line is read and its signature verified on its own ([`Reader::read`], on as many threads as one likes); what holds between lines
//! is the [`Walk`]'s. What was allowed under an intent is judged again from what the receipt discloses.

mod payload;
mod reader;
mod recheck;
mod walk;

use thiserror::Error;

pub use reader::{MAX_LINE, Reader};
pub use walk::{ChainReport, Expectation, Failure, MAX_FAILURES, MAX_SOUGHT, MAX_UNORDERED, Walk};

use super::canonical::CanonicalError;
use super::receipt::{MAX_JWS, MAX_PAYLOAD, ReceiptHash};
use crate::attest::json::JsonError;

/// Why a line holds no receipt that counts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// More bytes than a line with the longest receipt has.
    #[error("the line has more than {MAX_LINE} bytes")]
    LongLine,
    /// Not the envelope.
    #[error("the line is not {{\"receipt_hash\", \"jws\"}}: {0}")]
    Envelope(EnvelopeFault),
    /// The stated name is another receipt's.
    #[error("the receipt_hash is not that of the jws: the record was tampered with")]
    Hash,
    /// Too long.
    #[error("the jws has {length} bytes, at most {MAX_JWS} are read")]
    LongJws {
        /// Length found.
        length: usize,
    },
    /// Not three parts of base64url.
    #[error("the jws is not three parts in base64url without padding")]
    Parts,
    /// Another header than the format's.
    #[error(
        "the header is not that of a receipt: exactly alg EdDSA, crit [\"raucle/v1\"], kid, \"raucle/v1\" and typ were expected, canonical"
    )]
    Header,
    /// A key that is not trusted.
    #[error("the key {key} is not trusted")]
    UnknownKey {
        /// Its name, made printable.
        key: String,
    },
    /// Another signature than the key's.
    #[error("the signature is not that of the key over this receipt")]
    Signature,
    /// Too long.
    #[error("the payload has {length} bytes, at most {MAX_PAYLOAD} are read")]
    LongPayload {
        /// Length found.
        length: usize,
    },
    /// Not canonical JSON.
    #[error("the payload: {0}")]
    Payload(#[from] CanonicalError),
    /// A member that is missing, of another kind, or of no kind.
    #[error("the payload's {member} {problem}")]
    Member {
        /// Its name, made printable.
        member: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Allowed, but not what was approved.
    #[error("{0}")]
    Intent(String),
}

/// What is wrong with an envelope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvelopeFault {
    /// Not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Other members, or of another kind.
    #[error("it has other members, or other values than strings")]
    Members,
}

/// What a receipt whose signature held says about its place among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its name.
    pub hash: ReceiptHash,
    /// The receipts before it.
    pub parents: Vec<ReceiptHash>,
    /// What it was marked with.
    pub taint: Vec<String>,
    /// What a sanitising step says it took away from its parents' marks.
    pub removed: Option<Vec<String>>,
    /// The session and its number there, of a linear chain.
    pub place: Option<(String, u64)>,
}
