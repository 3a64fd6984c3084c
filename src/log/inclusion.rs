//! A proof for keeping (C2SP tlog-proof): that an entry is in a log, checked with the log's key alone.

use std::fmt;

use thiserror::Error;

use super::checkpoint::{CheckpointError, SignedCheckpoint};
use super::encoding::{from_base64, from_decimal, to_base64};
use super::note::MAX_NOTE;
use super::policy::{LogPolicy, PolicyError, TrustedCheckpoint};
use super::proof::{MAX_PROOF, ProofError, verify_inclusion};
use super::tree::TreeHash;
use crate::attest::text::shown;

/// The first line. A file of another version is another format and is refused.
const HEADER: &str = "c2sp.org/tlog-proof@v1";
/// The most extra data, in bytes.
pub const MAX_EXTRA: usize = 16_384;
/// The longest file, in bytes.
pub const MAX_LOG_PROOF: usize = MAX_NOTE + 32_768;

/// Why bytes are not a proof, or why it does not prove the entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogProofError {
    /// Too long.
    #[error("a log proof of {length} bytes: at most {MAX_LOG_PROOF} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// Not the text of a proof.
    #[error("not a log proof: {expected} was expected, found {found}")]
    Text {
        /// What would have been right there.
        expected: &'static str,
        /// What was found, made printable.
        found: String,
    },
    /// More extra data than is kept.
    #[error("the log proof has more than {MAX_EXTRA} bytes of extra data")]
    Extra,
    /// The checkpoint in it is none.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The checkpoint is not to be believed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The hashes do not prove the entry.
    #[error(transparent)]
    Proof(#[from] ProofError),
}

/// An index, the hashes that lead to a checkpoint's root, and that checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogProof {
    extra: Option<Vec<u8>>,
    index: u64,
    path: Vec<TreeHash>,
    checkpoint: SignedCheckpoint,
}

impl LogProof {
    /// A proof to hand out. Whether it proves anything shows when it is verified.
    pub fn new(
        index: u64,
        path: Vec<TreeHash>,
        checkpoint: SignedCheckpoint,
    ) -> Result<Self, LogProofError> {
        if path.len() > MAX_PROOF {
            return Err(ProofError::TooLong { length: path.len() }.into());
        }
        Ok(Self {
            extra: None,
            index,
            path,
            checkpoint,
        })
    }

    /// The same proof with data of the application's, which nothing authenticates. None if empty.
    pub fn with_extra(mut self, extra: Vec<u8>) -> Result<Self, LogProofError> {
        if extra.len() > MAX_EXTRA {
            return Err(LogProofError::Extra);
        }
        self.extra = (!extra.is_empty()).then_some(extra);
        Ok(self)
    }

    /// Reads the file, refusing every other spelling than the one [`fmt::Display`] writes.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogProofError> {
        if bytes.len() > MAX_LOG_PROOF {
            return Err(LogProofError::TooLong {
                length: bytes.len(),
            });
        }
        let wrong = |expected, found: &str| LogProofError::Text {
            expected,
            found: shown(found),
        };
        let text = str::from_utf8(bytes).map_err(|_| wrong("UTF-8", "other bytes"))?;
        let mut rest = text;
        let mut line = || {
            let (line, after) = rest.split_once('\n')?;
            rest = after;
            Some(line)
        };
        let header = line().unwrap_or_default();
        if header != HEADER {
            return Err(wrong("the line c2sp.org/tlog-proof@v1", header));
        }
        let mut next = line().unwrap_or_default();
        let mut extra = None;
        if let Some(encoded) = next.strip_prefix("extra ") {
            let bytes = from_base64(encoded).filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or_else(|| wrong("base64 of extra data", encoded))?;
            if bytes.len() > MAX_EXTRA {
                return Err(LogProofError::Extra);
            }
            extra = Some(bytes);
            next = line().unwrap_or_default();
        }
        let index = next
            .strip_prefix("index ")
            .and_then(from_decimal)
            .ok_or_else(|| wrong("the line `index` with a decimal number", next))?;
        let mut path = Vec::new();
        loop {
            let next = line().ok_or_else(|| wrong("an empty line and a checkpoint", "the end"))?;
            if next.is_empty() {
                break;
            }
            if path.len() == MAX_PROOF {
                let length = MAX_PROOF + 1;
                return Err(ProofError::TooLong { length }.into());
            }
            let hash = next.parse().map_err(|_| wrong("base64 of a hash", next))?;
            path.push(hash);
        }
        Ok(Self {
            extra,
            index,
            path,
            checkpoint: SignedCheckpoint::parse(rest.as_bytes())?,
        })
    }

    /// Data of the application's. Nothing authenticates it.
    pub fn extra(&self) -> Option<&[u8]> {
        self.extra.as_deref()
    }

    /// Where the entry is said to be.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// The checkpoint, unverified.
    pub const fn checkpoint(&self) -> &SignedCheckpoint {
        &self.checkpoint
    }

    /// Whether exactly these bytes are an entry of the log that the policy is about.
    pub fn verify(&self, entry: &[u8], policy: &LogPolicy) -> Result<Included, LogProofError> {
        // The policy is the caller's, never the file's.
        let checkpoint = policy.verify(&self.checkpoint)?;
        let leaf = TreeHash::of_leaf(entry);
        // Break it: drop this and `log::proofs::a_proof_is_of_one_entry_at_one_place_of_one_tree` fails.
        verify_inclusion(leaf, self.index, &self.path, &checkpoint.head())?;
        Ok(Included {
            index: self.index,
            leaf,
            checkpoint,
        })
    }
}

/// The file.
impl fmt::Display for LogProof {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEADER}")?;
        if let Some(extra) = &self.extra {
            writeln!(formatter, "extra {}", to_base64(extra))?;
        }
        writeln!(formatter, "index {}", self.index)?;
        for hash in &self.path {
            writeln!(formatter, "{hash}")?;
        }
        write!(formatter, "\n{}", self.checkpoint)
    }
}

/// An entry that is in a log. There is no other way to make one than [`LogProof::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    index: u64,
    leaf: TreeHash,
    checkpoint: TrustedCheckpoint,
}

impl Included {
    /// Its index.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Its leaf hash.
    pub const fn leaf(&self) -> TreeHash {
        self.leaf
    }

    /// The checkpoint that covers it.
    pub const fn checkpoint(&self) -> &TrustedCheckpoint {
        &self.checkpoint
    }
}
