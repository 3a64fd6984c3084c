//! The connector for repositories hosted on GitHub or on a server that speaks its REST interface.
//!
//! Own calls and own tolerant readings of the answers (why: `docs/decisions/002-own-transport.md`). A read that came to
//! nothing is repeated within its deadline, and what is only watched may be read again for nothing while it is unchanged.
//! Nothing is guessed, and a change is never repeated: what to do about a failure is the worker's business.
//!
//! A call passes down these modules: what is wanted (`runs`, `pulls`, `live`, …) → `api` (one repository: paths, pages, the
//! one redirect) → `call` (token, budget, repetition, deadline) → `transport` (one request, one answer). `client` is what all
//! repositories share.

mod access;
mod answer;
mod api;
pub mod app;
pub mod budget;
mod call;
mod checks;
mod client;
mod commits;
mod contents;
pub mod credential;
mod etags;
mod job_log;
mod jobs;
mod landed;
mod landing_place;
mod live;
mod log;
mod merge;
mod options;
mod path;
mod protection;
mod pulls;
mod refs;
mod runs;
mod transport;
mod trees;
mod wire;

pub use access::reach;
pub use client::GithubClient;
pub use options::{GithubOptions, GithubSetupError, check_token, is_name};

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::answer::{bounded, decoded_leniently, required};
use self::api::Api;
use self::credential::{IssuedToken, Use};
use super::{
    Access, BranchProtection, Connector, ConnectorError, GitRemote, GitUse, JobLog, JobView,
    NewPull, PullView, RepositoryView, RunView, RunsPage, Usage, WorkflowList,
};
use crate::approve::Binding;
use crate::change::Oid;
use crate::clock::Clock;
use crate::execute::{MergeAnswer, MergeOrder};
use crate::id::ExecutionId;
use crate::reconcile::{LandedView, LiveView};

/// How long a token must last that git is given: a fetch of a large repository takes its time.
const GIT_TOKEN_LASTS: Duration = Duration::from_mins(15);

/// Longest `owner/name` that is kept, in bytes; the provider allows 140.
const FULL_NAME_LIMIT: usize = 300;

/// What git's token is for.
const fn git_task(purpose: GitUse) -> Use {
    match purpose {
        GitUse::Fetch => Use::Read,
        GitUse::Push => Use::Propose,
    }
}

/// One repository on GitHub with the credential that acts there.
pub struct GithubConnector {
    /// For watching.
    api: Api,
    /// For proposing.
    proposing: Api,
    /// For merging.
    merging: Api,
}

impl GithubConnector {
    /// Checks the options and makes the connector; nothing is sent yet.
    ///
    /// # Errors
    /// An address, name, number or deadline that cannot be used, or no root certificates.
    pub fn new(client: &GithubClient, options: GithubOptions) -> Result<Self, GithubSetupError> {
        let api = Api::new(client, options)?;
        Ok(Self {
            proposing: api.on(Use::Propose),
            merging: api.on(Use::Execute),
            api,
        })
    }

    /// The same with a client of its own: for a process that talks to one repository.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn alone(options: GithubOptions, clock: Arc<dyn Clock>) -> Result<Self, GithubSetupError> {
        Self::new(&GithubClient::of_system(clock), options)
    }
}

#[async_trait]
impl Connector for GithubConnector {
    fn host(&self) -> &str {
        &self.api.setting.host
    }

    async fn git_remote(&self, purpose: GitUse) -> Result<GitRemote, ConnectorError> {
        let setting = &self.api.setting;
        let task = git_task(purpose);
        let token = if setting.git_over_http {
            let token = self.api.caller.token(task, GIT_TOKEN_LASTS).await?;
            Some(token.secret)
        } else {
            None
        };
        Ok(GitRemote {
            url: format!("{}/{}.git", setting.git_text, self.api.full_name()),
            token,
        })
    }

    async fn git_remote_instead(
        &self,
        refused: &GitRemote,
        purpose: GitUse,
    ) -> Result<Option<GitRemote>, ConnectorError> {
        let Some(token) = refused.token.clone() else {
            return Ok(None);
        };
        let (token, task) = (IssuedToken::new(token, None), git_task(purpose));
        let credential = self.api.caller.credential();
        let other = credential
            .compatible_token(&token, task, GIT_TOKEN_LASTS)
            .await?;
        Ok(other.map(|token| GitRemote {
            url: refused.url.clone(),
            token: Some(token.secret),
        }))
    }

