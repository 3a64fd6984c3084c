//! The connector for repositories hosted on GitHub or on a server that speaks its REST interface.
//!
//! Own calls and own tolerant readings of the answers; octocrab only carries the credential. Nothing is retried, followed,
//! cached or guessed here: what to do about a failure is the worker's business.

mod access;
mod answer;
mod api;
mod checks;
mod commits;
mod landed;
mod landing_place;
mod live;
mod log;
mod merge;
mod options;
mod path;
mod pulls;
mod refs;
mod runs;
mod transport;
mod trees;
mod wire;

pub use access::reach;
pub use options::{GithubOptions, GithubSetupError};

use async_trait::async_trait;
use secrecy::SecretString;

use self::answer::required;
use self::api::Api;
use super::{
    Access, Connector, ConnectorError, GitRemote, GitUse, JobLog, JobView, NewPull, PullView,
    RepositoryView, RunView, RunsPage, Usage, WorkflowView,
};
use crate::approve::Binding;
use crate::change::Oid;
use crate::execute::{MergeAnswer, MergeOrder};
use crate::id::ExecutionId;
use crate::reconcile::{LandedView, LiveView};

/// One repository on GitHub with the token that acts there.
pub struct GithubConnector {
    api: Api,
    token: SecretString,
}

impl GithubConnector {
    /// Checks the options and makes the connector; nothing is sent yet. To be called inside a tokio runtime, whose end is
    /// the connector's end.
    ///
    /// # Errors
    /// An address, name, token or deadline that cannot be used, no runtime, or no root certificates.
    pub fn new(options: GithubOptions) -> Result<Self, GithubSetupError> {
        let token = options.token.clone();
        Api::new(options).map(|api| Self { api, token })
    }
}

#[async_trait]
impl Connector for GithubConnector {
    fn host(&self) -> &str {
        &self.api.setting.host
    }

    async fn git_remote(&self, _: GitUse) -> Result<GitRemote, ConnectorError> {
        let setting = &self.api.setting;
        Ok(GitRemote {
            url: format!("{}/{}.git", setting.git_text, self.api.full_name()),
            token: setting.git_over_http.then(|| self.token.clone()),
        })
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    async fn access(&self) -> Result<Access, ConnectorError> {
        access::access(&self.api, access::Form::of(&self.token)).await
    }

    async fn repository(&self) -> Result<RepositoryView, ConnectorError> {
        let action = format!("reading repository {}", self.api.full_name());
        let repository = self.api.registered_repository().await?;
        Ok(RepositoryView {
            id: required(&action, "id", repository.id)?.to_string(),
            full_name: required(&action, "full_name", repository.full_name)?,
            default_branch: required(&action, "default_branch", repository.default_branch)?,
            archived: repository.archived.unwrap_or(false),
            disabled: repository.disabled.unwrap_or(false),
        })
    }

    async fn runs(&self, page: u32) -> Result<RunsPage, ConnectorError> {
        runs::runs(&self.api, page).await
    }

    async fn run(&self, run: u64) -> Result<RunView, ConnectorError> {
        runs::run(&self.api, run).await
    }

    async fn workflows(&self) -> Result<Vec<WorkflowView>, ConnectorError> {
        runs::workflows(&self.api).await
    }

    async fn file(
        &self,
        branch: &str,
        path: &str,
        cap: usize,
    ) -> Result<Option<Vec<u8>>, ConnectorError> {
        runs::file(&self.api, branch, path, cap).await
    }

    async fn rerun_failed(&self, run: u64) -> Result<(), ConnectorError> {
        runs::rerun_failed(&self.api, run).await
    }

    async fn jobs(&self, run: u64, attempt: u64) -> Result<Vec<JobView>, ConnectorError> {
        runs::jobs(&self.api, run, attempt).await
    }

    async fn job_log(&self, job: u64, cap: usize) -> Result<JobLog, ConnectorError> {
        runs::job_log(&self.api, job, cap).await
    }

    async fn branch(&self, name: &str) -> Result<Option<Oid>, ConnectorError> {
        refs::branch(&self.api, name).await
    }

    async fn find_pull(&self, head_ref: &str) -> Result<Option<PullView>, ConnectorError> {
        pulls::find(&self.api, head_ref).await
    }

    async fn open_pull(&self, pull: &NewPull) -> Result<PullView, ConnectorError> {
        pulls::open(&self.api, pull).await
    }

    async fn pull(&self, number: u64) -> Result<PullView, ConnectorError> {
        pulls::pull(&self.api, number).await
    }

    async fn live(&self, binding: &Binding) -> Result<LiveView, ConnectorError> {
        live::live(&self.api, binding).await
    }

    async fn merge(&self, order: &MergeOrder) -> Result<MergeAnswer, ConnectorError> {
        Ok(merge::merge(&self.api, order).await)
    }

    async fn landed(
        &self,
        binding: &Binding,
        execution: &ExecutionId,
    ) -> Result<LandedView, ConnectorError> {
        landed::landed(&self.api, binding, execution).await
    }

    async fn close_pull(&self, number: u64, comment: &str) -> Result<(), ConnectorError> {
        pulls::close(&self.api, number, comment).await
    }

    async fn delete_branch(&self, name: &str) -> Result<(), ConnectorError> {
        refs::delete(&self.api, name).await
    }
}
