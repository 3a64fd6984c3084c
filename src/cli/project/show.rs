//! Projects in words and in JSON.

use serde_json::{Value, json};

use super::super::words::{entry, within};
use super::health::Standing;
use super::watching::{Record, Watching, budget, document, this_hour};
use super::when::{ago, length};
use crate::attest::text::shown;
use crate::clock::Millis;
use crate::connector::Condition;
use crate::store::{Project, WatchState};

/// Characters on one line.
const WIDTH: usize = 100;
/// Characters before the text of an entry.
const NAME: usize = 13;
/// What is not known.
const UNKNOWN: &str = "-";

/// Every project, two lines each: how watching it goes, and which it is.
pub(super) fn list(projects: &[Watching], now: Millis, as_json: bool) -> String {
    if as_json {
        let one = |watching: &Watching| {
            let mut document = summary(&watching.project);
            document["watching"] = watch_document(watching.state.as_ref(), now);
            document
        };
        let list: Vec<Value> = projects.iter().map(one).collect();
        return json!({ "projects": list }).to_string();
    }
    if projects.is_empty() {
        return "no projects; register one with `caretaker project register`".to_owned();
    }
    let mut lines = vec![row([
        "PROJECT",
        "STATE",
        "LAST LOOK",
        "LAG",
        "REQUESTS",
        "304",
        "LEFT",
    ])];
    for Watching { project, state } in projects {
        lines.push(figures(project, state.as_ref(), now));
        lines.extend(place(project, state.as_ref(), now));
    }
    lines.join("\n")
}

/// One line of at most 100 characters.
fn row([id, state, look, lag, requests, unchanged, left]: [&str; 7]) -> String {
    let line = format!(
        "{id:<30}  {state:<9}  {look:<10}  {lag:<7}  {requests:>8}  {unchanged:>5}  {left}"
    );
    line.trim_end().to_owned()
}

/// How watching goes, in figures; requests are those of this hour.
fn figures(project: &Project, state: Option<&WatchState>, now: Millis) -> String {
    let known = state.filter(|state| state.looked_at.is_some());
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let counted = known.map(|state| this_hour(state, now));
    let left = known.map(budget).and_then(|budget| {
        let remaining = budget.remaining?;
        Some(match budget.limit {
            Some(limit) => format!("{remaining}/{limit}"),
            None => remaining.to_string(),
        })
    });
    row([
        project.id.as_str(),
        project.state.as_str(),
        &or_unknown(
            known
                .and_then(|state| state.looked_at)
                .map(|at| ago(at, now)),
        ),
        &or_unknown(known.and_then(|state| state.lag).map(length)),
        &or_unknown(counted.map(|(requests, _)| requests.to_string())),
        &or_unknown(counted.and_then(share)),
        &or_unknown(left),
    ])
}

/// Which share of the requests cost nothing.
fn share((requests, unchanged): (u64, u64)) -> Option<String> {
    let percent = (unchanged.min(requests) * 100).checked_div(requests)?;
    Some(format!("{percent} %"))
}

/// Which repository it is, how it can be reached and, unless that is fine, what to do.
fn place(project: &Project, state: Option<&WatchState>, now: Millis) -> Vec<String> {
    let frozen = project.frozen.as_ref().map_or("", |_| "  frozen");
    let indented = |text: &str| {
        within(text, WIDTH - 2)
            .into_iter()
            .map(|line| format!("  {line}"))
            .collect::<Vec<_>>()
    };
    let condition = state.map_or(UNKNOWN, |state| state.condition.as_str());
    let mut lines = indented(&format!("{}  {condition}{frozen}", project.url));
    if let Some(state) = state.filter(|state| state.condition != Condition::Fine) {
        let since = state.since.map(|since| ago(since, now));
        let detail = state.detail.as_deref().unwrap_or(condition);
        let told = match since {
            Some(since) => format!("since {since}: {detail}"),
            None => detail.to_owned(),
        };
        lines.extend(indented(&told));
        if let Some(mend) = &state.mend {
            lines.extend(indented(&format!("mend: {mend}")));
        }
    }
    lines
}

/// One project whole, with its history.
pub(super) fn record(record: &Record, checks: &[Standing], now: Millis, as_json: bool) -> String {
    let Watching { project, state } = &record.watching;
    if as_json {
        let mut document = whole(project);
        document["watching"] = watch_document(state.as_ref(), now);
        if !checks.is_empty() {
            document["health"] = checks.iter().map(Standing::json).collect();
        }
        let event = |event: &crate::audit::AuditRecord| json!({"at": event.at.to_string(), "kind": event.kind, "detail": event.detail});
        document["history"] = record.events.iter().map(event).collect();
        return document.to_string();
    }
    let mut text = about(project);
    text.push(String::new());
    text.extend(watch_text(state.as_ref(), now));
    text.extend(checks.iter().flat_map(Standing::lines));
    if !record.events.is_empty() {
        text.push("\nhistory, newest first:".to_owned());
    }
    for event in &record.events {
        text.push(format!("  {}  {}", event.at, shown(&event.kind)));
        text.extend(
            within(&event.detail, WIDTH - 4)
                .iter()
                .map(|line| format!("    {line}")),
        );
    }
    for (name, body) in [("rules", &project.rules), ("intent", &project.intent)] {
        text.push(format!("\n{name}:"));
        // Line by line: what a stranger wrote must not steer the terminal.
        text.extend(body.lines().map(|line| format!("  {}", shown(line))));
    }
    text.join("\n")
}

