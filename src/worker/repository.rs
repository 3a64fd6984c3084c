//! A project's trusted repository: the bare clone that only caretaker writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Engine;
use crate::change::Oid;
use crate::connector::{Connector, GitRemote, GitUse};
use crate::id::ProjectId;
use crate::incident::StepError;
use crate::workspace::git_command::{GitCommand, GitError, Push, RefName, Refspec, Remote};
use crate::workspace::{TrustedRepository, WorkspaceError};

/// How long to wait before a failed conversation with the remote is tried again.
const REMOTE_PAUSE: Duration = Duration::from_secs(2);

/// The project's clone and the means to refresh it.
pub(super) struct Clone<'a> {
    path: PathBuf,
    git: GitCommand,
    connector: &'a dyn Connector,
}

impl<'a> Clone<'a> {
    /// The clone of a project, made when it is not there.
    pub(super) fn of(
        engine: &Engine,
        project: &ProjectId,
        connector: &'a dyn Connector,
    ) -> Result<Self, StepError> {
        let path = folder(&engine.settings.home, project);
        TrustedRepository::open_or_create(&path).map_err(|error| broken(&error))?;
        let git = GitCommand::new(&path, &engine.settings.launcher)
            .map_err(|error| remote_failure(&error))?
            .with_environment(std::env::vars());
        Ok(Self {
            path,
            git,
            connector,
        })
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the clone; cheap, and not shared between threads.
    pub(super) fn open(&self) -> Result<TrustedRepository, StepError> {
        TrustedRepository::open_or_create(&self.path).map_err(|error| broken(&error))
    }

    /// The git executable on it.
    pub(super) const fn git(&self) -> &GitCommand {
        &self.git
    }

    /// Talks to the remote; once more with a credential in another form, where the first one opens nothing and there is one.
    /// Nothing was done by then: the remote did not let git in.
    async fn talk(&self, talk: &Talk<'_>) -> Result<(), StepError> {
        let purpose = talk.purpose();
        let given = self.connector.git_remote(purpose).await;
        let given = given.map_err(|error| StepError::retry(REMOTE_PAUSE, error))?;
        let failed = match self.once(&given, talk).await {
            Err(failed @ GitError::AuthenticationOrAbsent { .. }) => failed,
            other => return other.map_err(|error| remote_failure(&error)),
        };
        // Break it: return the failure here; `worker::acting_as_app::a_git_server_that_does_not_know_the_long_form_gets_the_short_one`
        // then fails.
        let other = self.connector.git_remote_instead(&given, purpose).await;
        let other = other.map_err(|error| StepError::retry(REMOTE_PAUSE, error))?;
        let talked = match other {
            Some(other) => self.once(&other, talk).await,
            None => Err(failed),
        };
        talked.map_err(|error| remote_failure(&error))
    }

    async fn once(&self, remote: &GitRemote, talk: &Talk<'_>) -> Result<(), GitError> {
        let remote = Remote::new(&remote.url, remote.token.clone())?;
        match talk {
            Talk::Fetch(refspec) => self.git.fetch(&remote, std::slice::from_ref(refspec)).await,
            Talk::Push(push) => self.git.push(&remote, push).await,
        }
    }

    /// Pushes one ref.
    pub(super) async fn push(&self, push: &Push) -> Result<(), StepError> {
        self.talk(&Talk::Push(push)).await
    }

    /// Fetches the base branch, and a commit when the branch does not bring it.
    pub(super) async fn fetch(&self, base: &str, commit: Oid) -> Result<(), StepError> {
        let branch = Refspec::Ref {
            from: name(&format!("refs/heads/{base}"))?,
            to: name(&format!("refs/remotes/origin/{base}"))?,
        };
        self.talk(&Talk::Fetch(branch)).await?;
        if self.open()?.contains(commit) {
            return Ok(());
        }
        let wanted = Refspec::Commit {
            from: commit,
            to: name(&format!("refs/caretaker/commits/{commit}"))?,
        };
        self.talk(&Talk::Fetch(wanted)).await
    }
}

/// What is said to the remote.
enum Talk<'a> {
    Fetch(Refspec),
    Push(&'a Push),
}

impl Talk<'_> {
    const fn purpose(&self) -> GitUse {
        match self {
            Self::Fetch(_) => GitUse::Fetch,
            Self::Push(_) => GitUse::Push,
        }
    }
}

/// Where a project's clone lies.
pub fn folder(home: &Path, project: &ProjectId) -> PathBuf {
    home.join("repositories").join(format!("{project}.git"))
}

/// The full name of a reference.
pub(super) fn name(full: &str) -> Result<RefName, StepError> {
    full.parse()
        .map_err(|error: GitError| remote_failure(&error))
}

/// A fault of our own clone or scratch place: a full disk, a lock. Another attempt may succeed.
pub(super) fn broken(error: &WorkspaceError) -> StepError {
    StepError::retry(Duration::ZERO, error)
}

/// A fault on the way to the remote.
pub(super) fn remote_failure(error: &GitError) -> StepError {
    StepError::retry(REMOTE_PAUSE, error)
}

/// Runs work on objects and files beside the loop, so that a large tree does not keep leases from being extended.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(StepError::retry(
            Duration::from_secs(1),
            format!("working on the repository: {error}"),
        )),
    }
}
