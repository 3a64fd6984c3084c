//! The port to a hosting provider. The kernel and the worker know only this; GitHub is the first implementation.

pub mod github;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::approve::Binding;
use crate::change::Oid;
use crate::clock::Millis;
use crate::execute::{MergeAnswer, MergeOrder};
use crate::reconcile::{LandedView, LiveView};

/// Why a call to the provider gave no answer. Retries and waits are the worker's business, never the connector's.
#[derive(Debug, thiserror::Error)]
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
    /// The credential is not accepted or lacks a permission.
    #[error(
        "{action}: the provider refused the credential ({reason}); register the project again with a token that may do this"
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
}

/// Where git fetches from and pushes to. The credential never enters an argument, a configuration or an address.
#[derive(Debug, Clone)]
pub struct GitRemote {
    /// Address without credentials.
    pub url: String,
    /// Password for user `x-access-token`; none for a local path.
    pub token: Option<SecretString>,
}

/// One completed run of a workflow, or one of its jobs, as observed.
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
    /// Page for people.
    pub url: Option<String>,
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
    /// The text, capped: head and tail are kept, `omitted` bytes between them are not.
    Text {
        /// The bytes kept.
        bytes: Vec<u8>,
        /// How many were left out.
        omitted: u64,
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

/// One repository at its provider, with the credential that acts there.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Host name, as bound in approvals.
    fn host(&self) -> &str;
    /// Where git reaches the repository.
    fn git_remote(&self) -> GitRemote;
    /// The repository now.
    async fn repository(&self) -> Result<RepositoryView, ConnectorError>;
    /// Completed and running runs, newest first, one page (from 1) at a time; an empty page is the end.
    async fn runs(&self, page: u32) -> Result<Vec<RunView>, ConnectorError>;
    /// The jobs of one attempt of a run.
    async fn jobs(&self, run: u64, attempt: u64) -> Result<Vec<JobView>, ConnectorError>;
    /// A job's log, at most `cap` bytes of it.
    async fn job_log(&self, job: u64, cap: usize) -> Result<JobLog, ConnectorError>;
    /// The commit a branch points at, if it exists.
    async fn branch(&self, name: &str) -> Result<Option<Oid>, ConnectorError>;
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
