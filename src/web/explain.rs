//! Why an incident waits, in words.

use super::IncidentRecord;
use super::shown::Moment;
use crate::incident::{Stage, Step, Waiting, next};

/// What the incident waits for, or why nothing more happens: one or two sentences, which may hold text from outside.
pub fn explanation(record: &IncidentRecord) -> String {
    if record.row.stage.is_final() {
        return ended(record);
    }
    let project = record.project.as_ref();
    let frozen = project.and_then(|project| project.frozen.as_deref());
    if let (Stage::Approved, Some(reason)) = (record.row.stage, frozen) {
        return format!(
            "The project is frozen: {reason}. Nothing of it is merged until a person lifts that with `caretaker project unfreeze`."
        );
    }
    let step = next(&record.snapshot, record.read_at);
    let waiting = coming(record, &step);
    match &record.row.wait {
        Some((until, reason)) if *until > record.read_at && !matches!(step, Step::Wait { .. }) => {
            let until = Moment(*until).written();
            format!("{waiting} It rests until {until}: {reason}.")
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

fn coming(record: &IncidentRecord, step: &Step) -> String {
    match step {
        Step::Reproduce => "Next, its tests run in the sandbox at the failing commit.".to_owned(),
        Step::Rerun => {
            "Next, the provider is asked to run the failed job once more at the same commit."
                .to_owned()
        }
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
        Step::LetGo => {
            "Its evidence was kept as long as the configuration says; next, it is let go."
                .to_owned()
        }
        Step::Close { detail, .. } => format!("Next, it is closed: {detail}."),
        Step::AwaitRecovery => format!(
            "A failure of kind {} is reported, not fixed; it waits for recovery or a person.",
            record.snapshot.failure.kind
        ),
        Step::Wait {
            until,
            why: Waiting::Rerun { run_id, attempt },
        } => format!(
            "It waits for attempt {attempt} of run {run_id}, which runs the failed job again at the same commit, until {}: when it passes, the failure is flaky.",
            Moment(*until).written()
        ),
        Step::Wait {
            until,
            why: Waiting::Answer,
        } => match record.snapshot.request() {
            Some(request) => format!(
                "It waits for an answer from {}, until {}.",
                request.principal,
                Moment(*until).written()
            ),
            None => format!("It waits until {}.", Moment(*until).written()),
        },
        Step::Done => "Nothing more happens by itself.".to_owned(),
    }
}
