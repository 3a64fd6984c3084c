//! Why an incident waits, in words.

use super::IncidentRecord;
use super::shown::Moment;
use crate::incident::{Stage, Step, next};

/// What the incident waits for, or why nothing more happens: one or two sentences, which may hold text from outside.
pub fn explanation(record: &IncidentRecord) -> String {
    let frozen = record
        .project
        .as_ref()
        .and_then(|project| project.frozen.as_deref());
    let waiting = match (record.row.stage, frozen) {
        (stage, _) if stage.is_final() => ended(record),
        (Stage::Approved, Some(reason)) => format!(
            "The project is frozen: {reason}. Nothing of it is merged until a person lifts that with `caretaker project unfreeze`."
        ),
        _ => next_step(record),
    };
    match &record.row.wait {
        Some((until, reason)) if !record.row.stage.is_final() && *until > record.read_at => {
            format!(
                "{waiting} It rests until {}: {reason}.",
                Moment(*until).written()
            )
        }
        _ if record.row.attempts > 0 && !record.row.stage.is_final() => {
            let attempts = record.row.attempts;
            format!("{waiting} The last {attempts} attempts at it failed; it is tried again.")
        }
        _ => waiting,
    }
}

fn ended(record: &IncidentRecord) -> String {
    let snapshot = &record.snapshot;
    match record.row.stage {
        Stage::Resolved => "Nothing is left to do: it is merged, and what landed is what was approved.".to_owned(),
        Stage::Blocked => {
            "The policy refuses the change, and that is final. A person has to fix this one; the incident closes when the job succeeds again.".to_owned()
        }
        Stage::Escalated => match snapshot.escalation() {
            Some((reason, detail)) => {
                format!("A person has to look ({}): {detail}", reason.as_str())
            }
            None => "A person has to look.".to_owned(),
        },
        _ => match snapshot.closed() {
            Some((reason, detail)) => {
                format!("It ended without a merge of ours ({}): {detail}", reason.as_str())
            }
            None => "It ended without a merge of ours.".to_owned(),
        },
    }
}

fn next_step(record: &IncidentRecord) -> String {
    let snapshot = &record.snapshot;
    match next(snapshot, record.read_at) {
        Step::Reproduce => "Next, its tests run in the sandbox at the failing commit.".to_owned(),
        Step::Read => "Next, the failed job's log is read for facts.".to_owned(),
        Step::Diagnose => "Next, the coder is asked for the cause.".to_owned(),
        Step::Screen => {
            "Next, the files that the coder means to change are checked against the denied paths."
                .to_owned()
        }
        Step::Fix => "Next, the coder makes a fix, which its tests must prove.".to_owned(),
        Step::Propose => "Next, the gate decides on the exact change.".to_owned(),
        Step::Sign { seq } => format!("Next, event {seq} of the ledger is signed."),
        Step::Push => "Next, the branch with the fix is pushed.".to_owned(),
        Step::Open => "Next, the pull request is opened.".to_owned(),
        Step::Bind => "Next, it is fixed what exactly a merge must equal.".to_owned(),
        Step::MintLink | Step::SendLink { .. } => "Next, an approval link is sent.".to_owned(),
        Step::DraftApproval => {
            "It is answered. Next, the answer is written down for signing.".to_owned()
        }
        Step::Compare { .. } => {
            "Next, the live pull request is compared with what may be merged.".to_owned()
        }
        Step::Merge(_) => "Next, the merge is asked for, once.".to_owned(),
        Step::ProveLanding(_) => {
            "The merge was asked for. Next, what landed is compared with what was approved."
                .to_owned()
        }
        Step::CleanUp => "Next, the pull request is closed and its branch deleted.".to_owned(),
        Step::Close { detail, .. } => format!("Next, it is closed: {detail}."),
        Step::Wait { until } => match snapshot.request() {
            Some(request) => format!(
                "It waits for an answer from {}, until {}.",
                request.principal,
                Moment(until).written()
            ),
            None => format!("It waits until {}.", Moment(until).written()),
        },
        Step::Done => "Nothing more happens by itself.".to_owned(),
    }
}
