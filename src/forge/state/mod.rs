//! What the forge remembers beside the repositories' objects and references.

mod answers;
mod apps;
mod branches;
mod guard;
mod guards;
mod limits;
mod outbox;
mod pulls;
mod registry;
mod runs;
mod tokens;
mod workflows;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::ForgeError;
use super::git::{CommitFacts, Comparison, Git, ObjectId, ReferenceStamp};
use super::time::Now;

pub(crate) use answers::{Answers, KeptAnswer};
pub(crate) use apps::{App, Apps, Installation, PlannedManifest};
pub use apps::{AppFromManifest, NewApp, TokenForm};
pub use branches::ReferenceChange;
pub(crate) use branches::ReferenceUpdate;
pub(crate) use guard::StateGuard;
pub use guards::Protection;
pub(crate) use guards::Rule;
pub use limits::Limits;
pub(crate) use limits::{Cost, Excess, Meter, Standing, UnderWay};
pub use outbox::{Delivery, HookFaults, NewHook};
pub(crate) use outbox::{Event, Outbox, Outcome, Record};
pub(crate) use pulls::{Ending, PullRequest, PullState};
pub(crate) use registry::{Location, Registry, Shared};
pub(crate) use runs::{Attempt, Job, Run, Step, Suite};
pub(crate) use tokens::{Grant, Token, Tokens};
pub use tokens::{NewToken, TokenKind};
pub(crate) use workflows::Workflow;

/// How many comparisons of two commits are kept per repository before they are forgotten.
const KEPT_COMPARISONS: usize = 256;
/// How many commits are kept per repository before they are forgotten.
const KEPT_COMMITS: usize = 4_096;

/// Locks, and goes on with what is there when another thread panicked meanwhile: every change is made in one piece.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Somebody the forge knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) login: &'static str,
    pub(crate) id: u64,
    pub(crate) email: &'static str,
}

/// Whom the token belongs to.
pub(crate) const TOKEN_OWNER: Account = Account {
    login: "caretaker-bot",
    id: 4_101,
    email: "caretaker-bot@users.noreply.forge.example",
};
/// Who acts through the handle.
pub(crate) const PERSON: Account = Account {
    login: "maya",
    id: 4_102,
    email: "maya@users.noreply.forge.example",
};
/// Who commits when a button or the API merges.
pub(crate) const MERGER: Account = Account {
    login: "web-flow",
    id: 4_103,
    email: "noreply@forge.example",
};

/// One repository: its bare git repository and everything else about it.
pub(crate) struct Repository {
    pub(crate) id: u64,
    pub(crate) git: Git,
    pub(crate) now: Now,
    pub(crate) ids: Arc<Identifiers>,
    /// The address of the forge, for what is told to webhooks.
    pub(crate) url: String,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) apps: Arc<Apps>,
    state: Mutex<RepositoryState>,
    comparisons: Mutex<HashMap<(ObjectId, ObjectId), Arc<Comparison>>>,
    commits: Mutex<HashMap<ObjectId, Arc<CommitFacts>>>,
    pub(crate) answers: Answers,
}

/// Counts up; every thing of the forge gets an id of its own, the same in every run.
#[derive(Debug)]
pub(crate) struct Identifiers(std::sync::atomic::AtomicU64);

impl Identifiers {
    pub(crate) fn new() -> Self {
        Self(std::sync::atomic::AtomicU64::new(70_001))
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
}

/// The merge methods a repository allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeMethods {
    /// A merge commit with two parents.
    pub merge: bool,
    /// One new commit.
    pub squash: bool,
    /// The commits again, one after another.
    pub rebase: bool,
}

/// Whether the forge plays a continuous integration that succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ci {
    /// Check runs exist only where somebody adds them.
    Off,
    /// The head of every open pull request gets a successful check run `test` of the app `github-actions`.
    Automatic,
}

/// A comment in a pull request's conversation.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) number: u64,
    pub(crate) body: String,
    pub(crate) user: Account,
    pub(crate) created_at: u64,
}

