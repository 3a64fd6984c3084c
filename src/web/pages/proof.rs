//! The test runs that prove a fix.

use super::super::evidence::TestRun;
use super::super::shown::Shown;
use super::{Badge, tone};
use crate::attest::TrustHistory;
use crate::change::Sha256Digest;
use crate::incident::Reproduction;
use crate::store::{Scoped, StoreError};
use crate::workspace::red_green::{TestEvidence, TestStatus};

/// One run: what it had to show, and what it shows.
pub(super) struct RunView {
    pub(super) name: &'static str,
    /// What was run on what.
    pub(super) about: &'static str,
    pub(super) outcome: Badge,
    /// Whether it shows what it has to.
    pub(super) fits: bool,
    pub(super) ending: String,
    pub(super) command: Shown,
    pub(super) failed: Vec<Shown>,
    pub(super) tail: Shown,
    pub(super) digest: String,
    /// Why the evidence does not count.
    pub(super) refused: Shown,
}

/// The runs of a fix, in the order in which they are recorded, and whether each has to pass.
const PARTS: [(&str, &str, bool); 3] = [
    (
        "red",
        "the tests of the fix, without the fix: they have to fail",
        false,
    ),
    ("green", "the fix: its tests have to pass", true),
    (
        "unchanged tests",
        "the fix with the tests as they were before: they have to pass",
        true,
    ),
];

/// Reads and checks the runs of a fix.
pub(super) async fn runs(
    scope: Scoped<'_>,
    trust: &TrustHistory,
    digests: &[Sha256Digest],
) -> Result<Vec<RunView>, StoreError> {
    let mut views = Vec::new();
    for ((name, about, must_pass), digest) in PARTS.into_iter().zip(digests) {
        let run = TestRun::read(scope, trust, *digest).await?;
        views.push(view(name, about, must_pass, &run));
    }
    Ok(views)
}

/// Reads and checks a run at the failing commit. It has to fail, unless the runs are said to have ended one way and the other.
pub(super) async fn reproduction(
    scope: Scoped<'_>,
    trust: &TrustHistory,
    digest: Sha256Digest,
    reproduction: &Reproduction,
) -> Result<RunView, StoreError> {
    let run = TestRun::read(scope, trust, digest).await?;
    let mut view = view(
        "reproduction",
        "the tests at the failing commit",
        false,
        &run,
    );
    if let (Reproduction::Flaky { .. }, Some(passed)) = (reproduction, run.passed()) {
        let word = if passed { "passed" } else { "failed" };
        let tone = tone::WARN;
        (view.outcome, view.fits) = (Badge { word, tone }, true);
    }
    Ok(view)
}

/// Whether all three runs are there and show what they have to.
pub(super) fn proven(runs: &[RunView]) -> bool {
    runs.len() == PARTS.len() && runs.iter().all(|run| run.fits)
}

fn view(name: &'static str, about: &'static str, must_pass: bool, test: &TestRun) -> RunView {
    let passed = test.passed();
    let fits = passed == Some(must_pass);
    let (word, tone) = match (passed, fits) {
        (Some(true), true) => ("passed", tone::GOOD),
        (Some(true), false) => ("passed", tone::BAD),
        (Some(false), true) => ("failed, as it has to", tone::GOOD),
        (Some(false), false) => ("failed", tone::BAD),
        (None, _) => ("no evidence", tone::BAD),
    };
    let record = test.run.as_ref();
    let failed = record.map(|record| record.failed.as_slice());
    RunView {
        name,
        about,
        outcome: Badge { word, tone },
        fits,
        ending: record.map(ending).unwrap_or_default(),
        command: Shown::line(
            record
                .map(|record| record.argv.join(" "))
                .unwrap_or_default(),
        ),
        failed: failed.unwrap_or_default().iter().map(Shown::line).collect(),
        tail: Shown::block(record.map_or("", |record| record.tail.as_str())),
        digest: test.digest.to_string(),
        refused: Shown::line(test.signed.as_ref().err().map_or("", String::as_str)),
    }
}

fn ending(record: &TestEvidence) -> String {
    let seconds = record.elapsed_ms / 1_000;
    let tenths = record.elapsed_ms % 1_000 / 100;
    let how = match record.status {
        TestStatus::Exited(code) => format!("exit code {code}"),
        TestStatus::Signalled(signal) => format!("signal {signal}"),
        TestStatus::TimedOut => "out of time".to_owned(),
        TestStatus::LimitReached => "over a limit".to_owned(),
    };
    format!("{how} after {seconds}.{tenths} s")
}
