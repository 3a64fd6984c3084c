//! Running the trees of a plan.

use std::path::Path;

use crate::change::{Oid, Sha256Digest};

use super::results::{Results, names, read};
use super::{
    Plan, Proof, Redness, RunError, ScratchTrees, TestEvidence, TestLimits, TestOutcome,
    TestRunner, TestStatus, Unproven, UnprovenReason,
};

/// Names of failed tests that are kept as evidence, and bytes of each.
const FAILED_KEPT: usize = 20;
const NAME_BYTES: usize = 200;
/// Bytes of output that are kept as evidence.
const TAIL_BYTES: usize = 2_000;
/// Exit codes by which a shell says that a program cannot be started.
const NOT_STARTED: [i32; 2] = [126, 127];

/// What running the tests came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The fix is proven.
    Proven(Box<Proof>),
    /// It is not, with the runs that were made until then.
    Unproven(Unproven, Vec<TestEvidence>),
}

/// Runs the tests on red, on green and on the base's tests over the fix, and stops at the first that is not as it must be.
///
/// # Errors
/// The runner could not run them at all.
pub async fn prove(
    plan: &Plan,
    trees: &ScratchTrees,
    runner: &dyn TestRunner,
    limits: TestLimits,
) -> Result<Verdict, RunError> {
    let run = Run {
        plan,
        runner,
        limits,
    };
    let mut evidence = Vec::new();
    let (outcome, results) = run.once(plan.red, &trees.red, &mut evidence).await?;
    let redness = match run.red(&outcome, &results) {
        Ok(redness) => redness,
        Err(unproven) => return Ok(Verdict::Unproven(unproven, evidence)),
    };
    let (outcome, results) = run.once(plan.green, &trees.green, &mut evidence).await?;
    let listed = run.added_passed(&results);
    if let Err(unproven) = passes(&outcome, UnprovenReason::GreenFails).and(listed) {
        return Ok(Verdict::Unproven(unproven, evidence));
    }
    let (outcome, _) = run
        .once(plan.base_on_fix, &trees.base_on_fix, &mut evidence)
        .await?;
    if let Err(unproven) = passes(&outcome, UnprovenReason::BaseTestsFailOnFix) {
        return Ok(Verdict::Unproven(unproven, evidence));
    }
    Ok(match <[TestEvidence; 3]>::try_from(evidence) {
        Ok([red, green, base_on_fix]) => Verdict::Proven(Box::new(Proof {
            added: plan.added.clone(),
            redness,
            red,
            green,
            base_on_fix,
        })),
        Err(evidence) => Verdict::Unproven(undecided("a run left no evidence"), evidence),
    })
}

struct Run<'a> {
    plan: &'a Plan,
    runner: &'a dyn TestRunner,
    limits: TestLimits,
}

impl Run<'_> {
    async fn once(
        &self,
        tree: Oid,
        checkout: &Path,
        evidence: &mut Vec<TestEvidence>,
    ) -> Result<(TestOutcome, Results), RunError> {
        let toolchain = &self.plan.toolchain;
        let argv = every_test(&toolchain.test);
        let directory = checkout.join(&toolchain.root);
        let outcome = self.runner.run(&argv, &directory, self.limits).await?;
        let results = read(toolchain.ecosystem, &outcome.stdout, &outcome.stderr);
        evidence.push(TestEvidence {
            tree,
            argv,
            directory: toolchain.root.clone(),
            status: outcome.status,
            failed: kept_names(&results.failed),
            stdout: Sha256Digest::of(&outcome.stdout),
            stderr: Sha256Digest::of(&outcome.stderr),
            tail: tail(&outcome),
            elapsed_ms: u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
        });
        Ok((outcome, results))
    }

    fn red(&self, outcome: &TestOutcome, results: &Results) -> Result<Redness, Unproven> {
        if decided(outcome)? {
            return Err(Unproven {
                reason: UnprovenReason::RedPasses,
                detail: "the tests, with those of the fix, pass without the fix".to_owned(),
            });
        }
        if !results.lists_failures {
            return Ok(Redness::RunFailed);
        }
        if self.names_added(&results.failed) {
            return Ok(Redness::AddedTestFailed);
        }
        Err(Unproven {
            reason: UnprovenReason::AddedTestPassesOnBase,
            detail: "tests fail without the fix, but none of those that it adds is among them"
                .to_owned(),
        })
    }

    fn added_passed(&self, results: &Results) -> Result<(), Unproven> {
        if !results.lists_passes || self.names_added(&results.passed) {
            return Ok(());
        }
        Err(Unproven {
            reason: UnprovenReason::AddedTestNotRun,
            detail: "the run lists the tests that passed, and none of those that the fix adds is among them"
                .to_owned(),
        })
    }

    fn names_added(&self, printed: &[String]) -> bool {
        let ecosystem = self.plan.toolchain.ecosystem;
        printed.iter().any(|name| {
            let added = self.plan.added.iter();
            added.clone().any(|test| names(ecosystem, name, test))
        })
    }
}

