//! The port to a hosting provider. The kernel and the worker know only this; GitHub is the first implementation.

pub mod github;

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::approve::Binding;
use crate::change::Oid;
use crate::clock::Millis;
use crate::execute::{MergeAnswer, MergeOrder};
use crate::reconcile::{LandedView, LiveView};

/// Why a call to the provider gave no answer. Retries and waits are the worker's business, never the connector's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorError {
    /// Nothing answered, the answer broke off, or the deadline passed. Whether a change took effect is unknown.
    #[error("{action} at {address}: {reason}")]
    Unreachable {
        /// What was being done.
        action: String,
        /// Where.
        address: String,
        /// What happened.
        reason: String,
    },
    /// A limit: come back later.
    #[error("{action}: the provider asks to wait until {until}")]
    Limited {
        /// What was being done.
        action: String,
        /// When to try again.
        until: Millis,
    },
    /// The credential is not accepted: it ended, was revoked, or never was one.
    #[error(
        "{action}: the provider does not accept the credential ({reason}); give the project another with `caretaker project credential ID --token-env VAR`"
    )]
    Unauthorised {
        /// What was being done.
        action: String,
        /// The provider's words.
        reason: String,
    },
    /// The credential is accepted, but lacks a permission.
    #[error(
        "{action}: the provider does not let the credential do this ({reason}); give it the permission that is missing, or the project one that has it with `caretaker project credential ID --token-env VAR`"
    )]
    Forbidden {
        /// What was being done.
        action: String,
        /// The provider's words.
        reason: String,
    },
    /// The thing does not exist, or may not be seen with this credential.
    #[error("{action}: {address} does not exist or this credential may not see it")]
    Absent {
        /// What was being done.
        action: String,
        /// What was asked for.
        address: String,
    },
    /// There is no token for the call: the App or its installation is not as it has to be. It was not sent.
    #[error("{reason}; {mend}")]
    NoToken {
        /// What was being done, and what is in the way.
        reason: String,
        /// What a person does about it.
        mend: &'static str,
    },
    /// The provider answered, and the answer is a refusal or makes no sense.
    #[error("{action}: {reason}")]
    Refused {
        /// What was being done.
        action: String,
        /// The provider's words, or what is wrong with the answer.
        reason: String,
    },
}

impl ConnectorError {
    /// Whether the same call may succeed later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Limited { .. })
    }
}

/// A repository as the provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryView {
    /// The provider's own number, as text.
    pub id: String,
    /// `owner/name` today.
    pub full_name: String,
    /// The branch that is checked out by default.
    pub default_branch: String,
    /// No longer writable.
    pub archived: bool,
    /// Switched off by the provider.
    pub disabled: bool,
}

/// What git is to do at the provider; a credential may differ for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitUse {
    /// Fetch.
    Fetch,
    /// Push a branch of ours.
    Push,
}

/// Where git fetches from and pushes to. The credential never enters an argument, a configuration or an address.
#[derive(Debug, Clone)]
pub struct GitRemote {
    /// Address without credentials.
    pub url: String,
    /// Password for user `x-access-token`; none for a local path.
    pub token: Option<SecretString>,
}

/// One run of a workflow, under way or completed, as observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// Provider's number of the run.
    pub id: u64,
    /// Attempt, from 1.
    pub attempt: u64,
    /// Workflow number.
    pub workflow_id: u64,
    /// Workflow name, when it has one.
    pub workflow: Option<String>,
    /// What triggered it, e.g. `push`.
    pub event: String,
    /// Branch, when there is one.
    pub branch: Option<String>,
    /// Commit it ran at.
    pub head_commit: Oid,
    /// Whether the head is in this repository, not a fork.
    pub own_repository: bool,
    /// `completed`, or anything else while it runs.
    pub status: String,
    /// The provider's word; unknown words are kept.
    pub conclusion: Option<String>,
    /// When the run was made, whatever attempt it is at.
    pub made_at: Option<Millis>,
    /// When this attempt began.
    pub started_at: Option<Millis>,
    /// When it last changed: for a completed run, when it completed.
    pub updated_at: Option<Millis>,
    /// Page for people.
    pub url: Option<String>,
}

/// One page of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunsPage {
    /// Newest first; empty is the end.
    pub runs: Arc<[RunView]>,
    /// Runs on this page that cannot be judged, each in words, with its number where it has one; at most ten.
    pub left_out: Arc<[String]>,
}

/// A workflow of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    /// Provider's number.
    pub id: u64,
    /// Its name, when it has one.
    pub name: Option<String>,
    /// Its file in the repository.
    pub path: String,
    /// `active`, or the provider's word for why it is not; unknown words are kept.
    pub state: String,
}

/// The workflows of the repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkflowList {
    /// Those that can be judged.
    pub workflows: Vec<WorkflowView>,
    /// Those that cannot, each in words; at most ten.
    pub left_out: Vec<String>,
}

