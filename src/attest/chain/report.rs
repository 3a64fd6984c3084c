//! What verification says.

use std::fmt;

use serde::Serialize;

use super::super::keys::KeyId;
use super::super::role::{PredicateType, Role};
use super::super::statement::Event;
use crate::change::Sha256Digest;

/// The outcome of a verification. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Everything that was to be checked holds.
    Valid,
    /// Something needed for a check is missing.
    CannotVerify,
    /// Something does not hold.
    Invalid,
}

impl Verdict {
    /// The word in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::CannotVerify => "cannot-verify",
            Self::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What a failure is against. The words are part of the output's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The stored bytes are the one serialisation of an envelope.
    Envelope,
    /// The envelope names a key of the trust root.
    Key,
    /// The signature is that key's.
    Signature,
    /// The payload is a statement of a known kind that does not contradict itself.
    Statement,
    /// The statement is one of a chain.
    Kind,
    /// The key's role is the one that signs this kind.
    Role,
    /// The event names a trust root that is held.
    TrustRoot,
    /// The event falls into its key's validity.
    KeyWindow,
    /// The key was not revoked.
    KeyRevoked,
    /// All events are of one incident, the expected one.
    Incident,
    /// All events are of one project, the expected one.
    Project,
    /// Event ids are unique.
    EventId,
    /// Positions are contiguous from 0.
    Seq,
    /// Each event names the digest of the one before.
    Prev,
    /// What an event refers to is in the chain before it.
    Reference,
    /// Events follow each other in an allowed order.
    Order,
    /// The change is the same from proposal to execution.
    Change,
    /// The chain ends where it is known to end.
    Head,
    /// There is something to verify.
    Empty,
}

impl Rule {
    /// The word in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Statement => "statement",
            Self::Kind => "kind",
            Self::Role => "role",
            Self::TrustRoot => "trust-root",
            Self::KeyWindow => "key-window",
            Self::KeyRevoked => "key-revoked",
            Self::Incident => "incident",
            Self::Project => "project",
            Self::EventId => "event-id",
            Self::Seq => "seq",
            Self::Prev => "prev",
            Self::Reference => "reference",
            Self::Order => "order",
            Self::Change => "change",
            Self::Head => "head",
            Self::Empty => "empty",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One thing that does not hold, or cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whether it is wrong or only cannot be checked; never valid.
    pub verdict: Verdict,
    /// The rule.
    pub rule: Rule,
    /// What was expected.
    pub expected: String,
    /// What was found, made printable.
    pub found: String,
}

impl Refusal {
    pub(super) fn invalid(
        rule: Rule,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Invalid,
            rule,
            expected: expected.into(),
            found: found.into(),
        }
    }

    pub(super) fn unverifiable(
        rule: Rule,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::CannotVerify,
            rule,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}: expected {}, found {}",
            self.rule, self.expected, self.found
        )
    }
}

/// A [`Refusal`] and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Position in what was given, from 0; one past the last for what concerns the whole chain.
    pub seq: u64,
    /// The rule.
    pub rule: Rule,
    /// What was expected.
    pub expected: String,
    /// What was found, made printable.
    pub found: String,
}

/// What verification says about one event. Members beyond `seq` are there as far as they could be established.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EventReport {
    /// Position in what was given, from 0.
    pub seq: u64,
    /// Its kind, once it is authentic.
    #[serde(rename = "type")]
    pub kind: Option<PredicateType>,
    /// The role whose key signed it, once it is authentic.
    pub role: Option<Role>,
    /// The key the envelope names.
    pub keyid: Option<KeyId>,
    /// The digest of its pre-authentication encoding.
    #[serde(skip)]
    pub digest: Option<Sha256Digest>,
    /// The verdict on this event.
    pub verdict: Verdict,
    /// The first failure, or nothing.
    pub reason: Option<String>,
    /// What it says, once it is authentic. Authentic is not yet valid: look at `verdict`.
    #[serde(skip)]
    pub event: Option<Event>,
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Head {
    /// Number of events.
    pub events: u64,
    /// Digest of the last one.
    pub digest: Sha256Digest,
}

/// What verification says about a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// The verdict: the worst of all events' and of the chain's own. An empty chain cannot be verified.
    pub verdict: Verdict,
    /// One report for each envelope given.
    pub events: Vec<EventReport>,
    /// Everything that does not hold or cannot be checked.
    pub failures: Vec<Failure>,
    /// The end of what was given, if its last envelope could be read.
    #[serde(skip)]
    pub head: Option<Head>,
    /// Positions of the events that say that evidence was lost.
    pub gaps: Vec<u64>,
}