/// Whether the tests passed; an error when the run says neither.
fn decided(outcome: &TestOutcome) -> Result<bool, Unproven> {
    match outcome.status {
        TestStatus::Exited(0) => Ok(true),
        TestStatus::Exited(code) if NOT_STARTED.contains(&code) => Err(undecided(
            "the test command could not be started; install it, or correct it in the project's rules",
        )),
        TestStatus::Exited(_) | TestStatus::Signalled(_) => Ok(false),
        TestStatus::TimedOut => Err(undecided("the tests ran out of time")),
        TestStatus::LimitReached => Err(undecided("the tests used more than they may")),
    }
}

fn passes(outcome: &TestOutcome, otherwise: UnprovenReason) -> Result<(), Unproven> {
    if decided(outcome)? {
        return Ok(());
    }
    Err(Unproven {
        reason: otherwise,
        detail: match outcome.status {
            TestStatus::Exited(code) => format!("the tests ended with exit code {code}"),
            other => format!("the tests ended with {other:?}"),
        },
    })
}

fn undecided(detail: &str) -> Unproven {
    Unproven {
        reason: UnprovenReason::RunUndecided,
        detail: detail.to_owned(),
    }
}

/// The command, told to go on after a failure where it would stop: otherwise a failure elsewhere could hide the added test.
fn every_test(argv: &[String]) -> Vec<String> {
    const GO_ON: &str = "--no-fail-fast";
    let mut argv = argv.to_vec();
    let cargo = argv.first().is_some_and(|program| program == "cargo");
    let after = match argv.get(1).map(String::as_str) {
        Some("test" | "t") => 2,
        Some("nextest") => 3,
        _ => return argv,
    };
    if cargo && argv.len() >= after && !argv.iter().any(|word| word == GO_ON) {
        argv.insert(after, GO_ON.to_owned());
    }
    argv
}

fn kept_names(names: &[String]) -> Vec<String> {
    let kept = names.iter().take(FAILED_KEPT);
    kept.map(|name| printable(name, NAME_BYTES)).collect()
}

fn tail(outcome: &TestOutcome) -> String {
    let end = |bytes: &[u8]| {
        let start = bytes.len().saturating_sub(TAIL_BYTES / 2);
        printable(
            &String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()),
            TAIL_BYTES / 2,
        )
    };
    [end(&outcome.stdout), end(&outcome.stderr)].concat()
}

/// The end of a text without control and direction characters, at most so many bytes.
fn printable(text: &str, bytes: usize) -> String {
    let hidden = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let mut room = bytes;
    let mut kept: Vec<char> = Vec::new();
    for character in text.chars().rev().filter(|c| !hidden(c)) {
        let Some(left) = room.checked_sub(character.len_utf8()) else {
            break;
        };
        room = left;
        kept.push(character);
    }
    kept.iter().rev().collect()
}
