//! Where an incident is: a projection of its facts.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::approve::HumanDecision;
use crate::gate::Verdict;

/// The stage, as shown and queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Observed.
    Detected,
    /// The tests fail in the sandbox too.
    Reproduced,
    /// The coder found a cause.
    Diagnosed,
    /// Policy refused the change: final.
    Blocked,
    /// Policy decided on the exact change.
    Gated,
    /// A pull request is open.
    Proposed,
    /// A person was asked.
    AwaitingApproval,
    /// The change may be merged.
    Approved,
    /// A merge is being asked for.
    Merging,
    /// Merged, compared and signed: final.
    Resolved,
    /// Handed to a person: final for us.
    Escalated,
    /// Ended without our merge: final.
    Closed,
}

impl Stage {
    /// The word used in tables, pages and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Detected => "detected",
            Self::Reproduced => "reproduced",
            Self::Diagnosed => "diagnosed",
            Self::Blocked => "blocked",
            Self::Gated => "gated",
            Self::Proposed => "proposed",
            Self::AwaitingApproval => "awaiting-approval",
            Self::Approved => "approved",
            Self::Merging => "merging",
            Self::Resolved => "resolved",
            Self::Escalated => "escalated",
            Self::Closed => "closed",
        }
    }

    /// Whether a fix is being proposed or merged: another error of the same job is another incident then.
    pub const fn is_proposed_or_later(self) -> bool {
        matches!(
            self,
            Self::Proposed | Self::AwaitingApproval | Self::Approved | Self::Merging
        )
    }

    /// Whether nothing more happens by itself.
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            Self::Blocked | Self::Resolved | Self::Escalated | Self::Closed
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stage that the facts show. A stage that rests on a signature is reached when the signature is in the ledger.
pub fn stage(snapshot: &Snapshot) -> Stage {
    let signed = snapshot.ledger.appended == snapshot.ledger.drafted;
    let verdict = snapshot.decision().map(|decision| decision.verdict);
    if snapshot.closed().is_some() {
        Stage::Closed
    } else if snapshot.escalation().is_some() {
        Stage::Escalated
    } else if snapshot.landed() == Some(true) {
        // Evidence is let go only after everything before was signed; what waits for its signature then are gaps.
        if signed || snapshot.evidence_due() {
            Stage::Resolved
        } else {
            Stage::Merging
        }
    } else if verdict == Some(Verdict::Deny) {
        Stage::Blocked
    } else if snapshot.active_merge().is_some() {
        Stage::Merging
    } else if is_authorised(snapshot, signed) {
        Stage::Approved
    } else if snapshot.request().is_some() {
        Stage::AwaitingApproval
    } else if snapshot.pull_request().is_some() {
        Stage::Proposed
    } else if verdict.is_some() {
        Stage::Gated
    } else if snapshot.diagnosis().is_some() {
        Stage::Diagnosed
    } else if matches!(
        snapshot.reproduction(),
        Some(super::Reproduction::Red { .. })
    ) {
        Stage::Reproduced
    } else {
        Stage::Detected
    }
}

fn is_authorised(snapshot: &Snapshot, signed: bool) -> bool {
    let approved =
        snapshot.approval_event().is_some() && snapshot.answer() == Some(HumanDecision::Approve);
    let free = snapshot.request().is_none() && snapshot.binding().is_some();
    signed && (approved || free)
}
