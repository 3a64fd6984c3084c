//! Red then green: the proof that a fix fixes, by tests that fail without it and pass with it.
//!
//! *Green* is the fix. *Red* is the base with nothing of the fix but its tests. A third tree, *base on fix*, is the fix with
//! nothing but the base's tests. The tests must fail on the first and pass on the two others, at least one test must be new,
//! and none may have been deleted, skipped or weakened. [`plan()`] decides which trees these are, or why there is no proof,
//! without running anything; [`prove()`] runs them through a [`TestRunner`].

mod added;
mod build;
mod guard;
mod lexer;
mod plan;
mod prove;
mod results;
mod rust_items;
mod structure;
mod tokens;
mod trees;

pub use plan::{Plan, Planned, plan};
pub use prove::{Verdict, prove, run_tests};
pub use trees::ScratchTrees;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::change::{Oid, RepoPath, Sha256Digest};

/// Why a fix is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnprovenReason {
    /// The fix adds no test.
    NoTestAdded,
    /// The fix changes tests only.
    NothingButTests,
    /// A test of the base is gone.
    TestDeleted,
    /// A test of the base is under a new condition by which it may not run.
    TestSkipped,
    /// A test of the base lost an assertion, or runs otherwise.
    TestWeakened,
    /// Tests and code of one file cannot be told apart.
    InlineTestsNotSeparable,
    /// The fix changes how the tests are run.
    TestConfigurationChanged,
    /// The fix makes code behave otherwise when it is tested.
    SourceKnowsTests,
    /// The files of base and fix cannot be put together.
    TreesNotBuildable,
    /// The tests pass without the fix.
    RedPasses,
    /// The tests fail without the fix, but those that it adds pass.
    AddedTestPassesOnBase,
    /// The tests fail with the fix.
    GreenFails,
    /// The tests pass with the fix, but those that it adds are not among them.
    AddedTestNotRun,
    /// The base's own tests fail with the fix.
    BaseTestsFailOnFix,
    /// A run neither passed nor failed: out of time, killed, or not startable.
    RunUndecided,
}

impl UnprovenReason {
    /// The word used in records and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoTestAdded => "no-test-added",
            Self::NothingButTests => "nothing-but-tests",
            Self::TestDeleted => "test-deleted",
            Self::TestSkipped => "test-skipped",
            Self::TestWeakened => "test-weakened",
            Self::InlineTestsNotSeparable => "inline-tests-not-separable",
            Self::TestConfigurationChanged => "test-configuration-changed",
            Self::SourceKnowsTests => "source-knows-tests",
            Self::TreesNotBuildable => "trees-not-buildable",
            Self::RedPasses => "red-passes",
            Self::AddedTestPassesOnBase => "added-test-passes-on-base",
            Self::GreenFails => "green-fails",
            Self::AddedTestNotRun => "added-test-not-run",
            Self::BaseTestsFailOnFix => "base-tests-fail-on-fix",
            Self::RunUndecided => "run-undecided",
        }
    }
}

/// A fix without proof: the incident is handed to a person with this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the fix is not proven: {}: {detail}", .reason.as_str())]
#[serde(deny_unknown_fields)]
pub struct Unproven {
    /// Why.
    pub reason: UnprovenReason,
    /// Where, for people, printable, at most 480 bytes.
    pub detail: String,
}

impl Unproven {
    /// Longest detail, in bytes: it is signed as free text.
    const DETAIL_BYTES: usize = 480;

    fn new(reason: UnprovenReason, detail: &str) -> Self {
        let mut end = detail.len().min(Self::DETAIL_BYTES);
        while !detail.is_char_boundary(end) {
            end -= 1;
        }
        let detail = detail.get(..end).unwrap_or_default().to_owned();
        Self { reason, detail }
    }
}

/// A test that the fix adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddedTest {
    /// The file it is in.
    pub file: RepoPath,
    /// Its name; empty when the file's language is not known.
    pub name: String,
}

/// How much a run of tests may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestLimits {
    /// Time on the wall.
    pub wall: Duration,
    /// Bytes of standard output, and as many of standard error.
    pub output: u64,
}

impl Default for TestLimits {
    fn default() -> Self {
        Self {
            wall: Duration::from_mins(15),
            output: 8 << 20,
        }
    }
}

/// How a run of tests ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestStatus {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Its time was used up.
    TimedOut,
    /// It used more of something else than it may: output, processes.
    LimitReached,
}

/// Exit codes by which a shell says that a program cannot be started.
const NOT_STARTED: [i32; 2] = [126, 127];

impl TestStatus {
    /// Whether the tests passed.
    ///
    /// # Errors
    /// Why the run says neither that they pass nor that they fail, and the mend.
    pub fn passed(self) -> Result<bool, &'static str> {
        match self {
            Self::Exited(0) => Ok(true),
            Self::Exited(code) if NOT_STARTED.contains(&code) => Err(
                "the test command could not be started; install it, or correct it in the project's rules",
            ),
            Self::Exited(_) | Self::Signalled(_) => Ok(false),
            Self::TimedOut => {
                Err("the tests ran out of time; raise the limit, or leave it to a person")
            }
            Self::LimitReached => {
                Err("the tests used more than they may; raise the limit, or leave it to a person")
            }
        }
    }
}

/// What a run of tests came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOutcome {
    /// How it ended.
    pub status: TestStatus,
    /// Its standard output, as far as kept.
    pub stdout: Vec<u8>,
    /// Its standard error, as far as kept.
    pub stderr: Vec<u8>,
    /// Time on the wall.
    pub elapsed: Duration,
}

/// Tests that could not be run at all.
#[derive(Debug, thiserror::Error)]
#[error("running the tests in {directory}: {reason}")]
pub struct RunError {
    /// Where.
    pub directory: String,
    /// Why, and the mend.
    pub reason: String,
}

/// Runs a project's tests; the worker gives one that does so inside the sandbox.
#[async_trait]
pub trait TestRunner: Send + Sync {
    /// Runs a command in a directory of a scratch tree.
    async fn run(
        &self,
        argv: &[String],
        directory: &Path,
        limits: TestLimits,
    ) -> Result<TestOutcome, RunError>;
}

/// One run of tests, as evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestEvidence {
    /// The tree that was tested.
    pub tree: Oid,
    /// The command.
    pub argv: Vec<String>,
    /// Directory it was run in, from the tree's top; empty for the top.
    pub directory: String,
    /// How it ended.
    pub status: TestStatus,
    /// Names of failed tests as the runner printed them, sorted, at most 20.
    pub failed: Vec<String>,
    /// SHA-256 of the standard output that was kept.
    pub stdout: Sha256Digest,
    /// SHA-256 of the standard error that was kept.
    pub stderr: Sha256Digest,
    /// The end of both, printable, at most 2,000 bytes.
    pub tail: String,
    /// Time on the wall, in milliseconds.
    pub elapsed_ms: u64,
}

/// How the tests failed without the fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redness {
    /// A test that the fix adds was reported as failed.
    AddedTestFailed,
    /// The run failed without a list of tests: it does not build, or the runner's output is not known.
    RunFailed,
}

/// A fix, proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The tests that the fix adds.
    pub added: Vec<AddedTest>,
    /// How red failed.
    pub redness: Redness,
    /// The base with the fix's tests: failed.
    pub red: TestEvidence,
    /// The fix: passed.
    pub green: TestEvidence,
    /// The fix with the base's tests: passed.
    pub base_on_fix: TestEvidence,
}
