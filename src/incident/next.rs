//! The decision table: from everything known to the one next step.

use std::fmt;

use super::{ActiveMerge, ClosedReason, FailureKind, Reproduction, Rerun, Snapshot};
use crate::approve::HumanDecision;
use crate::clock::Millis;
use crate::gate::Verdict;
use crate::id::ApprovalId;

/// What the worker does next: at most one external effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Run the project's tests at the failing commit, in the sandbox.
    Reproduce,
    /// Have the failed job run once more at the provider, at the same commit.
    Rerun,
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
    /// Draft the gaps that let the evidence of a finished incident go.
    LetGo,
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
        /// What for.
        why: Waiting,
    },
    /// Nothing to do any more.
    Done,
}

/// What an incident waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// A person's answer.
    Answer,
    /// Another attempt of the failed run.
    Rerun {
        /// The run.
        run_id: u64,
        /// The attempt.
        attempt: u64,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer => f.write_str("waiting for the owner's answer"),
            Self::Rerun { run_id, attempt } => write!(
                f,
                "waiting for attempt {attempt} of run {run_id}, which runs the failed job again at the same commit"
            ),
        }
    }
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
        .or_else(|| investigation(snapshot, now))
        .or_else(|| proposal(snapshot))
        .unwrap_or_else(|| authorisation(snapshot, now))
}

/// Incidents in which nothing new is decided. Recovery closes whatever has not merged, blocked and escalated ones too.
fn ended(snapshot: &Snapshot) -> Option<Step> {
    if snapshot.closed().is_some() {
        let left = snapshot.pushed()
            && !snapshot.cleaned_up()
            && snapshot.closed().map(|(reason, _)| reason) != Some(ClosedReason::ByPerson);
        return Some(if left { Step::CleanUp } else { over(snapshot) });
    }
    if snapshot.landed().is_some() {
        return Some(over(snapshot));
    }
    if let (Some(run), None) = (snapshot.recovered(), snapshot.active_merge()) {
        // Break it: leave the flake out; what fails and passes at one commit then counts as mended
        // (`worker::flake::a_rerun_that_passes_ends_it_as_flaky`).
        return Some(snapshot.flake().map_or_else(
            || Step::Close {
                reason: ClosedReason::Recovered,
                detail: recovery(snapshot.failure.kind, run),
            },
            flaky,
        ));
    }
    let denied = snapshot
        .decision()
        .is_some_and(|decision| decision.verdict == Verdict::Deny);
    (denied || snapshot.escalation().is_some()).then_some(Step::Done)
}

/// After the end only the evidence is left, once its time is over.
fn over(snapshot: &Snapshot) -> Step {
    if snapshot.evidence_due() && !snapshot.evidence_let_go() {
        Step::LetGo
    } else {
        Step::Done
    }
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

/// How it recovered, in words.
fn recovery(kind: FailureKind, run: u64) -> String {
    match kind {
        FailureKind::Health => "the endpoint answers as expected again".to_owned(),
        FailureKind::SilentWorkflow => "the workflow runs again".to_owned(),
        _ => format!("run {run} of the same job succeeded"),
    }
}

fn flaky(detail: String) -> Step {
    Step::Close {
        reason: ClosedReason::Flaky,
        detail,
    }
}

fn investigation(snapshot: &Snapshot, now: Millis) -> Option<Step> {
    if !snapshot.failure.kind.may_be_code() {
        // Break it: close it here; while an endpoint is down, or a workflow broken, each look then opens another incident
        // (`incident::what_is_no_fault_of_the_code_stays_open_until_it_recovers`).
        return Some(Step::AwaitRecovery);
    }
    match snapshot.reproduction() {
        None => return Some(Step::Reproduce),
        Some(Reproduction::Red { .. }) => {}
        Some(Reproduction::Flaky { .. }) => {
            return Some(flaky(snapshot.flake().unwrap_or_default()));
        }
        Some(Reproduction::Green { command, .. }) => {
            let detail = format!(
                "{} succeeds at the failing commit in the sandbox",
                command.join(" ")
            );
            let reason = ClosedReason::NotReproducible;
            return Some(unconfirmed(snapshot, now, reason, detail));
        }
        Some(Reproduction::Unrunnable { reason }) => {
            let detail = reason.clone();
            return Some(unconfirmed(snapshot, now, ClosedReason::NotCode, detail));
        }
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

/// The sandbox does not show the failure: before the incident is closed, the provider runs the job again, once.
fn unconfirmed(snapshot: &Snapshot, now: Millis, reason: ClosedReason, detail: String) -> Step {
    let rerun = snapshot.rerun();
    match rerun {
        Rerun::Open => Step::Rerun,
        Rerun::Awaited {
            run_id,
            attempt,
            until,
        } if now < until => Step::Wait {
            until,
            why: Waiting::Rerun { run_id, attempt },
        },
        // Break it: answer `Step::Rerun` for an attempt that is overdue; one incident then asks again and again
        // (`incident::flake::of_one_incident_at_most_one_rerun_is_asked_for`).
        _ => Step::Close {
            reason,
            detail: match rerun.in_words(now) {
                Some(words) => format!("{detail}; {words}"),
                None => detail,
            },
        },
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
                why: Waiting::Answer,
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
