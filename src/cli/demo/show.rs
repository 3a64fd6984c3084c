//! What a person sees of the demo: one line for each thing that happens, the links, the ledger.

use std::path::Path;

use serde_json::json;

use super::Scenario;
use super::installation::Stage;
use super::story::End;
use crate::audit::{Report, StoredLedger};
use crate::cli::{ledger, print};
use crate::incident::{Fact, Reproduction, Snapshot};

/// Tells the story on standard output, or nothing of it before the one JSON document.
pub(super) struct Teller {
    quiet: bool,
    facts: usize,
}

impl Teller {
    pub(super) const fn new(quiet: bool) -> Self {
        Self { quiet, facts: 0 }
    }

    /// One line of the story.
    pub(super) fn said(&self, line: &str) -> anyhow::Result<()> {
        if self.quiet {
            return Ok(());
        }
        print(&format!("  {line}"))
    }

    pub(super) fn opening(&self, scenario: Scenario) -> anyhow::Result<()> {
        if self.quiet {
            return Ok(());
        }
        let what = match scenario {
            Scenario::Fix => "a failing test is fixed, approved, merged and proven",
            Scenario::Denied => "the right fix lies in a denied path",
            Scenario::Tampered => "the pull request is changed after it was approved",
            Scenario::Flaky => "a test fails by chance; it is reported, not fixed",
        };
        print(&format!(
            "caretaker demo, scenario {}: {what}\nEverything is local. The coder is scripted: it replays a prepared edit, no model is involved.\n",
            scenario.name()
        ))
    }

    pub(super) fn places(&self, stage: &Stage, home: &Path, kept: bool) -> anyhow::Result<()> {
        self.said(&format!("forge        {}", stage.planted.repository.url()))?;
        self.said(&format!("pages        {}", stage.pages))?;
        if kept {
            self.said(&format!("state        {}", home.display()))?;
        }
        self.said("")
    }

    pub(super) fn link(&self, link: &str) -> anyhow::Result<()> {
        self.said(&format!("             {link} (works once)"))
    }

    pub(super) fn serving(&self, pages: &str) -> anyhow::Result<()> {
        self.said(&format!(
            "the pages stay up at {pages}; press Ctrl-C to end"
        ))
    }

    /// Lines for the facts that are new since the last look.
    pub(super) fn facts(&mut self, snapshot: &Snapshot) -> anyhow::Result<()> {
        for recorded in snapshot.facts.iter().skip(self.facts) {
            if let Some((word, line)) = in_words(&recorded.fact) {
                self.said(&format!("{word:<12} {line}"))?;
            }
        }
        self.facts = snapshot.facts.len();
        Ok(())
    }

    pub(super) fn ending(
        &self,
        scenario: Scenario,
        end: &End,
        stored: &StoredLedger,
        report: &Report,
        surprises: &[String],
    ) -> anyhow::Result<()> {
        let milliseconds = u64::try_from(end.elapsed.as_millis()).unwrap_or(u64::MAX);
        if self.quiet {
            let document = json!({
                "scenario": scenario.name(),
                "incident": end.incident,
                "stage": end.stage,
                "closed_reason": end.closed_reason,
                "pull_request": end.pull_request,
                "merge_commit": end.merge_commit,
                "change_digest": end.change_digest,
                "ledger": {"events": end.events, "verdict": end.verdict},
                "elapsed_ms": milliseconds,
                "surprises": surprises,
            });
            return print(&document.to_string());
        }
        if stored.rows.is_empty() {
            print("\nledger: nothing was proposed, so that nothing had to be signed")?;
        } else {
            print(&format!("\n{}", ledger::table(stored, report)))?;
        }
        for surprise in surprises {
            print(&format!("NOT AS IT SHOULD BE: {surprise}"))?;
        }
        print(&format!(
            "{} is {} after {}.{:01} s",
            end.incident,
            end.stage,
            milliseconds / 1000,
            milliseconds % 1000 / 100
        ))
    }
}

/// A fact as one line of the story.
fn in_words(fact: &Fact) -> Option<(&'static str, String)> {
    confirmed(fact).or_else(|| worked_on(fact))
}

/// What says whether the failure is real.
fn confirmed(fact: &Fact) -> Option<(&'static str, String)> {
    Some(match fact {
        Fact::Reproduced(
            reproduction @ (Reproduction::Red {
                command, sandbox, ..
            }
            | Reproduction::Flaky {
                command, sandbox, ..
            }),
        ) => (
            "reproduced",
            format!(
                "`{}` fails in the sandbox ({sandbox}) too{}",
                command.join(" "),
                reproduction
                    .tally()
                    .map_or_else(String::new, |tally| format!(", {tally}"))
            ),
        ),
        Fact::Reproduced(Reproduction::Green { command, .. }) => (
            "reproduced",
            format!("no: `{}` passes in the sandbox", command.join(" ")),
        ),
        Fact::Reproduced(Reproduction::Unrunnable { reason }) => {
            ("reproduced", format!("no: {reason}"))
        }
        Fact::RerunAsked { run_id, attempt } => (
            "run again",
            format!("attempt {attempt} of run {run_id} asked of the provider, at the same commit"),
        ),
        Fact::RerunDeclined { reason } => ("run again", format!("no: {}", clipped(reason))),
        Fact::Recurred {
            run_id, attempt, ..
        } => (
            "run again",
            format!("attempt {attempt} of run {run_id} fails, too"),
        ),
        Fact::Recovered { run_id, attempt } => {
            ("watch", format!("attempt {attempt} of run {run_id} passes"))
        }
        _ => return None,
    })
}

/// What follows then.
fn worked_on(fact: &Fact) -> Option<(&'static str, String)> {
    Some(match fact {
        Fact::Extracted { count, .. } => (
            "read",
            format!("{count} typed facts taken from the untrusted log"),
        ),
        Fact::Diagnosed(diagnosis) => ("diagnosed", diagnosis.cause.clone()),
        Fact::Screened { passed: true } => {
            ("gate", "none of the diagnosis's files is denied".to_owned())
        }
        Fact::Screened { passed: false } => (
            "gate",
            "DENIED right after diagnosis: no test of a fix, no branch, no pull request".to_owned(),
        ),
        Fact::Fixed(fix) => (
            "fixed",
            format!(
                "red then green proven by {} test runs; one commit, change {}",
                fix.tests.len(),
                short(&fix.change.digest.to_string())
            ),
        ),
        Fact::Decided(decision) => (
            "gate",
            format!(
                "verdict {}, class {}",
                decision.verdict,
                decision.class.as_str()
            ),
        ),
        Fact::Opened { url, .. } => ("proposed", url.clone()),
        Fact::Requested { request } => ("approve", format!("{} is asked", request.principal)),
        Fact::Merging { .. } => (
            "reconcile",
            "live equals approved: entries, pull request, base, checks".to_owned(),
        ),
        Fact::MergeAsked { answer, .. } => ("execute", answer.clone()),
        Fact::Landed {
            commit, matches, ..
        } => (
            "reconcile",
            format!(
                "landed as {commit}, {} what was approved",
                if *matches { "equal to" } else { "NOT" }
            ),
        ),
        Fact::Escalated { detail, .. } => ("escalated", clipped(detail)),
        Fact::Closed { reason, detail } => ("closed", format!("{}: {detail}", reason.as_str())),
        _ => return None,
    })
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn clipped(text: &str) -> String {
    let mut clipped: String = text.chars().take(160).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}
