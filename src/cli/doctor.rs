//! `caretaker doctor`: what is missing or unsafe, each with its mend.

mod hooks;
mod keys;
mod machine;
mod state;

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::installation::Installation;
use super::{Verdict, explain, print};
use crate::clock::{Clock as _, SystemClock};

/// How to print.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// How one thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// It works, and is weaker or shorter-lived than it could be.
    Warning,
    /// Something required is missing; the exit code says so.
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    state: State,
    /// What was found and, unless all is well, the mend.
    found: String,
}

impl Finding {
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, State::Ok, found)
    }

    fn warning(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, State::Warning, found)
    }

    fn failed(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, State::Failed, found)
    }

    fn new(check: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            check,
            state,
            found: found.into(),
        }
    }
}

pub(super) fn run(arguments: &DoctorArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let findings = runtime.block_on(look(config));
    let of = |state| {
        findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    };
    let (failed, warnings) = (of(State::Failed), of(State::Warning));
    if arguments.json {
        print(&json!({"ok": failed == 0, "checks": findings}).to_string())?;
    } else {
        for finding in &findings {
            let word = match finding.state {
                State::Ok => "ok",
                State::Warning => "warning",
                State::Failed => "FAILED",
            };
            print(&format!("{word:8} {:14} {}", finding.check, finding.found))?;
        }
        print(&format!("{failed} failed, {warnings} warnings"))?;
    }
    Ok(if failed == 0 {
        Verdict::Done
    } else {
        Verdict::Refused
    })
}

async fn look(config: Option<&Path>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Installation::load(config) {
        Ok(Installation {
            configuration,
            environment,
        }) => {
            findings.extend(state::configuration(&configuration));
            findings.push(machine::git().await);
            findings.push(machine::sandbox(configuration.sandbox.mode).await);
            findings.push(machine::agent(&configuration.agent));
            findings.extend(keys::look(&configuration, &environment, SystemClock.now()));
            findings.extend(state::database(&configuration).await);
            findings.extend(hooks::look(&configuration, &environment).await);
        }
        Err(error) => {
            findings.push(Finding::failed(
                "configuration",
                format!(
                    "{}. The sandbox, the keys and the database are looked at once it can be read",
                    explain(&error)
                ),
            ));
            findings.push(machine::git().await);
        }
    }
    findings
}
