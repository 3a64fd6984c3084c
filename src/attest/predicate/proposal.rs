//! `proposal`: a fix, or the files of one that does not exist yet.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, List, Text};
use super::gate_outcome::ReceiptRef;
use super::{Class, EventBlock, PredicateError, Target, require};
use crate::change::{Oid, Sha256Digest};

/// A proposal, signed by the proposer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The event.
    pub event: EventBlock,
    /// The exact change; only files when it was denied before anything was committed.
    pub target: Target,
    /// What it was made on.
    pub base: Base,
    /// SHA-256 of the landed commit's title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<DigestRef>,
    /// SHA-256 of the landed commit's body, without `Caretaker-*` trailers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<DigestRef>,
    /// What failed.
    pub failure: Failure,
    /// Why it failed.
    pub diagnosis: Diagnosis,
    /// Who made the change.
    pub agent: Agent,
    /// Digest of the signed context manifest: what the diagnosis was fed.
    pub context_manifest: DigestRef,
    /// Digests of the signed test results, red first.
    pub tests: List<DigestRef>,
    /// SHA-256 of the project's intent document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_document: Option<DigestRef>,
    /// The blast radius as the proposer saw it; the decision's is the one that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// The gated session that made the change; absent where the agent calls no tools that a gate could be asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<GatedSession>,
}

impl Proposal {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        self.target.check()?;
        self.session.as_ref().map_or(Ok(()), GatedSession::check)
    }
}

/// A session of an agent whose calls of tools went through the gate. What it names by digest is kept as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GatedSession {
    /// Its id.
    pub id: Label,
    /// SHA-256 of its policy.
    pub policy: DigestRef,
    /// SHA-256 of the capability tokens that it held.
    pub tokens: DigestRef,
    /// The last of its receipts, and how many there are with the root.
    pub receipts: ReceiptRef,
    /// Calls of tools, by the agent's own count.
    pub calls: u64,
    /// SHA-256 of the receipts, one a line.
    pub record: DigestRef,
    /// SHA-256 of the list of the signed outcomes, one for each receipt of a call.
    pub outcomes: DigestRef,
    /// The list of the signed scores, one for each call that was held against the intent; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<ScoreList>,
    /// SHA-256 of what the required checks came to when they were run again after the session.
    pub completion: DigestRef,
    /// Whether the session ran outside the sandbox, where an agent could get around the gate.
    pub advisory: bool,
}

impl GatedSession {
    fn check(&self) -> Result<(), PredicateError> {
        self.receipts.check()?;
        // Break it: leave this out; `attest::predicates::a_session_with_fewer_receipts_than_calls_is_refused` fails.
        require(
            self.receipts.count > self.calls,
            "session.receipts.count",
            "fewer receipts than calls and the root",
        )?;
        let Some(scores) = &self.scores else {
            return Ok(());
        };
        // Break it: leave this out; `attest::predicates::a_session_with_more_scores_than_receipts_of_calls_is_refused` fails.
        require(
            (1..self.receipts.count).contains(&scores.count) && scores.count <= MOST_CALLS,
            "session.scores.count",
            "no scores, more than there are receipts beside the root, or more than are signed of one session",
        )
    }
}

/// Calls of one session that are signed one by one, at most.
pub const MOST_CALLS: u64 = 4_096;

/// A list of signed scores, and how many it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScoreList {
    /// SHA-256 of the list.
    pub sha256: Sha256Digest,
    /// Its length, from 1 to 4096.
    pub count: u64,
}

/// The state a change was made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Base {
    /// The branch, without `refs/heads/`.
    #[serde(rename = "ref")]
    pub branch: Text,
    /// The commit.
    pub commit: Oid,
}

/// The cause of a failure, as detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// Steps ran and one failed.
    Code,
    /// Nothing ran.
    NeverStarted,
    /// The time was up.
    Timeout,
    /// The workflow file is not valid.
    WorkflowInvalid,
    /// An expected run did not happen.
    SilentWorkflow,
    /// Fails and passes at the same commit.
    Flaky,
    /// A health endpoint.
    Health,
    /// None of these.
    Unknown,
}

/// The failure that the incident is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Its cause.
    pub kind: FailureKind,
    /// Where it can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Text>,
    /// SHA-256 of the raw log or answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<DigestRef>,
}

/// Why it failed, as the agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// SHA-256 of the whole diagnosis.
    pub sha256: Sha256Digest,
    /// Its beginning.
    pub summary: Text,
}

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The adapter.
    pub id: Label,
    /// The model, if one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
}
