//! Running the trees of a plan.

use std::path::Path;

use crate::change::{Oid, Sha256Digest};

use super::super::toolchain::DetectedToolchain;
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

/// What running the tests came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The fix is proven.
    Proven(Box<Proof>),
    /// It is not, with the runs that were made until then.
    Unproven(Unproven, Vec<TestEvidence>),
}

/// Runs a project's tests once, as when a failure is reproduced.
///
/// `tree` is what was checked out into `checkout`.
///
/// # Errors
/// The runner could not run them at all.
pub async fn run_tests(
    toolchain: &DetectedToolchain,
    tree: Oid,
    checkout: &Path,
    runner: &dyn TestRunner,
    limits: TestLimits,
) -> Result<TestEvidence, RunError> {
    let (evidence, _) = observe(toolchain, tree, checkout, runner, limits).await?;
    Ok(evidence)
}

async fn observe(
    toolchain: &DetectedToolchain,
    tree: Oid,
    checkout: &Path,
    runner: &dyn TestRunner,
    limits: TestLimits,
) -> Result<(TestEvidence, Results), RunError> {
    let argv = every_test(&toolchain.test);
    let directory = checkout.join(&toolchain.root);
    let outcome = runner.run(&argv, &directory, limits).await?;
    let results = read(toolchain.ecosystem, &outcome.stdout, &outcome.stderr);
    let evidence = TestEvidence {
        tree,
        argv,
        directory: toolchain.root.clone(),
        status: outcome.status,
        failed: kept_names(&results.failed),
        stdout: Sha256Digest::of(&outcome.stdout),
        stderr: Sha256Digest::of(&outcome.stderr),
        tail: tail(&outcome),
        elapsed_ms: u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX),
    };
    Ok((evidence, results))
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
    let (tests, judge) = (&plan.toolchain, Judge { plan });
    let (red, results) = observe(tests, plan.red, &trees.red, runner, limits).await?;
    let redness = match judge.red(red.status, &results) {
        Ok(redness) => redness,
        Err(unproven) => return Ok(Verdict::Unproven(unproven, vec![red])),
    };
    let (green, results) = observe(tests, plan.green, &trees.green, runner, limits).await?;
    let listed = judge.added_passed(&results);
    if let Err(unproven) = passes(green.status, UnprovenReason::GreenFails).and(listed) {
        return Ok(Verdict::Unproven(unproven, vec![red, green]));
    }
    let (tree, checkout) = (plan.base_on_fix, &trees.base_on_fix);
    let base_on_fix = run_tests(tests, tree, checkout, runner, limits).await?;
    if let Err(unproven) = passes(base_on_fix.status, UnprovenReason::BaseTestsFailOnFix) {
        return Ok(Verdict::Unproven(unproven, vec![red, green, base_on_fix]));
    }
    Ok(Verdict::Proven(Box::new(Proof {
        added: plan.added.clone(),
        redness,
        red,
        green,
        base_on_fix,
    })))
}

struct Judge<'a> {
    plan: &'a Plan,
}

impl Judge<'_> {
    fn red(&self, status: TestStatus, results: &Results) -> Result<Redness, Unproven> {
        let unproven = |reason, detail| Err(Unproven::new(reason, detail));
        if decided(status)? {
            return unproven(
                UnprovenReason::RedPasses,
                "the tests, with those of the fix, pass without the fix",
            );
        }
        if !results.lists_failures {
            return Ok(Redness::RunFailed);
        }
        if self.names_added(&results.failed) {
            return Ok(Redness::AddedTestFailed);
        }
        unproven(
            UnprovenReason::AddedTestPassesOnBase,
            "tests fail without the fix, but none of those that it adds is among them",
        )
    }

    fn added_passed(&self, results: &Results) -> Result<(), Unproven> {
        if !results.lists_passes || self.names_added(&results.passed) {
            return Ok(());
        }
        Err(Unproven::new(
            UnprovenReason::AddedTestNotRun,
            "the run lists the tests that passed, and none of those that the fix adds is among them",
        ))
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
fn decided(status: TestStatus) -> Result<bool, Unproven> {
    let undecided = |reason| Unproven::new(UnprovenReason::RunUndecided, reason);
    status.passed().map_err(undecided)
}

fn passes(status: TestStatus, otherwise: UnprovenReason) -> Result<(), Unproven> {
    if decided(status)? {
        return Ok(());
    }
    let detail = match status {
        TestStatus::Exited(code) => format!("the tests ended with exit code {code}"),
        TestStatus::Signalled(signal) => format!("the tests were ended by signal {signal}"),
        other => format!("the tests ended with {other:?}"),
    };
    Err(Unproven::new(otherwise, &detail))
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

/// Sorted, because a runner with threads prints failures in the order in which they happened to end.
fn kept_names(names: &[String]) -> Vec<String> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    let kept = sorted.into_iter().take(FAILED_KEPT);
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
