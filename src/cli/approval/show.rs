//! Questions in words and in JSON.

use serde::Serialize;

use crate::approve::{ApprovalRequest, Binding, HumanDecision};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::cli::incident::{entries, paths};
use crate::cli::words::{entry, wrapped};
use crate::id::{IncidentId, ProjectId};
use crate::store::{ApprovalRow, ApprovalState};
use crate::web::{IncidentRecord, explanation};

/// The question that an incident asks.
///
/// # Errors
/// It asks none; why, in words.
pub(super) fn request(record: &IncidentRecord) -> anyhow::Result<&ApprovalRequest> {
    record.snapshot.request().ok_or_else(|| {
        anyhow::anyhow!(
            "nobody is asked about {}, which is {}. {}",
            record.row.id,
            record.row.stage,
            wrapped(&explanation(record)).join(" ")
        )
    })
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It waits for its answer.
    Waiting,
    /// It was answered.
    Answered,
    /// The incident ended without an answer.
    Over,
    /// Nobody answered in time.
    Expired,
}

impl State {
    fn of(record: &IncidentRecord, request: &ApprovalRequest) -> Self {
        if record.snapshot.answer().is_some() {
            Self::Answered
        } else if record.read_at >= request.binding.expires_at {
            Self::Expired
        } else if record.row.stage.is_final() {
            Self::Over
        } else {
            Self::Waiting
        }
    }
}

/// The newest link.
#[derive(Debug, Serialize)]
struct LinkPart {
    state: ApprovalState,
    sent: bool,
    issued_at: String,
    expires_at: String,
}

impl LinkPart {
    fn of(record: &IncidentRecord) -> Option<Self> {
        let link: &ApprovalRow = record.approvals.last()?;
        Some(Self {
            state: link.state(record.read_at),
            sent: record.snapshot.link_sent(&link.id),
            issued_at: link.issued_at.to_string(),
            expires_at: link.expires_at.to_string(),
        })
    }
}

/// A question as `approval list --json` and `approval show --json` print it. Absent parts are null.
#[derive(Debug, Serialize)]
struct Question<'a> {
    incident: &'a IncidentId,
    project: &'a ProjectId,
    state: State,
    decision: Option<HumanDecision>,
    principal: &'a str,
    /// Digest of the question.
    request: Sha256Digest,
    /// Digest of the change.
    digest: Sha256Digest,
    title: &'a str,
    pull_request: u64,
    url: Option<&'a str>,
    expires_at: String,
    answered_at: Option<String>,
    comment: Option<&'a str>,
    link: Option<LinkPart>,
}

impl<'a> Question<'a> {
    fn of(record: &'a IncidentRecord, request: &'a ApprovalRequest) -> Self {
        let answer = record.answer.as_ref();
        Self {
            incident: &record.row.id,
            project: &record.row.project,
            state: State::of(record, request),
            decision: record.snapshot.answer(),
            principal: request.principal.as_str(),
            request: request.digest(),
            digest: request.binding.change_digest(),
            title: &request.binding.title,
            pull_request: request.binding.pull_request,
            url: record.snapshot.pull_request_url(),
            expires_at: request.binding.expires_at.to_string(),
            answered_at: answer.map(|answer| answer.consumed_at.to_string()),
            comment: answer.and_then(|answer| answer.comment.as_deref()),
            link: LinkPart::of(record),
        }
    }
}

/// A question with the binding: exactly the JSON over which its digest is taken, times in milliseconds as there.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    question: Question<'a>,
    binding_digest: Sha256Digest,
    binding: &'a Binding,
}

/// One question as JSON.
pub(super) fn json(record: &IncidentRecord, request: &ApprovalRequest) -> anyhow::Result<String> {
    let shown = Shown {
        question: Question::of(record, request),
        binding_digest: request.binding.digest(),
        binding: &request.binding,
    };
    Ok(serde_json::to_string(&shown)?)
}

/// Several questions as JSON.
pub(super) fn list_json(records: &[IncidentRecord]) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct List<'a> {
        approvals: Vec<Question<'a>>,
    }
    let questions = records.iter().filter_map(|record| {
        let request = record.snapshot.request()?;
        Some(Question::of(record, request))
    });
    let list = List {
        approvals: questions.collect(),
    };
    Ok(serde_json::to_string(&list)?)
}

/// Several questions, one a line.
pub(super) fn list(records: &[IncidentRecord]) -> String {
    let line = |record: &IncidentRecord| {
        let request = record.snapshot.request()?;
        Some(format!(
            "{}  {}  {}",
            record.row.id,
            answer(record, request),
            shown(&request.binding.title)
        ))
    };
    let lines: Vec<String> = records.iter().filter_map(line).collect();
    if lines.is_empty() {
        return "nothing waits for an answer".to_owned();
    }
    lines.join("\n")
}

/// Who was asked, and what became of it.
fn answer(record: &IncidentRecord, request: &ApprovalRequest) -> String {
    let principal = &request.principal;
    let until = request.binding.expires_at;
    match (State::of(record, request), record.snapshot.answer()) {
        (_, Some(decision)) => format!("answered by {principal}: {}", decision.as_str()),
        (State::Expired, _) => format!("{principal} did not answer before {until}"),
        (State::Over, _) => format!("{principal} need not answer any more"),
        _ => format!("{principal} is asked, until {until}"),
    }
}

/// One question whole.
pub(super) fn one(record: &IncidentRecord, request: &ApprovalRequest) -> String {
    let binding = &request.binding;
    let mut lines = vec![
        entry("incident", record.row.id.as_str()),
        entry("asked", &answer(record, request)),
    ];
    let comment = record.answer.as_ref();
    if let Some(comment) = comment.and_then(|answer| answer.comment.as_deref()) {
        lines.push(entry("remark", comment));
    }
    lines.push(entry("link", &link(record)));
    let url = record.snapshot.pull_request_url().unwrap_or_default();
    lines.extend([
        entry("title", &binding.title),
        entry("body", &binding.body),
        entry("pull request", &format!("{}, {url}", binding.pull_request)),
        entry(
            "repository",
            &format!("number {} at {}", binding.repository_id, binding.host),
        ),
        entry(
            "base",
            &format!("{} from {}", binding.base_ref, binding.merge_base),
        ),
        entry(
            "head",
            &format!("{} at {}", binding.head_ref, binding.head_commit),
        ),
        entry("tree", &binding.head_tree.to_string()),
        entry("merge", binding.merge_method.as_str()),
        entry("change", &paths(&binding.change)),
    ]);
    lines.extend(entries(&binding.change));
    lines.extend([
        entry("digest", &binding.change_digest().to_string()),
        entry("binding", &binding.digest().to_string()),
        entry("request", &request.digest().to_string()),
    ]);
    lines.join("\n")
}

fn link(record: &IncidentRecord) -> String {
    let Some(link) = LinkPart::of(record) else {
        return "none yet; a running worker makes and sends it".to_owned();
    };
    match (link.state, link.sent) {
        (ApprovalState::Live, true) => format!("sent, works until {}", link.expires_at),
        (ApprovalState::Live, false) => "made, not sent yet".to_owned(),
        (ApprovalState::Used, _) => "used".to_owned(),
        (ApprovalState::Revoked, _) => "revoked".to_owned(),
        (ApprovalState::Expired, _) => format!("expired at {}", link.expires_at),
    }
}
