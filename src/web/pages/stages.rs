//! The five stages: how far each of them is, and in a sentence what it found.

use super::super::IncidentRecord;
use super::super::shown::{Moment, Shown};
use super::{Badge, tone};
use crate::approve::HumanDecision;
use crate::attest::chain::Verdict as Verification;
use crate::audit::Report;
use crate::change::{Oid, Sha256Digest};
use crate::gate::Verdict;
use crate::incident::{ClosedReason, EscalationReason, Fact, Snapshot};

/// How far a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It did its part.
    Done,
    /// It is being worked on, or waited for.
    Current,
    /// It said no.
    Refused,
    /// Nothing came to it.
    NotReached,
}

impl State {
    const fn badge(self) -> Badge {
        let (word, tone) = match self {
            Self::Done => ("done", tone::GOOD),
            Self::Current => ("current", tone::ACTIVE),
            Self::Refused => ("refused", tone::BAD),
            Self::NotReached => ("not reached", tone::QUIET),
        };
        Badge { word, tone }
    }
}

/// One stage.
pub(super) struct StageView {
    /// Its name, which is also its anchor.
    pub(super) name: &'static str,
    pub(super) state: Badge,
    /// What it found.
    pub(super) finding: Shown,
}

/// What landed.
pub(super) struct Landed {
    pub(super) commit: Oid,
    pub(super) observed: Sha256Digest,
    pub(super) matches: bool,
    pub(super) by_us: bool,
}

/// The last landing that is recorded.
pub(super) fn landed(snapshot: &Snapshot) -> Option<Landed> {
    let mut facts = snapshot.facts.iter().rev();
    facts.find_map(|recorded| match &recorded.fact {
        Fact::Landed {
            execution,
            commit,
            observed,
            matches,
            ..
        } => Some(Landed {
            commit: *commit,
            observed: *observed,
            matches: *matches,
            by_us: execution.is_some(),
        }),
        _ => None,
    })
}

/// All five.
pub(super) struct Stages {
    pub(super) gate: StageView,
    pub(super) approve: StageView,
    pub(super) attest: StageView,
    pub(super) execute: StageView,
    pub(super) reconcile: StageView,
}

impl Stages {
    /// How far each stage of an incident is; `report` is of a verification just now.
    pub(super) fn of(record: &IncidentRecord, report: &Report) -> Self {
        let view = |name, (state, finding): Found| StageView {
            name,
            state: state.badge(),
            finding: Shown::line(finding),
        };
        Self {
            gate: view("gate", gate(record)),
            approve: view("approve", approve(record)),
            attest: view("attest", attest(record, report)),
            execute: view("execute", execute(record)),
            reconcile: view("reconcile", reconcile(record)),
        }
    }

    /// In their order.
    pub(super) const fn each(&self) -> [&StageView; 5] {
        [
            &self.gate,
            &self.approve,
            &self.attest,
            &self.execute,
            &self.reconcile,
        ]
    }
}

type Found = (State, String);

fn found(state: State, finding: &str) -> Found {
    (state, finding.to_owned())
}

const fn is_over(record: &IncidentRecord) -> bool {
    record.row.stage.is_final()
}

fn verdict(record: &IncidentRecord) -> Option<Verdict> {
    let decision = record.snapshot.decision();
    decision.map(|decision| decision.verdict)
}

fn gate(record: &IncidentRecord) -> Found {
    let Some(decision) = record.snapshot.decision() else {
        return if record.snapshot.diagnosis().is_some() && !is_over(record) {
            found(State::Current, "The change is not decided on yet.")
        } else {
            found(State::NotReached, "There is no change to decide on.")
        };
    };
    let class = decision.class;
    match decision.verdict {
        Verdict::Deny => (
            State::Refused,
            format!("Denied ({class}). That is final: no person can approve it."),
        ),
        Verdict::Approve => (
            State::Done,
            format!("A person has to approve this change ({class})."),
        ),
        Verdict::Free => (
            State::Done,
            format!("Free: nobody has to be asked about this change ({class})."),
        ),
    }
}

