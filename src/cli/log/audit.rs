//! `caretaker log audit`: a repository against the log.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::attest::chain::Verdict as Found;
use crate::attest::text::shown;
use crate::audit::{LandedCommit, LandedReport, LoggedExecutions, audit_landed};
use crate::cli::{Verdict, print};
use crate::verifier::{LogFolder, Request};
use crate::workspace::open_read_only;

/// Commits of a branch that are looked at.
const MOST_COMMITS: usize = 1_000_000;

/// Which log, which repository.
#[derive(Debug, Args)]
pub(in crate::cli) struct AuditArguments {
    /// The folder with the log, as `caretaker log export` or a clone of the log's branch has it.
    folder: PathBuf,
    /// The trust root that you were given: a file, or its SHA-256 in hexadecimal.
    #[arg(long, value_name = "FILE|SHA256")]
    trust_root: String,
    /// A clone of the repository, whole or bare, not shallow.
    #[arg(long, visible_alias = "repo", value_name = "FOLDER")]
    repository: PathBuf,
    /// The branch on which caretaker lands changes.
    #[arg(long, default_value = "main")]
    branch: String,
    /// The provider's number of the repository; needed only when the log holds executions of several.
    #[arg(long, value_name = "NUMBER")]
    number: Option<String>,
    /// The last checkpoint of the log that you have seen; a log that does not extend it is refused.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &AuditArguments) -> anyhow::Result<Verdict> {
    let request = Request {
        bundle: arguments.folder.clone(),
        trust_root: arguments.trust_root.clone(),
        checkpoint: arguments.checkpoint.clone(),
        state: None,
        policy: None,
    };
    let log = LogFolder::verified(&request)?;
    let report = if log.verdict() == Found::Valid {
        Some(landed(arguments, &log)?)
    } else {
        None
    };
    let verdict = report
        .as_ref()
        .map_or(log.verdict(), |report| report.verdict);
    if arguments.json {
        let document = json!({
            "verdict": verdict,
            "log": log.report(),
            "repository": report,
        });
        print(&document.to_string())?;
    } else {
        print(&text(verdict, &log, report.as_ref()))?;
    }
    Ok(match verdict {
        Found::Valid => Verdict::Done,
        Found::Invalid => Verdict::Refused,
        Found::CannotVerify => Verdict::CannotTell,
    })
}

fn landed(arguments: &AuditArguments, log: &LogFolder) -> anyhow::Result<LandedReport> {
    let repository = open_read_only(&arguments.repository)?;
    let tip = repository.resolve(&arguments.branch)?.oid();
    let mut commits = Vec::new();
    repository.history(tip, MOST_COMMITS, &mut |record| {
        commits.push(LandedCommit::read(
            record.commit,
            &record.message,
            record.time,
        ));
    })?;
    let mut executions = LoggedExecutions::of(&commits);
    log.entries(&mut |entry| {
        executions
            .take(log.trust(), entry)
            .map_err(|error| error.to_string())
    })
    .map_err(anyhow::Error::msg)?;
    let known = executions.repositories();
    let number = match (&arguments.number, known.len()) {
        (Some(number), _) => number.clone(),
        (None, 0 | 1) => known
            .into_iter()
            .next()
            .map(|(_, number)| number)
            .unwrap_or_default(),
        (None, _) => {
            let known: Vec<String> = known
                .into_iter()
                .map(|(uri, number)| format!("{number} ({})", shown(&uri)))
                .collect();
            anyhow::bail!(
                "the log holds executions of {} repositories; say which with --number: {}",
                known.len(),
                known.join(", ")
            );
        }
    };
    let origin = log.origin();
    anyhow::ensure!(!commits.is_empty(), "the branch has no commits");
    Ok(audit_landed(&executions, &origin, &number, &commits))
}

fn text(verdict: Found, log: &LogFolder, report: Option<&LandedReport>) -> String {
    let mut lines = vec![format!("verdict: {}", verdict.name())];
    let Some(report) = report else {
        lines.push(format!(
            "the log itself is {}; `caretaker verify FOLDER` says what of it",
            log.verdict().name()
        ));
        return lines.join("\n");
    };
    lines.push(format!(
        "the log has {} leaves and {} executions for this repository; the branch has {} commits, {} of them not by caretaker",
        log.report().leaves,
        report.executions,
        report.commits,
        report.by_others
    ));
    for failure in &report.failures {
        lines.push(format!(
            "{} {}: {}: {}",
            failure.verdict.name(),
            failure.commit,
            failure.rule,
            failure.found
        ));
    }
    if report.more_failures > 0 {
        lines.push(format!("and {} more", report.more_failures));
    }
    lines.join("\n")
}
