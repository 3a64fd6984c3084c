//! What came of it, for people and for programs.

use serde_json::json;

use super::{FolderReport, Verified, VerifyError};
use crate::attest::text::shown;
use crate::audit::{BundleReport, Ending};
use crate::clock::Millis;

pub(super) fn document(verified: &Result<Verified, VerifyError>) -> String {
    match verified {
        Ok(verified) => serde_json::to_string(verified).unwrap_or_else(|_| UNSPOKEN.to_owned()),
        Err(error) => json!({
            "verdict": error.verdict(),
            "events": [],
            "failures": [{"seq": 0, "rule": "bundle", "expected": "something to verify", "found": error.to_string()}],
            "gaps": [],
            "checkpoint": null,
        })
        .to_string(),
    }
}

/// No report can fail to be put into JSON; should one, that is no "valid".
const UNSPOKEN: &str =
    r#"{"verdict":"cannot-verify","events":[],"failures":[],"gaps":[],"checkpoint":null}"#;

pub(super) fn text(verified: &Result<Verified, VerifyError>) -> String {
    match verified {
        Ok(Verified::Bundle(verified)) => lines(verified).join("\n"),
        Ok(Verified::Folder(verified)) => log_lines(verified).join("\n"),
        Err(error) => format!("{error}\nverdict: {}", error.verdict().name()),
    }
}

fn lines(verified: &BundleReport) -> Vec<String> {
    let report = &verified.report;
    let mut lines = Vec::new();
    if let Some(incident) = &verified.incident {
        lines.push(format!("incident {}", shown(incident)));
    }
    for event in &report.events {
        lines.push(format!(
            "{:<4} {:<16} {:<9} {}",
            event.seq,
            event.kind.map_or("?", |kind| kind.name()),
            event.role.map_or("?", |role| role.name()),
            event.verdict.name()
        ));
    }
    for failure in &report.failures {
        lines.push(failure.to_string());
    }
    for gap in &report.gaps {
        lines.push(format!("event {gap} says that evidence was lost"));
    }
    if let Some(checkpoint) = &report.checkpoint {
        lines.push(format!(
            "in the log {} of {} leaves, root {}",
            shown(checkpoint.origin.as_str()),
            checkpoint.size,
            checkpoint.root
        ));
    }
    if verified.ending == Ending::Open && !report.events.is_empty() {
        lines.push(
            "the last event does not end the incident: later ones may exist, which an audit of the whole log would show"
                .to_owned(),
        );
    }
    lines.push(format!("verdict: {}", report.verdict.name()));
    lines
}

fn log_lines(verified: &FolderReport) -> Vec<String> {
    let (report, checkpoint) = (&verified.report, &verified.checkpoint);
    let mut lines = vec![format!(
        "the log {} of {} leaves, root {}",
        shown(checkpoint.origin.as_str()),
        checkpoint.size,
        checkpoint.root
    )];
    lines.push(format!(
        "{} leaves verified now, {} of them signed events; {} incidents",
        report.verified, report.events, report.incidents
    ));
    for failure in &report.failures {
        lines.push(format!(
            "leaf {}: {}: expected {}, found {}",
            failure.seq, failure.rule, failure.expected, failure.found
        ));
    }
    if report.more_failures > 0 {
        lines.push(format!("and {} more", report.more_failures));
    }
    for (from, to) in &report.silences {
        lines.push(format!(
            "no sign of life between {} and {}",
            Millis(*from),
            Millis(*to)
        ));
    }
    lines.push(format!("verdict: {}", report.verdict.name()));
    lines
}