/// A check run of an app.
#[derive(Clone, Debug)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    pub(crate) suite: Suite,
    pub(crate) head_sha: ObjectId,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) completed_at: Option<u64>,
}

/// A commit status.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) id: u64,
    pub(crate) sha: ObjectId,
    pub(crate) state: String,
    pub(crate) context: String,
    pub(crate) description: Option<String>,
    pub(crate) target_url: Option<String>,
    pub(crate) creator: Account,
    pub(crate) created_at: u64,
}

/// Everything that changes about a repository.
pub(crate) struct RepositoryState {
    /// What follows the host in addresses of the API: nothing, or `/api/v3`.
    pub(crate) api_path: &'static str,
    pub(crate) owner: String,
    pub(crate) owner_id: u64,
    pub(crate) name: String,
    pub(crate) default_branch: String,
    pub(crate) created_at: u64,
    pub(crate) pushed_at: u64,
    pub(crate) archived: bool,
    pub(crate) allowed: MergeMethods,
    pub(crate) delete_branch_on_merge: bool,
    pub(crate) ci: Ci,
    /// Grows with every change; see [`StateGuard`].
    pub(crate) version: u64,
    /// How the files of the references looked before the last look at them; `None`: look again in any case.
    pub(crate) stamp: Option<ReferenceStamp>,
    /// As of the last look at the bare repository.
    pub(crate) references: BTreeMap<String, ObjectId>,
    pub(crate) reference_changes: Vec<ReferenceChange>,
    /// Old branch names and the names they now have.
    pub(crate) renamed_branches: HashMap<String, String>,
    pub(crate) pulls: Vec<PullRequest>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) workflows: Vec<Workflow>,
    pub(crate) runs: Vec<Run>,
    /// By branch.
    pub(crate) protections: BTreeMap<String, Protection>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) check_runs: Vec<CheckRun>,
    pub(crate) statuses: Vec<Status>,
}

impl RepositoryState {
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The tip of a branch at the last look.
    pub(crate) fn tip(&self, branch: &str) -> Option<&ObjectId> {
        self.references.get(&format!("refs/heads/{branch}"))
    }

    pub(crate) fn pull(&self, number: u64) -> Option<&PullRequest> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    pub(crate) fn pull_mut(&mut self, number: u64) -> Option<&mut PullRequest> {
        self.pulls.iter_mut().find(|pull| pull.number == number)
    }
}

impl Repository {
    /// The state, brought up to date with the bare repository, which pushes change behind our back.
    pub(crate) fn current(&self) -> Result<StateGuard<'_>, ForgeError> {
        let mut state = locked(&self.state);
        self.follow_references(&mut state)?;
        Ok(StateGuard(state))
    }

    /// The state as of the last look, for its names and settings.
    pub(crate) fn remembered(&self) -> StateGuard<'_> {
        StateGuard(locked(&self.state))
    }

    /// A commit's facts, `None` where there is no such commit. They never change, so they are kept.
    pub(crate) fn commit(&self, id: &ObjectId) -> Result<Option<Arc<CommitFacts>>, ForgeError> {
        if let Some(known) = locked(&self.commits).get(id) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(found) = self.git.resolve(id.as_str(), "commit")? else {
            return Ok(None);
        };
        let commit = Arc::new(self.git.commit(&found)?);
        let mut kept = locked(&self.commits);
        if kept.len() >= KEPT_COMMITS {
            kept.clear();
        }
        kept.insert(id.clone(), Arc::clone(&commit));
        Ok(Some(commit))
    }

    /// The comparison of two commits. It never changes, so it is kept.
    pub(crate) fn comparison(
        &self,
        base: &ObjectId,
        head: &ObjectId,
    ) -> Result<Arc<Comparison>, ForgeError> {
        let key = (base.clone(), head.clone());
        if let Some(known) = locked(&self.comparisons).get(&key) {
            return Ok(Arc::clone(known));
        }
        let comparison = Arc::new(self.git.compare(base, head)?);
        let mut kept = locked(&self.comparisons);
        if kept.len() >= KEPT_COMPARISONS {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&comparison));
        Ok(comparison)
    }
}
