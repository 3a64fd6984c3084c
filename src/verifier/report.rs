//! What came of it, for people and for programs.

use std::collections::BTreeMap;

use serde_json::json;

use super::{FolderReport, Verified, VerifyError};
use crate::attest::text::shown;
use crate::audit::{
    BroughtTimestamp, BundleReport, Cosignature, Ending, TimestampVerdict, by_authority,
};
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

/// `roots` says whether timestamps were to be checked.
pub(super) fn text(verified: &Result<Verified, VerifyError>, roots: bool) -> String {
    match verified {
        Ok(Verified::Bundle(verified)) => lines(verified, roots).join("\n"),
        Ok(Verified::Folder(verified)) => log_lines(verified, roots).join("\n"),
        Err(error) => format!("{error}\nverdict: {}", error.verdict().name()),
    }
}

fn lines(verified: &BundleReport, roots: bool) -> Vec<String> {
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
    lines.extend(cosigned(verified.cosignatures.as_deref()));
    lines.extend(timestamp_lines(&verified.timestamps, roots));
    if verified.ending == Ending::Open && !report.events.is_empty() {
        lines.push(
            "the last event does not end the incident: later ones may exist, which an audit of the whole log would show"
                .to_owned(),
        );
    }
    lines.push(format!("verdict: {}", report.verdict.name()));
    lines
}

/// Of each authority what its timestamps say, or of each that nobody checked, how to.
fn timestamp_lines(timestamps: &[BroughtTimestamp], roots: bool) -> Vec<String> {
    if roots && timestamps.is_empty() {
        return vec!["no timestamp is in it".to_owned()];
    }
    let mut lines = Vec::new();
    for found in by_authority(timestamps) {
        let (Some(before), Some(authority), Some(key)) =
            (found.before, &found.authority, found.key)
        else {
            continue;
        };
        let what = match found.events {
            Some(0) => continue,
            Some(1) => "event 0".to_owned(),
            Some(events) => format!("events 0 to {}", events - 1),
            None => format!("the first {} leaves", found.checkpoint),
        };
        lines.push(format!(
            "{what} existed before {before} according to {} (its key sha256:{key})",
            shown(authority)
        ));
    }
    let unchecked = |found: &&BroughtTimestamp| found.verdict == TimestampVerdict::NotChecked;
    let mut newest = BTreeMap::new();
    for found in timestamps.iter().filter(unchecked) {
        let size = newest.entry(found.name.as_str()).or_insert(0);
        *size = found.checkpoint.max(*size);
    }
    for (name, size) in newest {
        lines.push(format!(
            "a timestamp by {name} over the first {size} leaves is not checked here: give `caretaker verify` \
             --timestamp-roots FILE, or unpack it and type `openssl ts -verify -data timestamps/{size}/checkpoint \
             -in timestamps/{size}/{name}.tsr -CAfile FILE`"
        ));
    }
    lines
}

fn log_lines(verified: &FolderReport, roots: bool) -> Vec<String> {
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
    lines.extend(cosigned(verified.cosignatures.as_deref()));
    for failure in &report.failures {
        lines.push(format!(
            "leaf {}: {}: expected {}, found {}",
            failure.seq, failure.rule, failure.expected, failure.found
        ));
    }
    if report.more_failures > 0 {
        lines.push(format!("and {} more", report.more_failures));
    }
    if let Some(at) = report.alive_at {
        lines.push(format!("the last sign of life is of {}", Millis(at)));
    }
    for (from, to) in &report.silences {
        lines.push(format!(
            "no sign of life between {} and {}",
            Millis(*from),
            Millis(*to)
        ));
    }
    lines.extend(timestamp_lines(&verified.timestamps, roots));
    lines.push(format!("verdict: {}", report.verdict.name()));
    lines
}

fn cosigned(cosignatures: Option<&[Cosignature]>) -> impl Iterator<Item = String> {
    let cosignatures = cosignatures.unwrap_or_default().iter();
    cosignatures.map(|cosignature| {
        let seconds = i64::try_from(cosignature.seconds).unwrap_or(i64::MAX);
        format!(
            "cosigned by {} at {}",
            shown(&cosignature.witness),
            Millis(0).plus_seconds(seconds)
        )
    })
}
