//! The decision table: from everything known to the one next step.

use super::{ActiveMerge, ClosedReason, FailureKind, Reproduction, Snapshot};
use crate::approve::HumanDecision;
use crate::clock::Millis;
use crate::gate::Verdict;
use crate::id::ApprovalId;

/// What the worker does next: at most one external effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Run the project's tests at the failing commit, in the sandbox.
    Reproduce,
    /// Fetch the failed job's log and take typed facts from it.
    Read,
    /// Ask the coder for the cause.
    Diagnose,
    /// Check the diagnosis's files against the denied paths, before anything else exists.
    Screen,
    /// Let the coder edit a scratch tree; prove and commit the result in the trusted repository.
    Fix,
    /// Draft proposal and decision.
    Propose,
    /// Sign the drafted statement with this number and append it.
    Sign {
        /// Its number in the chain.
        seq: u64,
    },
    /// Push the branch.
    Push,
    /// Open the pull request.
    Open,
    /// Fix what a merge must equal, and who is asked when someone must be.
    Bind,
    /// Make an approval link, revoking older ones.
    MintLink,
    /// Deliver the link.
    SendLink {
        /// Which one.
        approval: ApprovalId,
    },
    /// Draft the approval or rejection that the person's answer calls for.
    DraftApproval,
    /// Compare live with approved.
    Compare {
        /// Comparisons made so far.
        comparisons: u32,
    },
    /// Look whether it landed; if not, compare in memory and ask for the merge once.
    Merge(ActiveMerge),
    /// Look at what landed, without asking again.
    ProveLanding(ActiveMerge),
    /// Close the pull request and delete the branch.
    CleanUp,
    /// End the incident.
    Close {
        /// Why.
        reason: ClosedReason,
        /// In words.
        detail: String,
    },
    /// Reported, and not to be fixed by us: it rests until the same thing succeeds or a person ends it. Were it closed at
    /// once, the next failure of the same cause would raise the alarm again.
    AwaitRecovery,
    /// Nothing to do before then.
    Wait {
        /// When.
        until: Millis,
    },
    /// Nothing to do any more.
    Done,
}

/// The next step. Total: every snapshot has one.
pub fn next(snapshot: &Snapshot, now: Millis) -> Step {
    if snapshot.ledger.appended < snapshot.ledger.drafted {
        return Step::Sign {
            seq: snapshot.ledger.appended,
        };
    }
    ended(snapshot)
        .or_else(|| merging(snapshot))
        .or_else(|| investigation(snapshot))
        .or_else(|| proposal(snapshot))
        .unwrap_or_else(|| authorisation(snapshot, now))
}

/// Incidents in which nothing new is decided. Recovery closes whatever has not merged, blocked and escalated ones too.
fn ended(snapshot: &Snapshot) -> Option<Step> {
    if snapshot.closed().is_some() {
        let left = snapshot.pushed()
            && !snapshot.cleaned_up()
            && snapshot.closed().map(|(reason, _)| reason) != Some(ClosedReason::ByPerson);
        return Some(if left { Step::CleanUp } else { Step::Done });
    }
    if snapshot.landed().is_some() {
        return Some(Step::Done);
    }
    if let (Some(run), None) = (snapshot.recovered(), snapshot.active_merge()) {
        return Some(Step::Close {
            reason: ClosedReason::Recovered,
            detail: match snapshot.failure.kind {
                FailureKind::Health => "the endpoint answers as expected again".to_owned(),
                _ => format!("run {run} of the same job succeeded"),
            },
        });
    }
    let denied = snapshot
        .decision()
        .is_some_and(|decision| decision.verdict == Verdict::Deny);
    (denied || snapshot.escalation().is_some()).then_some(Step::Done)
}

/// A merge that may have been asked for is settled before anything else.
fn merging(snapshot: &Snapshot) -> Option<Step> {
    let merge = snapshot.active_merge()?;
    Some(if merge.asked.is_some() {
        Step::ProveLanding(merge)
    } else {
        Step::Merge(merge)
    })
}

fn investigation(snapshot: &Snapshot) -> Option<Step> {
    if !snapshot.failure.kind.may_be_code() {
        // Break it: close it here; while an endpoint is down, or a workflow broken, each look then opens another incident.
        return Some(Step::AwaitRecovery);
    }
    match snapshot.reproduction() {
        None => return Some(Step::Reproduce),
        Some(Reproduction::Green { command, .. }) => {
            let detail = format!(
                "{} succeeds at the failing commit in the sandbox",
                command.join(" ")
            );
            return Some(Step::Close {
                reason: ClosedReason::NotReproducible,
                detail,
            });
        }
        Some(Reproduction::Unrunnable { reason }) => {
            return Some(Step::Close {
                reason: ClosedReason::NotCode,
                detail: reason.clone(),
            });
        }
        Some(Reproduction::Red { .. }) => {}
    }
    if snapshot.extraction().is_none() {
        Some(Step::Read)
    } else if snapshot.diagnosis().is_none() {
        Some(Step::Diagnose)
    } else if snapshot.screened().is_none() {
        Some(Step::Screen)
    } else if snapshot.fix().is_none() {
        Some(Step::Fix)
    } else {
        None
    }
}

fn proposal(snapshot: &Snapshot) -> Option<Step> {
    if snapshot.decision().is_none() {
        Some(Step::Propose)
    } else if !snapshot.pushed() {
        Some(Step::Push)
    } else if snapshot.pull_request().is_none() {
        Some(Step::Open)
    } else if snapshot.binding().is_none() {
        Some(Step::Bind)
    } else {
        None
    }
}

fn authorisation(snapshot: &Snapshot, now: Millis) -> Step {
    let expires_at = snapshot.binding().map_or(now, |binding| binding.expires_at);
    let expired = now >= expires_at;
    let expire = || Step::Close {
        reason: ClosedReason::Expired,
        detail: format!("nobody approved and merged before {expires_at}"),
    };
    match (snapshot.request().is_some(), snapshot.answer()) {
        _ if expired => expire(),
        (true, None) => match &snapshot.link {
            None => Step::MintLink,
            Some(link) if !snapshot.link_sent(&link.approval) => Step::SendLink {
                approval: link.approval.clone(),
            },
            Some(link) => Step::Wait {
                until: link.expires_at.min(expires_at),
            },
        },
        (true, Some(_)) if snapshot.approval_event().is_none() => Step::DraftApproval,
        (true, Some(HumanDecision::Reject)) => Step::Close {
            reason: ClosedReason::Rejected,
            detail: "the owner rejected the change".to_owned(),
        },
        (true, Some(HumanDecision::Approve)) | (false, _) => Step::Compare {
            comparisons: snapshot.comparisons(),
        },
    }
}
