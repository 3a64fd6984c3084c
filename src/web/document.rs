//! Incidents as JSON: what `incident show --json` prints and `/api/v1/incidents/{id}` answers.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{IncidentRecord, explanation};
use crate::approve::HumanDecision;
use crate::attest::{SignedDocument, TrustHistory};
use crate::audit::{self, Entry, StoredLedger};
use crate::change::{ChangeDocument, Oid, Sha256Digest};
use crate::clock::Millis;
use crate::gate::Class;
use crate::id::{IncidentId, ProjectId};
use crate::incident::{ClosedReason, DiagnosisFact, Fact, Failure, Reproduction, Stage};
use crate::reconcile::Difference;
use crate::store::IncidentRow;

/// A moment as JSON has it: RFC 3339, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(pub Millis);

impl Serialize for Moment {
    /// The text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// One incident. Absent parts are null.
#[derive(Debug, Clone, Serialize)]
pub struct IncidentDocument {
    /// The incident.
    pub id: IncidentId,
    /// Its project.
    pub project: ProjectId,
    /// Where it is.
    pub stage: Stage,
    /// Why it ended without our merge.
    pub closed_reason: Option<ClosedReason>,
    /// The blast radius, once decided.
    pub class: Option<Class>,
    /// Why it waits, in words.
    pub explanation: String,
    /// When it was opened.
    pub opened_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
    /// What was observed.
    pub failure: Failure,
    /// How trying it in the sandbox ended.
    pub reproduction: Option<Reproduction>,
    /// What came of running the failed job again at the provider, in words; null when that never was a question.
    pub rerun: Option<String>,
    /// What the coder found.
    pub diagnosis: Option<DiagnosisFact>,
    /// The fix.
    pub change: Option<ChangePart>,
    /// What the gate decided, as `gate check --json` prints it.
    pub decision: Option<Value>,
    /// The question put to a person, and the answer.
    pub approval: Option<ApprovalPart>,
    /// The pull request, and what landed.
    pub execution: Option<ExecutionPart>,
    /// Why it was handed to a person.
    pub escalation: Option<EscalationPart>,
    /// The history, oldest first.
    pub timeline: Vec<Entry>,
}

/// The fix: the change document with what it belongs to.
#[derive(Debug, Clone, Serialize)]
pub struct ChangePart {
    /// Entries, count and digest.
    #[serde(flatten)]
    pub change: ChangeDocument,
    /// Its branch.
    pub branch: String,
    /// The commit it starts from.
    pub base_commit: Oid,
    /// Its one commit.
    pub commit: Oid,
    /// Title of pull request and landed commit.
    pub title: String,
    /// Body of the landed commit.
    pub body: String,
    /// Signed test results: red, green, and the base's tests on the fix.
    pub tests: Vec<Sha256Digest>,
}

/// The question and the answer.
#[derive(Debug, Clone, Serialize)]
pub struct ApprovalPart {
    /// The answer; null while nobody answered.
    pub decision: Option<HumanDecision>,
    /// Who was asked.
    pub principal: String,
    /// Digest of the question.
    pub request: Sha256Digest,
    /// Digest of the change that it is about.
    pub digest: Sha256Digest,
    /// When it was answered.
    pub answered_at: Option<Moment>,
    /// Until when it counts.
    pub expires_at: Moment,
    /// The person's remark.
    pub comment: Option<String>,
}

/// The pull request and what became of it.
#[derive(Debug, Clone, Serialize)]
pub struct ExecutionPart {
    /// Its number.
    pub pull_request: u64,
    /// Its page.
    pub url: String,
    /// What landed; null before.
    pub merge_commit: Option<Oid>,
    /// Digest of what landed.
    pub observed: Option<Sha256Digest>,
    /// Whether that is what was approved.
    pub matches: Option<bool>,
    /// Whether it was our merge, not a person's.
    pub by_us: Option<bool>,
}

/// A hand-over.
#[derive(Debug, Clone, Serialize)]
pub struct EscalationPart {
    /// Why.
    pub reason: &'static str,
    /// In words.
    pub detail: String,
    /// What differed.
    pub differences: Vec<Difference>,
}

/// Makes the document of an incident.
pub fn incident_document(record: &IncidentRecord) -> IncidentDocument {
    let snapshot = &record.snapshot;
    IncidentDocument {
        id: record.row.id.clone(),
        project: record.row.project.clone(),
        stage: record.row.stage,
        closed_reason: record.row.closed_reason,
        class: snapshot.decision().map(|decision| decision.class),
        explanation: explanation(record),
        opened_at: Moment(record.row.opened_at),
        updated_at: Moment(record.row.updated_at),
        failure: snapshot.failure.clone(),
        reproduction: snapshot.reproduction().cloned(),
        rerun: snapshot.rerun_in_words(record.read_at),
        diagnosis: snapshot.diagnosis().cloned(),
        change: change(record),
        decision: snapshot
            .decision()
            .map(|decision| decision.document.clone()),
        approval: approval(record),
        execution: execution(record),
        escalation: escalation(record),
        timeline: record.timeline.clone(),
    }
}

fn change(record: &IncidentRecord) -> Option<ChangePart> {
    let fix = record.snapshot.fix()?;
    Some(ChangePart {
        change: fix.change.clone(),
        branch: fix.branch.clone(),
        base_commit: fix.base_commit,
        commit: fix.commit,
        title: fix.title.clone(),
        body: fix.body.clone(),
        tests: fix.tests.clone(),
    })
}

fn approval(record: &IncidentRecord) -> Option<ApprovalPart> {
    let request = record.snapshot.request()?;
    let answer = record.answer.as_ref();
    Some(ApprovalPart {
        decision: record.snapshot.answer(),
        principal: request.principal.to_string(),
        request: request.digest(),
        digest: request.binding.change_digest(),
        answered_at: answer.map(|answer| Moment(answer.consumed_at)),
        expires_at: Moment(request.binding.expires_at),
        comment: answer.and_then(|answer| answer.comment.clone()),
    })
}

fn execution(record: &IncidentRecord) -> Option<ExecutionPart> {
    let snapshot = &record.snapshot;
    let mut part = ExecutionPart {
        pull_request: snapshot.pull_request()?,
        url: snapshot.pull_request_url().unwrap_or_default().to_owned(),
        merge_commit: None,
        observed: None,
        matches: None,
        by_us: None,
    };
    for recorded in &snapshot.facts {
        if let Fact::Landed {
            execution,
            commit,
            observed,
            matches,
            ..
        } = &recorded.fact
        {
            part.merge_commit = Some(*commit);
            part.observed = Some(*observed);
            part.matches = Some(*matches);
            part.by_us = Some(execution.is_some());
        }
    }
    Some(part)
}

fn escalation(record: &IncidentRecord) -> Option<EscalationPart> {
    let mut facts = record.snapshot.facts.iter().rev();
    facts.find_map(|recorded| match &recorded.fact {
        Fact::Escalated {
            reason,
            detail,
            differences,
        } => Some(EscalationPart {
            reason: reason.as_str(),
            detail: detail.clone(),
            differences: differences.clone(),
        }),
        _ => None,
    })
}

/// What `incident list --json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct IncidentsDocument {
    /// Newest first.
    pub incidents: Vec<IncidentLine>,
}

