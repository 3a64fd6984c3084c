//! `caretaker doctor`: what is missing or unsafe, each with its mend.

mod app;
mod branch;
mod health;
mod hooks;
mod keys;
mod log;
mod machine;
mod projects;
mod provider;
mod state;

use std::path::Path;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::installation::Installation;
use super::{Verdict, explain, print};
use crate::clock::{Clock as _, SystemClock};

/// What to look at, and how to print.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Ask the provider nothing: what it says of tokens and of the time is left out.
    #[arg(long)]
    offline: bool,
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

/// Everything that was looked at.
#[derive(Debug, Default)]
struct Looked {
    /// The installation.
    checks: Vec<Finding>,
    /// Each of its projects.
    projects: Vec<projects::Block>,
}

impl Looked {
    /// How many findings are in a state.
    fn count(&self, state: State) -> usize {
        let blocks = self.projects.iter().flat_map(|block| &block.checks);
        let all = self.checks.iter().chain(blocks);
        all.filter(|finding| finding.state == state).count()
    }
}

pub(super) fn run(arguments: &DoctorArguments, config: Option<&Path>) -> anyhow::Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let looked = runtime.block_on(look(config, arguments.offline));
    let (failed, warnings) = (looked.count(State::Failed), looked.count(State::Warning));
    if arguments.json {
        let document = json!({
            "ok": failed == 0,
            "checks": looked.checks,
            "projects": looked.projects,
        });
        print(&document.to_string())?;
    } else {
        for finding in &looked.checks {
            print(&line(finding))?;
        }
        for block in &looked.projects {
            print(&format!("\n{}", block.title()))?;
            for finding in &block.checks {
                print(&line(finding))?;
            }
        }
        if !looked.projects.is_empty() {
            print("")?;
        }
        print(&format!("{failed} failed, {warnings} warnings"))?;
    }
    Ok(if failed == 0 {
        Verdict::Done
    } else {
        Verdict::Refused
    })
}

fn line(finding: &Finding) -> String {
    let word = match finding.state {
        State::Ok => "ok",
        State::Warning => "warning",
        State::Failed => "FAILED",
    };
    format!("{word:8} {:14} {}", finding.check, finding.found)
}

async fn look(config: Option<&Path>, offline: bool) -> Looked {
    let mut looked = Looked::default();
    let findings = &mut looked.checks;
    match Installation::load(config) {
        Ok(installation) => {
            let Installation {
                configuration,
                environment,
            } = &installation;
            findings.extend(state::configuration(configuration));
            findings.push(machine::git().await);
            findings.push(machine::sandbox(configuration.sandbox.mode).await);
            findings.push(machine::agent(&configuration.agent));
            findings.extend(keys::look(configuration, environment, SystemClock.now()));
            findings.extend(state::database(configuration).await);
            findings.extend(log::look(configuration).await);
            findings.extend(app::look(&installation, offline).await);
            findings.extend(hooks::look(configuration, environment).await);
            looked.projects = projects::look(&installation, offline).await;
            if !offline {
                let needed = !looked.projects.is_empty();
                let found = provider::look(&configuration.github, needed).await;
                looked.checks.extend(found);
                let found = health::self_check(configuration).await;
                looked.checks.extend(found);
            }
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
    looked
}
