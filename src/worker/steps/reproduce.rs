//! Running the project's tests at the failing commit.

use super::super::Stepped;
use super::super::repository::{Clone, broken, on_disk};
use super::super::test_runs::Scratch;
use super::super::work::Work;
use super::evidence::test_result;
use crate::change::{Oid, RepoPath, Sha256Digest};
use crate::incident::{EvidenceDocument, Fact, Outcome, Reproduction, StepError};
use crate::workspace::TreeLimits;
use crate::workspace::red_green::{TestEvidence, TestLimits, TestStatus, run_tests};
use crate::workspace::toolchain::{DetectedToolchain, Detection, detect};

/// Runs the tests; when they fail, as often again as the rules say, until they pass once.
pub(super) async fn reproduce(work: Work<'_>) -> Stepped {
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let commit = work.snapshot.failure.commit;
    let base = &work.rules.document().base.0;
    clone.fetch(base, commit).await?;
    let toolchain = match detected(work, &clone, commit, Vec::new()).await? {
        Detection::Found(toolchain) => toolchain,
        other => return Ok(unrunnable(other.to_string())),
    };
    let mut runs = Runs::default();
    for _ in 0..=work.rules.document().reruns.count() {
        match run_once(work, &clone, &toolchain).await? {
            Ok(run) => runs.add(&work, run).await?,
            // Nothing else was different: what cannot be run again does not unsay the failure.
            Err(_) if !runs.statuses.is_empty() => break,
            Err(reason) => return Ok(unrunnable(reason)),
        }
        // Break it: look at the first run only; flaky tests are then diagnosed and "fixed"
        // (`worker::flake::tests_that_fail_once_and_pass_then_are_flaky`).
        if runs.last() != Some(Ok(false)) {
            break;
        }
    }
    Ok(runs.outcome(work.engine.sandbox.describe()))
}

/// One run in a scratch place of its own, home included, so that nothing of one run reaches the next. The inner error says why
/// the tests cannot be run.
async fn run_once(
    work: Work<'_>,
    clone: &Clone<'_>,
    toolchain: &DetectedToolchain,
) -> Result<Result<TestEvidence, String>, StepError> {
    let scratch = Scratch::new(work.engine)?;
    let place = scratch.tree("failing");
    let commit = work.snapshot.failure.commit;
    let tree = checked_out(clone, commit, place.clone()).await?;
    let runner = scratch.runner(work.engine);
    let run = run_tests(toolchain, tree, &place, &runner, TestLimits::default()).await;
    work.engine.passed("tests").await;
    Ok(run.map_err(|error| error.to_string()))
}

/// All runs at the failing commit.
#[derive(Default)]
struct Runs {
    command: Vec<String>,
    statuses: Vec<TestStatus>,
    /// Digests of their signed results.
    signed: Vec<Sha256Digest>,
    documents: Vec<EvidenceDocument>,
}

impl Runs {
    async fn add(&mut self, work: &Work<'_>, run: TestEvidence) -> Result<(), StepError> {
        let (signed, whole) = test_result(work, &run).await?;
        self.statuses.push(run.status);
        self.signed.push(signed.digest());
        self.documents.extend([whole, signed]);
        self.command = run.argv;
        Ok(())
    }

    fn last(&self) -> Option<Result<bool, &'static str>> {
        self.statuses.last().map(|status| status.passed())
    }

    /// How many of them ended so.
    fn count(&self, passed: bool) -> u32 {
        let ended = |status: &&TestStatus| status.passed() == Ok(passed);
        u32::try_from(self.statuses.iter().filter(ended).count()).unwrap_or(u32::MAX)
    }

    /// The first run decides; a later one that passes says that it is flaky. One that neither passed nor failed says nothing.
    fn outcome(self, sandbox: &str) -> Outcome {
        let (passed, failed) = (self.count(true), self.count(false));
        let sandbox = sandbox.to_owned();
        let command = self.command;
        let mut signed = self.signed.into_iter();
        let reproduction = match (
            self.statuses.first().map(|first| first.passed()),
            signed.next(),
        ) {
            (Some(Ok(false)), Some(first)) if passed > 0 => Reproduction::Flaky {
                command,
                sandbox,
                passed,
                failed,
                evidence: std::iter::once(first).chain(signed).collect(),
            },
            (Some(Ok(false)), Some(evidence)) => Reproduction::Red {
                command,
                sandbox,
                evidence,
                repeated: signed.collect(),
            },
            (Some(Ok(true)), Some(evidence)) => Reproduction::Green {
                command,
                sandbox,
                evidence,
            },
            (Some(Err(reason)), _) => Reproduction::Unrunnable {
                reason: reason.to_owned(),
            },
            (None, _) | (_, None) => Reproduction::Unrunnable {
                reason: "the tests were not run; look at it by hand".to_owned(),
            },
        };
        Outcome {
            evidence: self.documents,
            ..Outcome::fact(Fact::Reproduced(reproduction))
        }
    }
}

fn unrunnable(reason: String) -> Outcome {
    Outcome::fact(Fact::Reproduced(Reproduction::Unrunnable { reason }))
}

/// How the project's tests are run at a commit.
pub(super) async fn detected(
    work: Work<'_>,
    clone: &Clone<'_>,
    commit: Oid,
    hints: Vec<RepoPath>,
) -> Result<Detection, StepError> {
    let repository = clone.open()?;
    let configured = work.rules.document().test.clone();
    let programs = work.engine.tools.search_path();
    on_disk(move || {
        let configured = (!configured.is_empty()).then_some(configured.as_slice());
        detect(&repository, commit, configured, &hints, &programs).map_err(|error| broken(&error))
    })
    .await
}

/// Writes a commit's tree into a scratch place and says which tree it is.
pub(super) async fn checked_out(
    clone: &Clone<'_>,
    commit: Oid,
    place: std::path::PathBuf,
) -> Result<Oid, StepError> {
    let repository = clone.open()?;
    on_disk(move || {
        let limits = TreeLimits::default();
        repository
            .checkout(commit, &place, &limits)
            .and_then(|_| repository.commit_tree(commit))
            .map_err(|error| broken(&error))
    })
    .await
}