fn about(project: &Project) -> Vec<String> {
    let time = |at: Option<Millis>| at.map_or(UNKNOWN.to_owned(), |at| at.to_string());
    let mut lines = vec![
        ("project", project.id.to_string()),
        ("state", project.state.as_str().to_owned()),
        ("repository", shown(&project.url)),
        ("number", shown(&project.repository_id)),
        ("owner", project.owner.to_string()),
        ("watched", project.watch.as_str().to_owned()),
        (
            "schedule",
            project
                .schedule
                .as_deref()
                .map_or("as configured (poll.schedule)".to_owned(), shown),
        ),
        ("registered", project.created_at.to_string()),
        ("confirmed", time(project.confirmed_at)),
        ("draft digest", project.draft_digest.to_string()),
        ("rules digest", project.rules_digest.to_string()),
        (
            "frozen",
            project.frozen.as_deref().map_or(UNKNOWN.to_owned(), shown),
        ),
    ];
    if let Some(at) = project.removed_at {
        lines.push(("removed", at.to_string()));
    }
    lines
        .iter()
        .map(|(name, value)| format!("{name:<NAME$}{value}"))
        .collect()
}

/// How watching goes, in sentences' worth of words.
fn watch_text(state: Option<&WatchState>, now: Millis) -> Vec<String> {
    let Some(state) = state else {
        return vec![entry("last look", "it was not looked at yet")];
    };
    let moment = |at: Option<Millis>| match at {
        Some(at) => format!("{} ({at})", ago(at, now)),
        None => "never".to_owned(),
    };
    let (requests, unchanged) = this_hour(state, now);
    let mut lines = vec![
        entry("last look", &moment(state.looked_at)),
        entry("last answer", &moment(state.answered_at)),
        entry("next look", &state.next_at.to_string()),
        entry("condition", &condition_text(state, now)),
    ];
    if state.condition != Condition::Fine
        && let Some(mend) = &state.mend
    {
        lines.push(entry("mend", mend));
    }
    let lag = state.lag.map_or_else(
        || "no failure was seen yet".to_owned(),
        |lag| {
            format!(
                "the newest failure was {} old when it was seen",
                length(lag)
            )
        },
    );
    let cost = match share((requests, unchanged)) {
        Some(share) => format!(
            "{requests} requests this hour, {unchanged} of them ({share}) answered with \"not modified\""
        ),
        None => "no requests this hour".to_owned(),
    };
    lines.extend([
        entry("lag", &lag),
        entry("cost", &cost),
        entry("budget", &budget_text(state, now)),
    ]);
    lines
}

fn condition_text(state: &WatchState, now: Millis) -> String {
    let since = state.since.map_or_else(String::new, |since| {
        format!(", since {} ({since})", ago(since, now))
    });
    let detail = state.detail.as_ref();
    let detail = detail.map_or_else(String::new, |detail| format!(": {detail}"));
    format!("{}{since}{detail}", state.condition.as_str())
}

fn budget_text(state: &WatchState, now: Millis) -> String {
    let budget = budget(state);
    let left = match (budget.remaining, budget.limit) {
        (Some(remaining), Some(limit)) => {
            format!("{remaining} of {limit} requests of the credential are left")
        }
        (Some(remaining), None) => format!("{remaining} requests of the credential are left"),
        _ => "what is left of the credential's limits is not known".to_owned(),
    };
    let resets_at = budget.resets_at.filter(|at| *at > now);
    let anew = resets_at.map_or_else(String::new, |at| {
        format!(", anew in {}", length(at.0.saturating_sub(now.0)))
    });
    let paused_until = budget.paused_until.filter(|until| *until > now);
    let why = budget.paused_for.as_deref().unwrap_or("a limit");
    let paused = paused_until.map_or_else(String::new, |until| {
        format!("; nothing is sent until {until}: {why}")
    });
    format!("{left}{anew}{paused}")
}

fn watch_document(state: Option<&WatchState>, now: Millis) -> Value {
    state.map_or(Value::Null, |state| document(state, now))
}

/// One project whole, as JSON.
pub(super) fn whole(project: &Project) -> Value {
    let mut document = summary(project);
    document["rules"] = project.rules.as_str().into();
    document["intent"] = project.intent.as_str().into();
    document
}

pub(super) fn summary(project: &Project) -> Value {
    json!({
        "id": project.id,
        "state": project.state,
        "url": project.url,
        "full_name": project.full_name,
        "host": project.host,
        "repository_id": project.repository_id,
        "owner": project.owner,
        "watch": project.watch,
        "schedule": project.schedule,
        "draft_digest": project.draft_digest,
        "rules_digest": project.rules_digest,
        "frozen": project.frozen,
        "created_at": project.created_at.to_string(),
        "confirmed_at": project.confirmed_at.map(|at| at.to_string()),
        "removed_at": project.removed_at.map(|at| at.to_string()),
    })
}
