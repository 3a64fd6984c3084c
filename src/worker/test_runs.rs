//! A project's tests in the sandbox.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Engine, Tools};
use crate::incident::StepError;
use crate::sandbox::{Command, Limits, Sandbox, Status};
use crate::workspace::red_green::{RunError, TestLimits, TestOutcome, TestRunner, TestStatus};

/// A scratch place of one step: removed when it is dropped.
pub(super) struct Scratch {
    place: tempfile::TempDir,
}

impl Scratch {
    /// A new empty place below the home.
    pub(super) fn new(engine: &Engine) -> Result<Self, StepError> {
        let folder = engine.settings.home.join("scratch");
        // Only its owner may look: a checkout of a private repository lies in it for a while.
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .and_then(|()| tempfile::Builder::new().prefix("step-").tempdir_in(&folder))
            .and_then(|place| std::fs::create_dir(place.path().join("home")).map(|()| place));
        made.map(|place| Self { place }).map_err(|error| {
            StepError::retry(
                Duration::from_secs(5),
                format!("making a scratch place in {}: {error}", folder.display()),
            )
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    /// The tree of this name in it.
    pub(super) fn tree(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// A runner for trees in this place.
    pub(super) fn runner<'a>(&'a self, engine: &'a Engine) -> SandboxedTests<'a> {
        SandboxedTests {
            place: self.path(),
            sandbox: &engine.sandbox,
            tools: &engine.tools,
            limits: engine.settings.tests,
        }
    }
}

/// Runs tests in the sandbox: the tree they belong to and a private home are writable, nothing else is.
pub(super) struct SandboxedTests<'a> {
    place: &'a Path,
    sandbox: &'a Arc<Sandbox>,
    tools: &'a Tools,
    limits: Limits,
}

impl SandboxedTests<'_> {
    /// The whole tree that a directory lies in, so that a package can see its workspace.
    fn tree_of(&self, directory: &Path) -> Option<PathBuf> {
        let below = directory.strip_prefix(self.place).ok()?;
        below.components().next().map(|tree| self.place.join(tree))
    }
}

#[async_trait]
impl TestRunner for SandboxedTests<'_> {
    async fn run(
        &self,
        argv: &[String],
        directory: &Path,
        limits: TestLimits,
    ) -> Result<TestOutcome, RunError> {
        let failed = |reason: String| RunError {
            directory: directory.display().to_string(),
            reason,
        };
        let tree = self
            .tree_of(directory)
            .ok_or_else(|| failed("it is not a scratch tree of this step".to_owned()))?;
        let home = self.place.join("home");
        let mut command = Command::new(argv.iter().cloned(), directory);
        command.environment = self.tools.variables(&home);
        command.writable = vec![tree, home];
        command.readable = self.tools.readable().to_vec();
        command.private_loopback = true;
        command.limits = Limits {
            wall: limits.wall.min(self.limits.wall),
            output: limits.output.min(self.limits.output),
            ..self.limits
        };
        let outcome = self.sandbox.run(&command).await;
        let outcome = outcome.map_err(|error| failed(error.to_string()))?;
        Ok(TestOutcome {
            status: status(outcome.status),
            stdout: outcome.stdout.bytes,
            stderr: outcome.stderr.bytes,
            elapsed: outcome.elapsed,
        })
    }
}

const fn status(status: Status) -> TestStatus {
    match status {
        Status::Exited(code) => TestStatus::Exited(code),
        Status::Signalled(signal) => TestStatus::Signalled(signal),
        Status::TimedOut => TestStatus::TimedOut,
        Status::OutputLimit | Status::ProcessLimit => TestStatus::LimitReached,
    }
}
