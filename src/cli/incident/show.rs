//! Incidents in words.

use crate::approve::{ApprovalRequest, HumanDecision};
use crate::attest::text::shown;
use crate::change::{ChangeDocument, ChangeDocumentEntry, Mode};
use crate::cli::words::entry;
use crate::gate::{DecisionDocument, Reason, Verdict};
use crate::incident::{Fact, Failure, Reproduction, Stage};
use crate::store::{IncidentRow, Project};
use crate::web::{IncidentRecord, explanation};

/// Every incident, one a line.
pub(super) fn list(rows: &[IncidentRow], projects: &[Project]) -> String {
    if rows.is_empty() {
        return "no incidents; the failed runs of watched projects become some".to_owned();
    }
    let line = |row: &IncidentRow| {
        let project = projects.iter().find(|project| project.id == row.project);
        let project = project.map_or(row.project.as_str(), |project| &project.full_name);
        format!(
            "{}  {:<25}  {}  {}  {}",
            row.id,
            stage(row),
            row.opened_at,
            shown(project),
            job(&row.failure)
        )
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The stage, for a closed incident with the reason.
fn stage(row: &IncidentRow) -> String {
    match (row.stage, row.closed_reason) {
        (Stage::Closed, Some(reason)) => format!("closed ({})", reason.as_str()),
        (stage, _) => stage.to_string(),
    }
}

/// What failed: workflow, job and branch.
fn job(failure: &Failure) -> String {
    let named = |name: &Option<String>| name.as_deref().map_or("?".to_owned(), shown);
    format!(
        "{} / {} on {}",
        named(&failure.workflow),
        named(&failure.job),
        shown(&failure.base_ref)
    )
}

/// One incident whole.
pub(super) fn one(record: &IncidentRecord) -> String {
    let mut lines = Vec::new();
    head(record, &mut lines);
    investigation(record, &mut lines);
    control(record, &mut lines);
    lines.push("timeline".to_owned());
    for event in &record.timeline {
        let text = format!("  {}  {:<17} {}", event.at, event.kind, event.text);
        lines.push(text.trim_end().to_owned());
    }
    lines.join("\n")
}

fn head(record: &IncidentRecord, lines: &mut Vec<String>) {
    let row = &record.row;
    let failure = &row.failure;
    let project = record.project.as_ref().map(|project| &project.full_name);
    let project = project.map_or_else(
        || row.project.to_string(),
        |name| format!("{name} ({})", row.project),
    );
    lines.extend([
        entry("incident", row.id.as_str()),
        entry("project", &project),
        entry("stage", &stage(row)),
        entry("opened", &row.opened_at.to_string()),
        entry("changed", &row.updated_at.to_string()),
        entry("why", &explanation(record)),
        entry(
            "failure",
            &format!(
                "{}: {} at {}, run {} attempt {}",
                failure.kind,
                job(failure),
                failure.commit,
                failure.run_id,
                failure.attempt
            ),
        ),
    ]);
    if let Some(url) = &failure.url {
        lines.push(entry("", url));
    }
}

fn investigation(record: &IncidentRecord, lines: &mut Vec<String>) {
    let snapshot = &record.snapshot;
    if let Some(reproduction) = snapshot.reproduction() {
        let text = match reproduction {
            Reproduction::Red { command, .. } | Reproduction::Flaky { command, .. } => {
                let times = match reproduction.tally() {
                    Some(tally) => format!(", {tally}"),
                    None => String::new(),
                };
                format!("fails too{times}: {}", command.join(" "))
            }
            Reproduction::Green { command, .. } => format!("succeeds: {}", command.join(" ")),
            Reproduction::Unrunnable { reason } => format!("cannot be tried: {reason}"),
        };
        lines.push(entry("sandbox", &text));
    }
    if let Some(text) = snapshot.rerun_in_words(record.read_at) {
        lines.push(entry("run again", &text));
    }
    if let Some(diagnosis) = snapshot.diagnosis() {
        lines.push(entry("cause", &diagnosis.cause));
        let files: Vec<String> = diagnosis.files.iter().map(ToString::to_string).collect();
        let text = format!(
            "confidence {} of 1000, {}; {}; {}",
            diagnosis.confidence,
            diagnosis.agent,
            diagnosis.remark.trim_end_matches('.'),
            files.join(" ")
        );
        lines.push(entry("coder", &text));
        if let Some(session) = &diagnosis.session {
            lines.push(entry("session", &session.in_words()));
        }
    }
    if let Some(fix) = snapshot.fix() {
        lines.push(entry("fix", &fix.title));
        let text = format!("{}, digest {}", paths(&fix.change), fix.change.digest);
        lines.push(entry("change", &text));
        lines.extend(entries(&fix.change));
        lines.push(entry(
            "commit",
            &format!("{} on {}", fix.commit, fix.branch),
        ));
        if let Some(session) = &fix.session {
            lines.push(entry("session", &session.in_words()));
        }
    }
}

/// How many paths a change has.
pub(in crate::cli) fn paths(change: &ChangeDocument) -> String {
    match change.count {
        1 => "1 path".to_owned(),
        count => format!("{count} paths"),
    }
}

/// The entries of a change, one a line: how, with which mode, the object, and where.
pub(in crate::cli) fn entries(change: &ChangeDocument) -> Vec<String> {
    let line = |entry: &ChangeDocumentEntry| {
        let (sign, mode, oid) = match (entry.old_mode, entry.new_mode) {
            (Mode::Absent, mode) => ("+", mode, entry.new_oid),
            (mode, Mode::Absent) => ("-", mode, entry.old_oid),
            (_, mode) => ("~", mode, entry.new_oid),
        };
        let path = entry
            .path
            .as_deref()
            .map_or_else(|| format!("(bytes {})", shown(&entry.path_hex)), shown);
        format!("{:13}{sign} {} {oid} {path}", "", mode.as_str())
    };
    change.entries.iter().map(line).collect()
}

fn control(record: &IncidentRecord, lines: &mut Vec<String>) {
    let snapshot = &record.snapshot;
    if let Some(decision) = snapshot.decision() {
        let text = format!(
            "{}, class {}",
            decision.verdict.as_str(),
            decision.class.as_str()
        );
        lines.push(entry("decision", &text));
        lines.extend(
            reasons(&decision.document)
                .iter()
                .map(|text| entry("", text)),
        );
    }
    if let Some(request) = snapshot.request() {
        lines.push(entry("approval", &answered(record, request)));
    }
    if let (Some(number), Some(url)) = (snapshot.pull_request(), snapshot.pull_request_url()) {
        lines.push(entry("pull request", &format!("{number}, {url}")));
    }
    for recorded in &snapshot.facts {
        if let Fact::Landed {
            execution,
            commit,
            matches,
            ..
        } = &recorded.fact
        {
            let whose = execution.as_ref().map_or("by a person", |_| "by us");
            let same = if *matches {
                "what was approved"
            } else {
                "NOT what was approved"
            };
            lines.push(entry("landed", &format!("{commit} {whose}: {same}")));
        }
    }
}

/// What became of the question.
fn answered(record: &IncidentRecord, request: &ApprovalRequest) -> String {
    let principal = &request.principal;
    let word = match record.snapshot.answer() {
        None => {
            let until = request.binding.expires_at;
            return format!("{principal} was asked, until {until}");
        }
        Some(HumanDecision::Approve) => "approved",
        Some(HumanDecision::Reject) => "rejected",
    };
    let answer = record.answer.as_ref();
    let at = answer.map_or_else(String::new, |answer| format!(" at {}", answer.consumed_at));
    let comment = answer.and_then(|answer| answer.comment.as_deref());
    let comment = comment.map_or_else(String::new, |comment| format!(": {comment}"));
    format!("{word} by {principal}{at}{comment}")
}

/// Why it was decided so: of the tree of reasons the leaves that ask for something, or, of a refused file list, its lines.
fn reasons(document: &serde_json::Value) -> Vec<String> {
    if let Ok(document) = serde_json::from_value::<DecisionDocument>(document.clone()) {
        let mut lines = Vec::new();
        for reason in &document.reasons {
            asking(reason, &mut lines);
        }
        return lines;
    }
    let lines = document
        .get("reasons")
        .and_then(serde_json::Value::as_array);
    let texts = lines.into_iter().flatten().filter_map(|line| line.as_str());
    texts.map(str::to_owned).collect()
}

fn asking(reason: &Reason, lines: &mut Vec<String>) {
    if reason.outcome == Verdict::Free {
        return;
    }
    if reason.children.is_empty() {
        lines.push(format!("{}: {reason}", reason.outcome));
    }
    for child in &reason.children {
        asking(child, lines);
    }
}
