//! Whether an incident's envelopes are a sound chain.
//!
//! [`verify_chain`] is a function of bytes: it keeps nothing, caches nothing and never panics. Its verdict has three
//! values, and nothing found is never valid.

mod attested;
mod report;
mod step;
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

pub use step::Step;
use walk::Walk;
pub use walk::{Prepared, Word};

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
    let mut walk = Walk::new(&expected);
    for envelope in envelopes {
        walk.take(Prepared::of(trust, envelope.as_ref()));
    }
    walk.may_follow(event, digest)
}

/// A chain that is verified as its events come, in memory that does not grow with its length.
pub struct GrowingChain {
    walk: Walk<'static>,
}

/// What is known beforehand of a chain that is met in a log.
static NOTHING_KNOWN: Expectation = Expectation {
    incident: None,
    project: None,
    head: None,
};

impl GrowingChain {
    /// A chain without events.
    pub fn new() -> Self {
        Self {
            walk: Walk::new(&NOTHING_KNOWN),
        }
    }

    /// Takes the next event: the verdict on it, and what does not hold about it.
    pub fn take(&mut self, prepared: Prepared) -> (Verdict, Vec<Failure>) {
        self.walk.take(prepared);
        self.walk.drain()
    }

    /// Takes the next event, which is authentic, and says what does not hold about it.
    pub fn step(&mut self, step: Step) -> Vec<Refusal> {
        self.walk.step(step)
    }

    /// Whether it has ended: only escalations and gaps may follow.
    pub const fn is_closed(&self) -> bool {
        self.walk.is_closed()
    }
}

impl Default for GrowingChain {
    fn default() -> Self {
        Self::new()
    }
}

/// Verifies the stored envelopes of one incident, in order, against a pinned trust root.
pub fn verify_chain<I, B>(trust: &TrustHistory, expected: &Expectation, envelopes: I) -> ChainReport
where
    I: IntoIterator<Item = B>,
    B: AsRef<[u8]>,
{
    let envelopes = envelopes.into_iter();
    let prepared = envelopes.map(|envelope| Prepared::of(trust, envelope.as_ref()));
    verify_prepared(expected, prepared)
}

/// Verifies the chain of envelopes that were judged one by one.
pub fn verify_prepared(
    expected: &Expectation,
    prepared: impl IntoIterator<Item = Prepared>,
) -> ChainReport {
    let mut walk = Walk::new(expected);
    prepared
        .into_iter()
        .for_each(|prepared| walk.take(prepared));
    walk.finish()
}
