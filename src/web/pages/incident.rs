//! `GET /incidents/{id}`: everything about one incident.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::super::api::{Part, record};
use super::super::explanation;
use super::super::failure::Refusal;
use super::super::shown::{Link, Moment, Shown};
use super::super::{IncidentRecord, WebState};
use super::change::ChangeView;
use super::gate::GateView;
use super::incidents::title;
use super::investigation::{self, DiagnosisView, FailureView, LogView, ReproductionView};
use super::patch::{self, PatchLine};
use super::proof::{self, RunView};
use super::stages::{self, Stages};
use super::{Badge, page, stage_badge, tone, verdict_badge};
use crate::audit::{self, Entry, Report};
use crate::clock::Millis;
use crate::incident::{Fact, FixFact};
use crate::store::{ApprovalRow, ApprovalState};

#[derive(Template)]
#[template(path = "incident.html")]
struct IncidentPage {
    id: String,
    title: Shown,
    project: Shown,
    stage: Badge,
    class: Option<&'static str>,
    opened_at: Moment,
    age: String,
    read_at: Moment,
    explanation: Shown,
    pull_request: Option<Link>,
    stages: Stages,
    failure: FailureView,
    reproduction: Option<ReproductionView>,
    rerun: Option<Shown>,
    log: Option<LogView>,
    diagnosis: Option<DiagnosisView>,
    fix: Option<FixView>,
    gate: Option<GateView>,
    approve: ApproveView,
    attest: AttestView,
    execute: ExecuteView,
    reconcile: ReconcileView,
    timeline: Vec<TimelineLine>,
}

/// The fix with its proof.
struct FixView {
    title: Shown,
    body: Shown,
    branch: Shown,
    base_commit: String,
    commit: String,
    tree: String,
    lines: Option<u64>,
    binary: bool,
    change: ChangeView,
    patch: Vec<PatchLine>,
    runs: Vec<RunView>,
    proven: bool,
    session: Option<Shown>,
}

/// Who was asked and what they said.
struct ApproveView {
    principal: Shown,
    request: String,
    expires_at: Option<Moment>,
    answer: Option<AnswerView>,
    links: Vec<LinkView>,
}

/// The answer.
struct AnswerView {
    decision: &'static str,
    tone: &'static str,
    at: Moment,
    comment: Shown,
    evidence: String,
}

/// One approval link; its address is not known here.
struct LinkView {
    id: String,
    principal: Shown,
    issued_at: Moment,
    expires_at: Moment,
    state: Badge,
}

/// The ledger in short.
struct AttestView {
    verdict: Badge,
    events: Vec<EventLine>,
    failures: usize,
}

/// One signed event in short.
struct EventLine {
    seq: i64,
    kind: Shown,
    role: Shown,
    verdict: Badge,
}

/// What was asked of the provider.
struct ExecuteView {
    method: Option<&'static str>,
    merge_commit: Option<String>,
    /// Attempts and answers, in words.
    steps: Vec<Shown>,
}

/// What was compared.
struct ReconcileView {
    approved: Option<String>,
    observed: Option<String>,
    matches: bool,
    differences: Vec<DifferenceView>,
}

/// One thing that differed.
struct DifferenceView {
    rule: Shown,
    expected: Shown,
    found: Shown,
}

/// One line of the history.
struct TimelineLine {
    at: Moment,
    kind: Shown,
    text: Shown,
}

/// The page of an incident.
pub(in super::super) async fn incident(
    State(state): State<WebState>,
    part: Part,
) -> Result<Response, Refusal> {
    let record = record(&state, part).await?;
    let report = audit::verify(&state.trust, &record.ledger);
    page(&view(&state, &record, &report).await?)
}

async fn view(
    state: &WebState,
    record: &IncidentRecord,
    report: &Report,
) -> Result<IncidentPage, Refusal> {
    let scope = state.store.within(&state.organisation);
    let (snapshot, now) = (&record.snapshot, record.read_at);
    let opened_at = Moment(record.row.opened_at);
    let fix = match snapshot.fix() {
        Some(fix) => {
            let runs = proof::runs(scope, &state.trust, &fix.tests).await?;
            let patch = patch::patch(scope, Some(fix)).await?;
            Some(fix_view(fix, patch, runs))
        }
        None => None,
    };
    Ok(IncidentPage {
        id: record.row.id.to_string(),
        title: title(&snapshot.failure),
        project: project(record),
        stage: stage_badge(record.row.stage),
        class: snapshot.decision().map(|decision| decision.class.as_str()),
        opened_at,
        age: opened_at.distance(now),
        read_at: Moment(now),
        explanation: Shown::line(explanation(record)),
        pull_request: pull_request(record),
        stages: Stages::of(record, report),
        failure: FailureView::from(&snapshot.failure),
        reproduction: investigation::reproduction(scope, &state.trust, snapshot).await?,
        rerun: investigation::rerun(snapshot, now),
        log: investigation::log(scope, snapshot).await?,
        diagnosis: snapshot.diagnosis().map(DiagnosisView::from),
        fix,
        gate: snapshot.decision().map(GateView::new),
        approve: approve(record),
        attest: attest(record, report),
        execute: execute(record),
        reconcile: reconcile(record),
        timeline: record.timeline.iter().map(line).collect(),
    })
}

