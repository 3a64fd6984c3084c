//! Running the project's tests at the failing commit.

use super::super::Stepped;
use super::super::repository::{Clone, broken, on_disk};
use super::super::test_runs::Scratch;
use super::super::work::Work;
use super::evidence::test_result;
use crate::change::{Oid, RepoPath};
use crate::incident::{Fact, Outcome, Reproduction, StepError};
use crate::workspace::TreeLimits;
use crate::workspace::red_green::{TestLimits, run_tests};
use crate::workspace::toolchain::{Detection, detect};

pub(super) async fn reproduce(work: Work<'_>) -> Stepped {
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let commit = work.snapshot.failure.commit;
    let base = &work.rules.document().base.0;
    clone.fetch(base, commit).await?;
    let toolchain = match detected(work, &clone, commit, Vec::new()).await? {
        Detection::Found(toolchain) => toolchain,
        other => return Ok(unrunnable(other.to_string())),
    };
    let scratch = Scratch::new(work.engine)?;
    let tree = checked_out(&clone, commit, scratch.tree("failing")).await?;
    let runner = scratch.runner(work.engine);
    let place = scratch.tree("failing");
    let limits = TestLimits::default();
    let run = match run_tests(&toolchain, tree, &place, &runner, limits).await {
        Ok(run) => run,
        Err(error) => return Ok(unrunnable(error.to_string())),
    };
    work.engine.passed("tests").await;
    let (document, whole) = test_result(&work, &run)?;
    let (command, sandbox) = (run.argv, work.engine.sandbox.describe().to_owned());
    let evidence = document.digest();
    let reproduction = match run.status.passed() {
        Ok(true) => Reproduction::Green {
            command,
            sandbox,
            evidence,
        },
        Ok(false) => Reproduction::Red {
            command,
            sandbox,
            evidence,
        },
        Err(reason) => Reproduction::Unrunnable {
            reason: reason.to_owned(),
        },
    };
    Ok(Outcome {
        evidence: vec![whole, document],
        ..Outcome::fact(Fact::Reproduced(reproduction))
    })
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
