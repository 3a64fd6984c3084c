//! Whether an incident's envelopes are a sound chain.
//!
//! [`verify_chain`] is a function of bytes: it keeps nothing, caches nothing and never panics. Its verdict has three
//! values, and nothing found is never valid.

mod attested;
mod report;
mod story;
mod walk;

pub use attested::{Attested, authenticate, authenticate_logged, key_counts};
pub use report::{ChainReport, EventReport, Failure, Head, Refusal, Rule, Verdict};

use super::digest::DigestRef;
use super::predicate::Project;
use super::statement::Event;
use super::trust_root::TrustHistory;
use crate::change::Sha256Digest;
use crate::id::IncidentId;

use walk::Walk;

/// A place in a chain: what the next event's `seq` and `prev` have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Position.
    pub seq: u64,
    /// Digest of the event before.
    pub prev: Option<DigestRef>,
}

impl Link {
    /// The first place.
    pub const FIRST: Self = Self { seq: 0, prev: None };

    /// The place after the end of a chain.
    pub fn after(head: Head) -> Self {
        Self {
            seq: head.events,
            prev: Some(head.digest.into()),
        }
    }
}

/// What is known about a chain from elsewhere. A chain cannot show that its own end was cut off, so whoever knows the
/// head has to say so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expectation {
    /// The incident.
    pub incident: Option<IncidentId>,
    /// The watched repository.
    pub project: Option<Project>,
    /// Number of events and digest of the last one.
    pub head: Option<Head>,
}

/// Whether a statement that is not signed yet continues a chain: its envelopes verify, and it is the event that may follow. `digest` is
/// how others will name it. What a signer asks before it signs.
///
/// # Errors
/// The first thing that does not hold.
pub fn continues<B: AsRef<[u8]>>(
    trust: &TrustHistory,
    envelopes: &[B],
    event: &Event,
    digest: Sha256Digest,
) -> Result<(), Refusal> {
    let block = event.block();
    let expected = Expectation {
        incident: Some(block.incident.clone()),
        project: Some(block.project.clone()),
        head: None,
    };
    let mut walk = Walk::new(trust, &expected);
    for envelope in envelopes {
        walk.take(envelope.as_ref());
    }
    walk.may_follow(event, digest)
}

/// Verifies the stored envelopes of one incident, in order, against a pinned trust root.
pub fn verify_chain<I, B>(trust: &TrustHistory, expected: &Expectation, envelopes: I) -> ChainReport
where
    I: IntoIterator<Item = B>,
    B: AsRef<[u8]>,
{
    let mut walk = Walk::new(trust, expected);
    for envelope in envelopes {
        walk.take(envelope.as_ref());
    }
    walk.finish()
}