/// One incident of the list.
#[derive(Debug, Clone, Serialize)]
pub struct IncidentLine {
    /// The incident.
    pub id: IncidentId,
    /// Its project.
    pub project: ProjectId,
    /// Where it is.
    pub stage: Stage,
    /// Why it ended without our merge.
    pub closed_reason: Option<ClosedReason>,
    /// What was observed.
    pub failure: Failure,
    /// When it was opened.
    pub opened_at: Moment,
    /// When it last changed.
    pub updated_at: Moment,
}

/// Makes the document of a list.
pub fn incidents_document(rows: &[IncidentRow]) -> IncidentsDocument {
    let line = |row: &IncidentRow| IncidentLine {
        id: row.id.clone(),
        project: row.project.clone(),
        stage: row.stage,
        closed_reason: row.closed_reason,
        failure: row.failure.clone(),
        opened_at: Moment(row.opened_at),
        updated_at: Moment(row.updated_at),
    };
    IncidentsDocument {
        incidents: rows.iter().map(line).collect(),
    }
}

/// A ledger with the verdict of this read: the members of `ledger verify --json`, and what was verified.
#[derive(Debug, Clone, Serialize)]
pub struct LedgerDocument {
    /// The incident.
    pub incident: IncidentId,
    /// The stage that the ledger has to carry.
    pub stage: Stage,
    /// Verdict, events, failures, gaps, checkpoint.
    #[serde(flatten)]
    pub report: audit::Report,
    /// The stored envelopes in order, so that a stranger can verify them; null where one is not even an envelope.
    pub envelopes: Vec<Option<Value>>,
}

/// Verifies a ledger now and makes its document.
pub fn ledger_document(trust: &TrustHistory, ledger: &StoredLedger) -> LedgerDocument {
    LedgerDocument {
        incident: ledger.incident.clone(),
        stage: ledger.stage,
        report: audit::verify(trust, ledger),
        envelopes: ledger.envelopes().map(envelope).collect(),
    }
}

fn envelope(bytes: &[u8]) -> Option<Value> {
    SignedDocument::parse(bytes).ok()?;
    serde_json::from_slice(bytes).ok()
}