fn approve(record: &IncidentRecord) -> Found {
    let snapshot = &record.snapshot;
    let closed = snapshot.closed().map(|(reason, _)| reason);
    match (verdict(record), snapshot.request(), snapshot.answer()) {
        (None | Some(Verdict::Deny), ..) => found(State::NotReached, "Nobody was asked."),
        (Some(Verdict::Free), ..) => found(
            State::Done,
            "Not needed: the gate decided that the change is free.",
        ),
        (_, Some(request), Some(HumanDecision::Approve)) => {
            (State::Done, format!("{} approved.", request.principal))
        }
        (_, Some(request), Some(HumanDecision::Reject)) => {
            (State::Refused, format!("{} rejected.", request.principal))
        }
        (_, Some(request), None) if closed == Some(ClosedReason::Expired) => (
            State::Refused,
            format!("{} did not answer in time.", request.principal),
        ),
        (_, Some(request), None) if is_over(record) => (
            State::NotReached,
            format!(
                "{} was asked; the incident ended before an answer.",
                request.principal
            ),
        ),
        (_, Some(request), None) => (
            State::Current,
            format!(
                "{} is asked, until {}.",
                request.principal,
                Moment(request.binding.expires_at).written()
            ),
        ),
        (_, None, _) if is_over(record) => found(State::NotReached, "Nobody was asked."),
        (_, None, _) => found(State::Current, "The question is being prepared."),
    }
}

fn attest(record: &IncidentRecord, report: &Report) -> Found {
    let (signed, drafted) = (record.ledger.rows.len(), record.ledger.drafted);
    let said = format!(
        "{signed} of {drafted} events are signed; verified just now: {}.",
        report.verdict
    );
    if report.verdict == Verification::Invalid {
        return (State::Refused, said);
    }
    if drafted == 0 {
        return found(State::NotReached, "Nothing had to be signed.");
    }
    if record.snapshot.ledger.appended < drafted {
        return (State::Current, said);
    }
    let snapshot = &record.snapshot;
    let answered = snapshot.approval_event().is_some()
        || (snapshot.request().is_none() && snapshot.binding().is_some());
    match (report.verdict, answered || is_over(record)) {
        (Verification::Valid, true) => (State::Done, said),
        (Verification::Valid, false) => (
            State::NotReached,
            format!("{said} What allows the merge is signed next."),
        ),
        _ => (State::Refused, said),
    }
}

fn execute(record: &IncidentRecord) -> Found {
    let snapshot = &record.snapshot;
    if let Some(landed) = landed(snapshot) {
        return if landed.by_us {
            (State::Done, format!("Merged as {}.", landed.commit))
        } else {
            (
                State::NotReached,
                format!(
                    "A person merged it as {}; no merge of ours was asked for.",
                    landed.commit
                ),
            )
        };
    }
    let handed_over = snapshot.escalation().map(|(reason, _)| reason);
    match handed_over {
        Some(EscalationReason::MergeRefused) => {
            return found(State::Refused, "The provider refused the merge.");
        }
        Some(EscalationReason::MergeUnknown) => {
            return found(
                State::Refused,
                "The merge was asked for, and it cannot be told what became of it.",
            );
        }
        Some(EscalationReason::ChangeMismatch) if snapshot.binding().is_some() => {
            return found(
                State::Refused,
                "No merge was asked for: the live change is not the approved one.",
            );
        }
        _ => {}
    }
    if is_over(record) {
        return found(State::NotReached, "Nothing was merged.");
    }
    match (snapshot.active_merge(), record.row.stage) {
        (Some(merge), _) if merge.asked.is_some() => found(
            State::Current,
            "The merge was asked for; what landed is being looked at.",
        ),
        (Some(_), _) => found(State::Current, "The merge is about to be asked for."),
        (None, crate::incident::Stage::Approved) if snapshot.frozen => {
            found(State::Current, "Allowed, but the project is frozen.")
        }
        (None, crate::incident::Stage::Approved) => found(
            State::Current,
            "Allowed; the live change is compared first.",
        ),
        _ => found(State::NotReached, "Nothing is merged yet."),
    }
}

fn reconcile(record: &IncidentRecord) -> Found {
    let snapshot = &record.snapshot;
    let differences = differences(snapshot).len();
    match landed(snapshot) {
        Some(landed) if landed.matches => {
            found(State::Done, "What landed is exactly what was approved.")
        }
        Some(_) => found(State::Refused, "What landed is not what was approved."),
        None if differences > 0 => (
            State::Refused,
            format!("{differences} things are not as they were approved."),
        ),
        None if is_over(record) => found(State::NotReached, "There was nothing to compare."),
        None if snapshot.active_merge().is_some() => (
            State::Current,
            format!(
                "Equal before the merge ({} comparisons); what lands is compared again.",
                snapshot.comparisons()
            ),
        ),
        None => found(State::NotReached, "There is nothing to compare yet."),
    }
}

/// What differed when the incident was handed over.
pub(super) fn differences(snapshot: &Snapshot) -> &[crate::reconcile::Difference] {
    let mut facts = snapshot.facts.iter().rev();
    facts
        .find_map(|recorded| match &recorded.fact {
            Fact::Escalated { differences, .. } => Some(differences.as_slice()),
            _ => None,
        })
        .unwrap_or_default()
}