/// The project's name, or its id when it is gone.
pub(super) fn project(record: &IncidentRecord) -> Shown {
    match &record.project {
        Some(project) => Shown::line(&project.full_name),
        None => Shown::line(&record.row.project),
    }
}

/// The pull request's page at the provider.
pub(super) fn pull_request(record: &IncidentRecord) -> Option<Link> {
    let number = record.snapshot.pull_request()?;
    let address = record.snapshot.pull_request_url().unwrap_or_default();
    Some(Link::new(address, format!("pull request {number}")))
}

fn fix_view(fix: &FixFact, patch: Vec<PatchLine>, runs: Vec<RunView>) -> FixView {
    FixView {
        title: Shown::line(&fix.title),
        body: Shown::block(&fix.body),
        branch: Shown::line(&fix.branch),
        base_commit: fix.base_commit.to_string(),
        commit: fix.commit.to_string(),
        tree: fix.tree.to_string(),
        lines: fix.lines,
        binary: fix.binary == Some(true),
        change: ChangeView::from(&fix.change),
        patch,
        proven: proof::proven(&runs),
        session: investigation::session(fix.session.as_ref()),
        runs,
    }
}

fn approve(record: &IncidentRecord) -> ApproveView {
    let snapshot = &record.snapshot;
    let request = snapshot.request();
    let answer = record.answer.as_ref().map(|answer| AnswerView {
        decision: answer.decision.as_str(),
        tone: match answer.decision {
            crate::approve::HumanDecision::Approve => tone::GOOD,
            crate::approve::HumanDecision::Reject => tone::BAD,
        },
        at: Moment(answer.consumed_at),
        comment: Shown::block(answer.comment.as_deref().unwrap_or_default()),
        evidence: answer.digest().to_string(),
    });
    ApproveView {
        principal: request
            .map(|request| Shown::line(&request.principal))
            .unwrap_or_default(),
        request: request
            .map(|request| request.digest().to_string())
            .unwrap_or_default(),
        expires_at: request.map(|request| Moment(request.binding.expires_at)),
        answer,
        links: record
            .approvals
            .iter()
            .map(|row| link(row, record.read_at))
            .collect(),
    }
}

fn link(row: &ApprovalRow, now: Millis) -> LinkView {
    let (word, tone) = match row.state(now) {
        ApprovalState::Live => ("live", tone::ACTIVE),
        ApprovalState::Used => ("used", tone::GOOD),
        ApprovalState::Revoked => ("revoked", tone::QUIET),
        ApprovalState::Expired => ("expired", tone::QUIET),
    };
    LinkView {
        id: row.id.to_string(),
        principal: Shown::line(&row.principal),
        issued_at: Moment(row.issued_at),
        expires_at: Moment(row.expires_at),
        state: Badge { word, tone },
    }
}

fn attest(record: &IncidentRecord, report: &Report) -> AttestView {
    let rows = record.ledger.rows.iter().zip(&report.events);
    AttestView {
        verdict: verdict_badge(report.verdict),
        events: rows
            .map(|(row, event)| EventLine {
                seq: row.seq,
                kind: Shown::line(&row.kind),
                role: Shown::line(&row.role),
                verdict: verdict_badge(event.verdict),
            })
            .collect(),
        failures: report.failures.len(),
    }
}

fn execute(record: &IncidentRecord) -> ExecuteView {
    let steps = record.snapshot.facts.iter().filter_map(|recorded| {
        Some(Shown::line(match &recorded.fact {
            Fact::Merging {
                execution,
                base_tip,
                ..
            } => format!("{execution}: live equals approved, base at {base_tip}"),
            Fact::MergeAsked { answer, .. } => format!("asked for the merge: {answer}"),
            Fact::MergeVoid { reason, .. } => format!("nothing landed: {reason}"),
            _ => return None,
        }))
    });
    let binding = record.snapshot.binding();
    ExecuteView {
        method: binding.map(|binding| binding.merge_method.as_str()),
        merge_commit: stages::landed(&record.snapshot).map(|landed| landed.commit.to_string()),
        steps: steps.collect(),
    }
}

fn reconcile(record: &IncidentRecord) -> ReconcileView {
    let snapshot = &record.snapshot;
    let landed = stages::landed(snapshot);
    let approved = snapshot
        .binding()
        .map(|binding| binding.change_digest().to_string());
    ReconcileView {
        approved,
        matches: landed.as_ref().is_some_and(|landed| landed.matches),
        observed: landed.map(|landed| landed.observed.to_string()),
        differences: stages::differences(snapshot)
            .iter()
            .map(|difference| DifferenceView {
                rule: Shown::line(&difference.rule),
                expected: Shown::line(&difference.expected),
                found: Shown::line(&difference.found),
            })
            .collect(),
    }
}

fn line(entry: &Entry) -> TimelineLine {
    TimelineLine {
        at: Moment(entry.at),
        kind: Shown::line(&entry.kind),
        text: Shown::line(&entry.text),
    }
}