    fn usage(&self) -> Usage {
        self.api.caller.usage()
    }

    async fn access(&self) -> Result<Access, ConnectorError> {
        let token = self.api.caller.token(Use::Read, Duration::ZERO).await?;
        access::access(&self.api, access::CredentialKind::of(&token.secret)).await
    }

    async fn repository(&self) -> Result<RepositoryView, ConnectorError> {
        let action = format!("reading repository {}", self.api.full_name());
        let path = self.api.registered_path();
        let understand = |answer: &transport::Answer| {
            // That it is the registered one is compared where it is asked for.
            let found = described(&action, decoded_leniently(&action, &answer.body)?)?;
            Ok((found, std::mem::size_of::<RepositoryView>()))
        };
        match self.api.watched(&action, &path, understand).await? {
            Ok(view) => Ok(RepositoryView::clone(&view)),
            Err(answer) => Err(self.api.refused_at(&action, &path, &answer)),
        }
    }

    async fn runs(&self, page: u32) -> Result<RunsPage, ConnectorError> {
        runs::runs(&self.api, page).await
    }

    async fn run(&self, run: u64) -> Result<RunView, ConnectorError> {
        runs::run(&self.api, run).await
    }

    async fn workflows(&self) -> Result<WorkflowList, ConnectorError> {
        contents::workflows(&self.api).await
    }

    async fn file(
        &self,
        branch: &str,
        path: &str,
        cap: usize,
    ) -> Result<Option<Vec<u8>>, ConnectorError> {
        contents::file(&self.api, branch, path, cap).await
    }

    async fn rerun_failed(&self, run: u64) -> Result<(), ConnectorError> {
        runs::rerun_failed(&self.proposing, run).await
    }

    async fn jobs(&self, run: u64, attempt: u64) -> Result<Vec<JobView>, ConnectorError> {
        jobs::jobs(&self.api, run, attempt).await
    }

    async fn job_log(&self, job: u64, cap: usize) -> Result<JobLog, ConnectorError> {
        job_log::job_log(&self.api, job, cap).await
    }

    async fn branch(&self, name: &str) -> Result<Option<Oid>, ConnectorError> {
        refs::watched_branch(&self.api, name).await
    }

    async fn protection(&self, branch: &str) -> Result<Option<BranchProtection>, ConnectorError> {
        protection::protection(&self.api, branch).await
    }

    async fn find_pull(&self, head_ref: &str) -> Result<Option<PullView>, ConnectorError> {
        pulls::find(&self.proposing, head_ref).await
    }

    async fn open_pull(&self, pull: &NewPull) -> Result<PullView, ConnectorError> {
        pulls::open(&self.proposing, pull).await
    }

    async fn pull(&self, number: u64) -> Result<PullView, ConnectorError> {
        pulls::pull(&self.proposing, number).await
    }

    async fn live(&self, binding: &Binding) -> Result<LiveView, ConnectorError> {
        live::live(&self.merging, binding).await
    }

    async fn merge(&self, order: &MergeOrder) -> Result<MergeAnswer, ConnectorError> {
        Ok(merge::merge(&self.merging, order).await)
    }

    async fn landed(
        &self,
        binding: &Binding,
        execution: &ExecutionId,
    ) -> Result<LandedView, ConnectorError> {
        landed::landed(&self.merging, binding, execution).await
    }

    async fn close_pull(&self, number: u64, comment: &str) -> Result<(), ConnectorError> {
        pulls::close(&self.proposing, number, comment).await
    }

    async fn delete_branch(&self, name: &str) -> Result<(), ConnectorError> {
        refs::delete(&self.proposing, name).await
    }
}

fn described(action: &str, repository: wire::Repository) -> Result<RepositoryView, ConnectorError> {
    Ok(RepositoryView {
        id: required(action, "id", repository.id)?.to_string(),
        full_name: bounded(
            required(action, "full_name", repository.full_name)?,
            FULL_NAME_LIMIT,
        ),
        default_branch: required(action, "default_branch", repository.default_branch)?,
        archived: repository.archived.unwrap_or(false),
        disabled: repository.disabled.unwrap_or(false),
    })
}