/// How a watched repository can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// It answers.
    #[default]
    Fine,
    /// The credential is not accepted: revoked, expired or mistyped.
    CredentialRefused,
    /// The credential lacks a permission.
    PermissionMissing,
    /// It has another name now.
    Renamed,
    /// It has another owner now.
    Transferred,
    /// It is read-only.
    Archived,
    /// The provider switched it off.
    Disabled,
    /// It is gone, or hidden from this credential.
    Absent,
    /// A limit of the provider; looked at again when it ends.
    Limited,
    /// The provider does not answer.
    Unreachable,
    /// The provider answers nonsense, or something of our own fails.
    Failing,
}

impl Condition {
    /// Whether it may end without anyone doing anything.
    pub const fn passes_by_itself(self) -> bool {
        matches!(self, Self::Limited | Self::Unreachable | Self::Failing)
    }

    /// The word used in tables, pages and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::CredentialRefused => "credential-refused",
            Self::PermissionMissing => "permission-missing",
            Self::Renamed => "renamed",
            Self::Transferred => "transferred",
            Self::Archived => "archived",
            Self::Disabled => "disabled",
            Self::Absent => "absent",
            Self::Limited => "limited",
            Self::Unreachable => "unreachable",
            Self::Failing => "failing",
        }
    }
}

/// What calls to the provider have cost so far, and what is left. Counts are since this process began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Requests sent for this repository.
    pub requests: u64,
    /// Those of them that looked whether anything happened, and what; the others belong to a proposal or a merge.
    pub watching: u64,
    /// Those of them that were answered with "not modified", which cost nothing.
    pub unchanged: u64,
    /// Those of them that repeated one that came to nothing.
    pub repeated: u64,
    /// Requests that the credential may send in the provider's window (an hour), when the provider says.
    pub limit: Option<u64>,
    /// How many of them are left.
    pub remaining: Option<u64>,
    /// When the window ends.
    pub resets_at: Option<Millis>,
    /// Nothing is sent with this credential before then.
    pub paused_until: Option<Millis>,
    /// Why, in words.
    pub paused_for: Option<String>,
    /// Whose limits these are: a name for the credential, which is none and does not tell it.
    #[serde(skip)]
    pub credential: Option<String>,
}

/// What the provider says of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    /// The kind of credential, in words.
    pub kind: String,
    /// What it may do (a scope, or `permission:level`), when the provider says.
    pub granted: Option<Vec<String>>,
    /// What it lacks for what caretaker does.
    pub missing: Vec<String>,
    /// What it may do and need not.
    pub unneeded: Vec<String>,
    /// What cannot be told of a credential of this kind, in words.
    pub untold: Vec<String>,
    /// When it ends.
    pub expires_at: Option<Millis>,
    /// Where what it may do is changed, when that needs no other credential: the page of an App's installation, or words for it.
    pub changed_at: Option<String>,
}

/// One job of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobView {
    /// Provider's number of this attempt of the job.
    pub id: u64,
    /// Name; matrix jobs have distinct names.
    pub name: String,
    /// The provider's word; unknown words are kept.
    pub conclusion: Option<String>,
    /// Number of steps that ran; zero means that it never started.
    pub steps: u64,
}

/// What the provider says of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobLog {
    /// The text, capped: head, tail and the surroundings of errors are kept; a line of its own says where bytes are not.
    Text {
        /// The bytes kept.
        bytes: Vec<u8>,
        /// How many were left out.
        omitted: u64,
        /// Why the end of the log is missing, when it is.
        cut: Option<String>,
    },
    /// There is none: never made, expired or removed.
    Missing {
        /// The provider's words.
        reason: String,
    },
}

/// A pull request, as far as finding and following one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullView {
    /// Number.
    pub number: u64,
    /// Page for people.
    pub url: String,
    /// `open` or `closed`.
    pub open: bool,
    /// Whether it was merged, by whomever.
    pub merged: bool,
    /// The head commit now.
    pub head_commit: Oid,
}

/// What a pull request is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    /// Branch that carries the change.
    pub head_ref: String,
    /// Branch it should land on.
    pub base_ref: String,
    /// Title.
    pub title: String,
    /// Body, Markdown.
    pub body: String,
}

/// Whether the provider refuses something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// It does.
    Refused,
    /// It does not.
    Possible,
    /// It does not tell this credential.
    Untold,
}

impl Guarded {
    /// What is known to be refused, or not to be.
    pub const fn of(refused: bool) -> Self {
        if refused {
            Self::Refused
        } else {
            Self::Possible
        }
    }

    /// Of two features that may refuse: one that does is enough, and what is not known is not known to be possible.
    const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Refused, _) | (_, Self::Refused) => Self::Refused,
            (Self::Untold, _) | (_, Self::Untold) => Self::Untold,
            (Self::Possible, Self::Possible) => Self::Possible,
        }
    }
}

