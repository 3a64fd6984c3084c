//! What a person does to pull requests.

use super::super::api::{MergeRequest, land, retarget, set_open};
use super::super::error::ForgeError;
use super::super::git::ObjectId;
use super::super::state::{PERSON, PullRequest, PullState, RepositoryState};
use super::{RepositoryHandle, refused};

/// What is known of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullSummary {
    /// The number in the repository.
    pub number: u64,
    /// The title.
    pub title: String,
    /// Whether it can still be merged.
    pub open: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// The branch to be merged.
    pub head_ref: String,
    /// Its tip; after the end the last one.
    pub head_sha: ObjectId,
    /// The branch to be merged into.
    pub base_ref: String,
    /// The commit that landed; `None` when it was not merged.
    pub merge_commit: Option<ObjectId>,
    /// The login of whoever merged it.
    pub merged_by: Option<String>,
    /// The bodies of its comments, oldest first.
    pub comments: Vec<String>,
}

fn summary(state: &RepositoryState, pull: &PullRequest) -> PullSummary {
    let ending = match &pull.state {
        PullState::Merged(ending) => Some(ending),
        _ => None,
    };
    PullSummary {
        number: pull.number,
        title: pull.title.clone(),
        open: pull.is_open(),
        draft: pull.draft,
        head_ref: pull.head_ref.clone(),
        head_sha: pull.head_sha.clone(),
        base_ref: pull.base_ref.clone(),
        merge_commit: ending.map(|ending| ending.commit.clone()),
        merged_by: ending.map(|ending| ending.by.login.to_owned()),
        comments: state
            .comments
            .iter()
            .filter(|comment| comment.number == pull.number)
            .map(|comment| comment.body.clone())
            .collect(),
    }
}

impl RepositoryHandle {
    /// Every pull request, oldest first.
    pub fn pulls(&self) -> Result<Vec<PullSummary>, ForgeError> {
        let state = self.repository.current()?;
        Ok(state
            .pulls
            .iter()
            .map(|pull| summary(&state, pull))
            .collect())
    }

    /// One pull request.
    pub fn pull(&self, number: u64) -> Result<PullSummary, ForgeError> {
        self.pulls()?
            .into_iter()
            .find(|pull| pull.number == number)
            .ok_or_else(|| absent(number))
    }

    /// A person merges, with the button and its usual words; the commit that landed.
    pub fn merge_by_person(&self, number: u64, method: &str) -> Result<ObjectId, ForgeError> {
        let request = MergeRequest {
            by: PERSON,
            method: method.to_owned(),
            sha: None,
            title: None,
            message: None,
        };
        let mut state = self.repository.current()?;
        land(&self.repository, &mut state, number, &request)
            .map_err(refused(format!("merging pull request {number}")))
    }

    /// A person closes a pull request.
    pub fn close_pull(&self, number: u64) -> Result<(), ForgeError> {
        let mut state = self.repository.current()?;
        set_open(&self.repository, &mut state, number, "closed")
            .map_err(refused(format!("closing pull request {number}")))
    }

    /// A person points a pull request at another base.
    pub fn retarget_pull(&self, number: u64, base: &str) -> Result<(), ForgeError> {
        let mut state = self.repository.current()?;
        retarget(&self.repository, &mut state, number, base).map_err(refused(format!(
            "retargeting pull request {number} to {base}"
        )))
    }

    /// A person makes a draft of a pull request.
    pub fn convert_to_draft(&self, number: u64) -> Result<(), ForgeError> {
        self.change_pull(number, |pull| pull.draft = true)?;
        self.tell_pull(number, "converted_to_draft")
    }

    /// A person declares a draft ready.
    pub fn mark_ready(&self, number: u64) -> Result<(), ForgeError> {
        self.change_pull(number, |pull| pull.draft = false)?;
        self.tell_pull(number, "ready_for_review")
    }

    /// A person asks for the merge as soon as it is possible; this forge only says so and never does it.
    pub fn enable_auto_merge(&self, number: u64) -> Result<(), ForgeError> {
        self.change_pull(number, |pull| pull.auto_merge = true)
    }

    fn tell_pull(&self, number: u64, action: &'static str) -> Result<(), ForgeError> {
        let state = self.repository.current()?;
        self.repository
            .tell_pull(&state, number, action, PERSON, serde_json::json!({}))
    }

    fn change_pull(
        &self,
        number: u64,
        change: impl FnOnce(&mut PullRequest),
    ) -> Result<(), ForgeError> {
        let mut state = self.repository.current()?;
        let pull = state.pull_mut(number).ok_or_else(|| absent(number))?;
        change(pull);
        Ok(())
    }
}

fn absent(number: u64) -> ForgeError {
    ForgeError::Absent {
        what: format!("pull request {number}"),
    }
}
