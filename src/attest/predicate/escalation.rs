//! `escalation`: why a person has to look.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{List, Text};
use super::{EventBlock, EvidenceRef};

/// Why a person has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EscalationReason {
    /// The live change is not the approved one.
    ChangeMismatch,
    /// Nobody answered in time.
    ApprovalExpired,
    /// A commit or review of a person voided the approval.
    ApprovalVoided,
    /// A role's signature could not be made.
    SigningFailed,
    /// A required anchor did not answer.
    AnchorFailed,
    /// A commit on the base has no proposal.
    UnloggedMerge,
    /// The agent drifted from its intent.
    Drift,
    /// A stored chain does not verify.
    LedgerBroken,
    /// A key was revoked.
    KeyRevoked,
    /// The base no longer holds what was approved against.
    BaseMoved,
    /// The head is no longer the approved commit.
    HeadMoved,
    /// The provider refused the merge.
    MergeRefused,
    /// Required checks are not green.
    ChecksNotGreen,
    /// What landed is not what was approved.
    ExecutedDiffers,
    /// The failure does not show in the sandbox.
    NotReproducible,
    /// No fix in code would help.
    NotCode,
    /// No fix passed red-then-green.
    FixFailed,
    /// The tests of the fix cannot be separated from it.
    TestsInseparable,
    /// The agent's budget is used up.
    BudgetSpent,
    /// A name or byte that cannot be proposed.
    NotRepresentable,
    /// The provider does not let us do what is needed.
    PermissionMissing,
    /// A person took over.
    TakenOver,
    /// Tried as often as allowed.
    RetriesSpent,
    /// None of these; `detail` says what.
    Other,
}

/// An escalation, signed by the executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Escalation {
    /// The event.
    pub event: EventBlock,
    /// Why.
    pub reason: EscalationReason,
    /// Whether it voids every approval and every decision `free` before it.
    pub blocks: bool,
    /// What was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<DigestRef>,
    /// What was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<DigestRef>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
    /// Digest of the proposal concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<DigestRef>,
    /// What shows it.
    pub evidence: List<EvidenceRef>,
}
