//! What is logged, byte for byte. Formats: `docs/log.md`.
//!
//! What is signed is logged as its stored envelope; what is not (a sign of life, the digest of a piece of evidence, the
//! digest of a rules text) as a small JSON document. Each leaf has one serialisation, and the two kinds differ in their
//! first bytes (`{"payload":` and `{"caretaker-log":`), so that no leaf can be read as two things.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::bundle::MAX_ENTRY;
use super::tree::TreeHash;
use crate::attest::dsse::{self, Envelope, EnvelopeError, SignedDocument};
use crate::attest::json::{self, JsonError};
use crate::attest::text::{Label, shown};
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// The longest record, in bytes.
const MAX_RECORD: usize = 1_024;
/// What a record begins with.
const RECORD: &[u8] = b"{\"caretaker-log\":\"";

/// Why bytes are not a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeafError {
    /// Too long.
    #[error(
        "a leaf of {length} bytes: at most {MAX_ENTRY} are logged; put bulk into the evidence store and log its digest"
    )]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// Neither an envelope nor a record of a known kind. A later version may know it, so this is no proof of a fault.
    #[error(
        "the leaf is of kind {kind}, which this version does not know; verify with a newer one"
    )]
    UnknownKind {
        /// The kind, made printable.
        kind: String,
    },
    /// An envelope that is not stored like this.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A record that is not written like this.
    #[error("the leaf is not a record: {0}")]
    Record(JsonError),
    /// A record with other bytes than its one serialisation.
    #[error("the leaf is not the one serialisation of its record (order, white space, escapes)")]
    NotStoredForm,
    /// A record that says what cannot be.
    #[error("the leaf says what cannot be: {member} is {problem}")]
    Value {
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl From<JsonError> for LeafError {
    fn from(error: JsonError) -> Self {
        Self::Record(error)
    }
}

/// An unsigned leaf. It is the log's own word: it proves only that the log said so at this place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "caretaker-log", deny_unknown_fields)]
pub enum Record {
    /// The log was alive, so that silence can be told from absence.
    #[serde(rename = "heartbeat/v1")]
    Heartbeat {
        /// When, by the log's clock.
        at: Millis,
    },
    /// A piece of evidence existed with these bytes.
    #[serde(rename = "evidence/v1")]
    Evidence {
        /// SHA-256 of its bytes. Bytes about a person hold 16 random ones, so that the digest cannot be guessed.
        sha256: Sha256Digest,
        /// How many.
        bytes: u64,
        /// What they are.
        media_type: Label,
    },
    /// A text of the rules existed with these bytes.
    #[serde(rename = "rules/v1")]
    Rules {
        /// SHA-256 of its bytes: what events name as the rules in force.
        sha256: Sha256Digest,
        /// How many.
        bytes: u64,
    },
}

impl Record {
    const KINDS: [&'static str; 3] = ["heartbeat/v1", "evidence/v1", "rules/v1"];

    fn parse(bytes: &[u8]) -> Result<Self, LeafError> {
        let json = json::read(bytes, MAX_RECORD)?;
        let kind = json.text_member("caretaker-log").unwrap_or_default();
        if !Self::KINDS.contains(&kind) {
            return Err(LeafError::UnknownKind { kind: shown(kind) });
        }
        let record: Self = json::typed(bytes, &json)?;
        record.check()?;
        // Break it: drop this and `log::leaves::a_leaf_has_one_serialisation` fails.
        if json::to_bytes(&record)? == bytes {
            Ok(record)
        } else {
            Err(LeafError::NotStoredForm)
        }
    }

    fn check(&self) -> Result<(), LeafError> {
        match self {
            Self::Heartbeat { at } if !(0..=json::MAX_INTEGER).contains(&at.0) => {
                Err(LeafError::Value {
                    member: "at",
                    problem: "before 1970 or beyond 2^53-1",
                })
            }
            Self::Evidence { bytes, .. } | Self::Rules { bytes, .. }
                if *bytes > json::MAX_INTEGER.unsigned_abs() =>
            {
                Err(LeafError::Value {
                    member: "bytes",
                    problem: "beyond 2^53-1",
                })
            }
            _ => Ok(()),
        }
    }
}

/// The kinds of leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeafKind {
    /// A statement: chain event, evidence document or organisation's decision.
    Statement,
    /// A version of the trust root.
    TrustRoot,
    /// [`Record::Heartbeat`].
    Heartbeat,
    /// [`Record::Evidence`].
    Evidence,
    /// [`Record::Rules`].
    Rules,
}

impl LeafKind {
    /// The name in columns and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::TrustRoot => "trust-root",
            Self::Heartbeat => "heartbeat",
            Self::Evidence => "evidence",
            Self::Rules => "rules",
        }
    }
}

/// One leaf. Its signatures are not verified by reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaf {
    /// An in-toto statement with exactly one signature. Its kind is the predicate type inside.
    Statement(Envelope),
    /// A version of the trust root.
    TrustRoot(SignedDocument),
    /// What nobody signed.
    Record(Record),
}

impl Leaf {
    /// Reads a leaf's exact bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, LeafError> {
        if bytes.len() > MAX_ENTRY {
            return Err(LeafError::TooLong {
                length: bytes.len(),
            });
        }
        if bytes.starts_with(RECORD) {
            return Ok(Self::Record(Record::parse(bytes)?));
        }
        let payload_type = match Envelope::parse(bytes) {
            Ok(envelope) if envelope.payload_type() == dsse::IN_TOTO => {
                return Ok(Self::Statement(envelope));
            }
            Ok(envelope) => envelope.payload_type().to_owned(),
            // A trust root may have several signatures, a statement may not.
            Err(error @ EnvelopeError::SignatureCount { .. }) => {
                let document = SignedDocument::parse(bytes)?;
                if document.payload_type() == dsse::IN_TOTO {
                    return Err(error.into());
                }
                document.payload_type().to_owned()
            }
            Err(error) => return Err(error.into()),
        };
        // Break it: take any type and `log::leaves::an_envelope_of_another_type_is_no_leaf` fails.
        if payload_type == dsse::TRUST_ROOT {
            Ok(Self::TrustRoot(SignedDocument::parse(bytes)?))
        } else {
            Err(LeafError::UnknownKind {
                kind: shown(&payload_type),
            })
        }
    }

    /// The leaf of an unsigned record.
    pub fn record(record: Record) -> Result<Self, LeafError> {
        record.check()?;
        Ok(Self::Record(record))
    }

    /// The exact bytes that are logged.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LeafError> {
        let bytes = match self {
            Self::Statement(envelope) => envelope.to_bytes()?,
            Self::TrustRoot(document) => document.to_bytes()?,
            Self::Record(record) => json::to_bytes(record)?,
        };
        if bytes.len() > MAX_ENTRY {
            return Err(LeafError::TooLong {
                length: bytes.len(),
            });
        }
        Ok(bytes)
    }

    /// The leaf hash: [`TreeHash::of_leaf`] of the exact bytes.
    pub fn hash(&self) -> Result<TreeHash, LeafError> {
        Ok(TreeHash::of_leaf(&self.to_bytes()?))
    }

    /// Its kind.
    pub const fn kind(&self) -> LeafKind {
        match self {
            Self::Statement(_) => LeafKind::Statement,
            Self::TrustRoot(_) => LeafKind::TrustRoot,
            Self::Record(Record::Heartbeat { .. }) => LeafKind::Heartbeat,
            Self::Record(Record::Evidence { .. }) => LeafKind::Evidence,
            Self::Record(Record::Rules { .. }) => LeafKind::Rules,
        }
    }
}