/// What the provider refuses to those who push to a branch. Who may pass it by is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchProtection {
    /// Moving it to a commit that does not follow.
    pub force_pushes: Guarded,
    /// Removing it.
    pub deletion: Guarded,
}

impl BranchProtection {
    /// Nothing is refused.
    pub const NONE: Self = Self {
        force_pushes: Guarded::Possible,
        deletion: Guarded::Possible,
    };
    /// Nothing is told.
    pub const UNTOLD: Self = Self {
        force_pushes: Guarded::Untold,
        deletion: Guarded::Untold,
    };

    /// Whether neither can be done.
    pub fn is_whole(self) -> bool {
        [self.force_pushes, self.deletion] == [Guarded::Refused; 2]
    }

    /// What two features refuse together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            force_pushes: self.force_pushes.or(other.force_pushes),
            deletion: self.deletion.or(other.deletion),
        }
    }
}

/// One repository at its provider, with the credential that acts there.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Host name, as bound in approvals.
    fn host(&self) -> &str;
    /// Where git reaches the repository, with a credential that lasts for one such use.
    async fn git_remote(&self, purpose: GitUse) -> Result<GitRemote, ConnectorError>;
    /// The same with a credential in another form, after git was told that there is no such repository: some servers say so to
    /// a form that they do not know. `None` when there is no other form. To be asked once for each `git_remote`.
    async fn git_remote_instead(
        &self,
        _refused: &GitRemote,
        _purpose: GitUse,
    ) -> Result<Option<GitRemote>, ConnectorError> {
        Ok(None)
    }
    /// What calls have cost so far.
    fn usage(&self) -> Usage;
    /// What the provider says of the credential.
    async fn access(&self) -> Result<Access, ConnectorError>;
    /// The repository now, by its registered number where there is one, whatever it is called today.
    async fn repository(&self) -> Result<RepositoryView, ConnectorError>;
    /// Completed and running runs, newest first, one page (from 1) at a time; an empty page is the end.
    async fn runs(&self, page: u32) -> Result<RunsPage, ConnectorError>;
    /// One run, as it is now.
    async fn run(&self, run: u64) -> Result<RunView, ConnectorError>;
    /// Every workflow.
    async fn workflows(&self) -> Result<WorkflowList, ConnectorError>;
    /// A file on a branch, at most `cap` bytes of it; none when it is not there.
    async fn file(
        &self,
        branch: &str,
        path: &str,
        cap: usize,
    ) -> Result<Option<Vec<u8>>, ConnectorError>;
    /// Runs the failed jobs of a run again at the same commit. Not repeated by the connector: look at the run's attempt first.
    async fn rerun_failed(&self, run: u64) -> Result<(), ConnectorError>;
    /// The jobs of one attempt of a run.
    async fn jobs(&self, run: u64, attempt: u64) -> Result<Vec<JobView>, ConnectorError>;
    /// A job's log, at most `cap` bytes of it.
    async fn job_log(&self, job: u64, cap: usize) -> Result<JobLog, ConnectorError>;
    /// The commit a branch points at, if it exists.
    async fn branch(&self, name: &str) -> Result<Option<Oid>, ConnectorError>;
    /// What the provider refuses to those who push to a branch; `None` when there is no such branch.
    async fn protection(&self, branch: &str) -> Result<Option<BranchProtection>, ConnectorError>;
    /// The newest pull request from a branch of this repository, open or closed.
    async fn find_pull(&self, head_ref: &str) -> Result<Option<PullView>, ConnectorError>;
    /// Opens a pull request. Not repeated by the connector: look with [`Self::find_pull`] first.
    async fn open_pull(&self, pull: &NewPull) -> Result<PullView, ConnectorError>;
    /// A pull request now.
    async fn pull(&self, number: u64) -> Result<PullView, ConnectorError>;
    /// Everything that the comparison before a merge needs, read live.
    async fn live(&self, binding: &Binding) -> Result<LiveView, ConnectorError>;
    /// Asks once for the merge; whatever is ambiguous is said to be ambiguous.
    async fn merge(&self, order: &MergeOrder) -> Result<MergeAnswer, ConnectorError>;
    /// Reads what became of a merge that was asked for: the landed commit, its parents and entries, or that nothing landed.
    async fn landed(
        &self,
        binding: &Binding,
        execution: &crate::id::ExecutionId,
    ) -> Result<LandedView, ConnectorError>;
    /// Closes a pull request with one comment; doing it twice changes nothing.
    async fn close_pull(&self, number: u64, comment: &str) -> Result<(), ConnectorError>;
    /// Deletes a branch of ours; one that is gone already is fine.
    async fn delete_branch(&self, name: &str) -> Result<(), ConnectorError>;
}
