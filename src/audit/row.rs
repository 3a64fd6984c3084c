//! A row of the table `ledger`: an envelope, and columns that follow from it.

use thiserror::Error;

use crate::attest::dsse::{Envelope, SignedDocument};
use crate::attest::text::shown;
use crate::attest::{EnvelopeError, PredicateType, Statement, StatementError};

/// Why an envelope makes no row.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeriveError {
    /// Not the one stored serialisation of an envelope.
    #[error("making a ledger row: {0}")]
    Envelope(#[from] EnvelopeError),
    /// Not a statement of this version.
    #[error("making a ledger row: {0}")]
    Statement(#[from] StatementError),
    /// A statement that belongs into the evidence store.
    #[error(
        "making a ledger row: a {kind} statement is evidence without a place in a chain; store it by its digest"
    )]
    Evidence {
        /// What it is.
        kind: PredicateType,
    },
    /// A position that no column can hold.
    #[error("making a ledger row: the position {seq} is beyond what the table holds")]
    Position {
        /// The position.
        seq: u64,
    },
}

/// One row of the table `ledger`, raw as stored. Only `envelope` says something; every other column is derived from it so
/// that rows can be found, and counts for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// The incident.
    pub incident: String,
    /// Position in the incident's chain, from 0.
    pub seq: i64,
    /// The stored serialisation of the signed envelope.
    pub envelope: Vec<u8>,
    /// Column `type`: short name of the kind of event.
    pub kind: String,
    /// The role that signs this kind.
    pub role: String,
    /// The key that the envelope names.
    pub keyid: String,
    /// The event's id.
    pub event_id: String,
    /// Digest of the event before, in hexadecimal; null at position 0.
    pub prev: Option<String>,
    /// SHA-256 of the envelope's pre-authentication encoding, in hexadecimal.
    pub pae: String,
    /// When it happened, in milliseconds since 1970.
    pub occurred_at: i64,
}

/// A column where a stored row is not what its envelope says.
pub(super) struct Difference {
    pub(super) expected: String,
    pub(super) found: String,
}

impl LedgerRow {
    /// The row of an envelope. Nothing is authenticated here: that is the verifier's.
    pub fn derive(envelope: &[u8]) -> Result<Self, DeriveError> {
        let parsed = Envelope::parse(envelope)?;
        let statement = Statement::parse(SignedDocument::parse(envelope)?.unverified_payload())?;
        let event = statement.as_event().ok_or(DeriveError::Evidence {
            kind: statement.predicate_type(),
        })?;
        let block = event.block();
        let seq = i64::try_from(block.seq).map_err(|_| DeriveError::Position { seq: block.seq })?;
        Ok(Self {
            incident: block.incident.to_string(),
            seq,
            envelope: envelope.to_vec(),
            kind: event.predicate_type().name().to_owned(),
            role: block.role.name().to_owned(),
            keyid: parsed.keyid().to_string(),
            event_id: block.id.to_string(),
            prev: block.prev.map(|prev| prev.sha256.to_string()),
            pae: parsed.digest().to_string(),
            occurred_at: block.occurred_at.0,
        })
    }

    /// Where `stored` differs from this row, column by column.
    pub(super) fn differences(&self, stored: &Self) -> Vec<Difference> {
        let columns = self.columns().into_iter().zip(stored.columns());
        columns
            .filter(|((_, expected), (_, found))| expected != found)
            .map(|((name, expected), (_, found))| Difference {
                expected: worded(name, expected.as_deref()),
                found: worded(name, found.as_deref()),
            })
            .collect()
    }

    /// Every column but the envelope. Taken apart without `..`, so that no column can be forgotten.
    fn columns(&self) -> [(&'static str, Option<String>); 9] {
        let Self {
            incident,
            seq,
            envelope: _,
            kind,
            role,
            keyid,
            event_id,
            prev,
            pae,
            occurred_at,
        } = self;
        [
            ("incident", Some(incident.clone())),
            ("seq", Some(seq.to_string())),
            ("type", Some(kind.clone())),
            ("role", Some(role.clone())),
            ("keyid", Some(keyid.clone())),
            ("event_id", Some(event_id.clone())),
            ("prev", prev.clone()),
            ("pae", Some(pae.clone())),
            ("occurred_at", Some(occurred_at.to_string())),
        ]
    }
}

fn worded(column: &str, value: Option<&str>) -> String {
    value.map_or_else(
        || format!("no {column}"),
        |value| format!("{column} {}", shown(value)),
    )
}
