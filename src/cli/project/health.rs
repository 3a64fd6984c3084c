//! Health checks on the command line: as they are given, and how they stand.

use serde_json::{Value, json};

use super::RegisterArguments;
use crate::attest::text::shown;
use crate::cli::assembly;
use crate::config::{Configuration, HealthCheck, health_checks, read_file};
use crate::store::{HealthRow, Project, WatchMode};
use crate::watch::health::{HealthState, LastResult, Phase};

/// The checks that a registration asks for: given on the command line, in a file, or in the configuration.
pub(super) fn given(
    configuration: &Configuration,
    arguments: &RegisterArguments,
) -> anyhow::Result<Vec<HealthCheck>> {
    let checks = match (&arguments.health, &arguments.health_file) {
        (Some(text), _) => health_checks(text.as_bytes(), "--health")?,
        (None, Some(path)) => health_checks(
            &read_file(path, "health checks")?,
            &path.display().to_string(),
        )?,
        (None, None) if arguments.watch == super::Watched::Health => {
            configuration.health.checks.clone()
        }
        (None, None) => Vec::new(),
    };
    let rules = assembly::address_rules(configuration);
    for check in &checks {
        if let Some(kind) = rules.refusal_of(check.url.url()) {
            anyhow::bail!(
                "health check {:?}: {} is {kind}, so it would never be asked; name a public address, or allow it under health_addresses",
                check.name,
                check.url
            );
        }
    }
    Ok(checks)
}

/// How one endpoint stands.
pub(super) struct Standing {
    check: HealthCheck,
    /// None when it was never asked; an error when what is stored cannot be read.
    state: Option<Result<HealthState, String>>,
    next: Option<String>,
}

/// How the endpoints of a project stand; what is stored unreadably says so.
pub(super) fn standings(project: &Project, rows: &[HealthRow]) -> Vec<Standing> {
    if project.watch != WatchMode::Health {
        return Vec::new();
    }
    let checks = health_checks(project.health.as_bytes(), "the stored checks").unwrap_or_default();
    let standing = |check: HealthCheck| {
        let row = rows.iter().find(|row| row.name == check.name);
        let asked = row.filter(|row| !row.state.is_empty());
        Standing {
            state: asked
                .map(|row| HealthState::from_text(&row.state).map_err(|error| error.to_string())),
            next: row.map(|row| row.next_at.to_string()),
            check,
        }
    };
    checks.into_iter().map(standing).collect()
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Up => "up",
        Phase::Failing { .. } => "failing",
        Phase::Down { .. } => "down",
        Phase::Recovering { .. } => "recovering",
    }
}

impl Standing {
    /// In words.
    pub(super) fn lines(&self) -> Vec<String> {
        let check = &self.check;
        let mut lines = vec![format!(
            "\nhealth check {} ({} {}, every {}):",
            check.name,
            check.method(),
            shown(&check.url.to_string()),
            check.interval
        )];
        match &self.state {
            None => lines.push("  not asked yet".to_owned()),
            Some(Err(error)) => lines.push(format!("  {}", shown(error))),
            Some(Ok(state)) => lines.extend(state_lines(state)),
        }
        lines
    }

    /// For programs. Headers by name only, the address without its query: either may hold a secret.
    pub(super) fn json(&self) -> Value {
        let check = &self.check;
        let mut document = json!({
            "name": check.name,
            "url": check.url.to_string(),
            "method": check.method().as_str(),
            "headers": check.headers.keys().collect::<Vec<_>>(),
            "expect": check.expect,
            "interval": check.interval,
            "timeout": check.timeout,
            "failures_to_open": check.failures_to_open,
            "successes_to_close": check.successes_to_close,
            "commit": check.commit,
            "next_at": self.next,
            "state": null,
        });
        document["state"] = match &self.state {
            None => Value::Null,
            Some(Err(error)) => json!({ "error": error }),
            Some(Ok(state)) => json!({
                "phase": word(state.phase),
                "since": state.since.map(|at| at.to_string()),
                "last": state.last.as_ref().map(|last| json!({
                    "at": last.at.to_string(),
                    "result": last.result,
                    "reason": last.reason,
                    "latency_ms": last.latency,
                })),
                "certificate_days": state.certificate_days,
                "commit": state.commit,
            }),
        };
        document
    }
}

fn state_lines(state: &HealthState) -> Vec<String> {
    let since = state
        .since
        .map_or(String::new(), |since| format!(" since {since}"));
    let in_a_row = match state.phase {
        Phase::Failing { count, .. } => format!(", {count} failed in a row"),
        Phase::Recovering { count, .. } => format!(", {count} passed in a row"),
        Phase::Up | Phase::Down { .. } => String::new(),
    };
    let mut lines = vec![format!("  {}{since}{in_a_row}", word(state.phase))];
    if let Some(last) = &state.last {
        let how = match (last.result, last.latency) {
            (LastResult::Passed, Some(latency)) => format!("passed in {latency} ms"),
            (LastResult::Passed, None) => "passed".to_owned(),
            (LastResult::Failed, _) => format!("failed: {}", shown(&last.reason)),
            (LastResult::OurOutage, _) => format!(
                "says nothing, since nothing else could be reached either: {}",
                shown(&last.reason)
            ),
        };
        lines.push(format!("  last check {} {how}", last.at));
    }
    if let Some(days) = state.certificate_days {
        lines.push(format!("  certificate ends in {days} days"));
    }
    if let Some(commit) = &state.commit {
        lines.push(format!("  runs {commit}"));
    }
    lines
}
