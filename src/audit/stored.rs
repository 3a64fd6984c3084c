//! What the store holds of one incident's ledger.

use super::{KeptEvidence, LedgerRow};
use crate::attest::Expectation;
use crate::attest::chain::Head;
use crate::attest::predicate::Project;
use crate::change::Sha256Digest;
use crate::id::IncidentId;
use crate::incident::Stage;

/// The store's own record of a chain's end, kept apart from the rows: only this shows that the end was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainRecord {
    /// Number of rows appended.
    pub next_seq: u64,
    /// Digest of the last one's pre-authentication encoding; none exactly when there is none.
    pub head: Option<Sha256Digest>,
}

/// Where the organisation's log has an event of the incident, raw as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlace {
    /// Position in the incident's chain.
    pub seq: i64,
    /// Position in the log.
    pub position: i64,
    /// The leaf hash that proofs are made of.
    pub hash: Option<Vec<u8>>,
}

/// One incident's ledger, read in one transaction and in the order of `seq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLedger {
    /// The incident.
    pub incident: IncidentId,
    /// The watched repository, as its statements name it; none when it is not known.
    pub project: Option<Project>,
    /// The rows.
    pub rows: Vec<LedgerRow>,
    /// Where the chain ends.
    pub chain: ChainRecord,
    /// Where the log has the incident's events, in the order of `seq`: only this shows that rows and record were cut together.
    pub places: Vec<LogPlace>,
    /// The stage that is shown for the incident.
    pub stage: Stage,
    /// Statements drafted, signed or not.
    pub drafted: u64,
    /// What the evidence store holds of what the events name.
    pub evidence: KeptEvidence,
}

impl StoredLedger {
    /// What is known of the chain beside its envelopes.
    pub fn expectation(&self) -> Expectation {
        Expectation {
            incident: Some(self.incident.clone()),
            project: self.project.clone(),
            head: self.chain.head.map(|digest| Head {
                events: self.chain.next_seq,
                digest,
            }),
        }
    }

    /// The stored envelopes, in order.
    pub fn envelopes(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|row| row.envelope.as_slice())
    }
}
