//! Pull requests: what is stored, and what is computed from git when somebody asks.

use std::sync::Arc;

use super::super::error::ForgeError;
use super::super::git::{Comparison, NewCommit, ObjectId, Person};
use super::super::time::START;
use super::{Account, MERGER, Repository, RepositoryState};

/// A pull request. Head and base always lie in the same repository.
#[derive(Clone, Debug)]
pub(crate) struct PullRequest {
    pub(crate) id: u64,
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) user: Account,
    pub(crate) state: PullState,
    pub(crate) draft: bool,
    /// Whether somebody asked GitHub to merge it as soon as it can.
    pub(crate) auto_merge: bool,
    pub(crate) maintainer_can_modify: bool,
    pub(crate) head_ref: String,
    pub(crate) head_sha: ObjectId,
    pub(crate) base_ref: String,
    /// The base's tip when the head last moved: stale as soon as the base moves on, as on GitHub.
    pub(crate) base_sha: ObjectId,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    pub(crate) mergeability: Option<Mergeability>,
}

/// Where a pull request's life stands.
#[derive(Clone, Debug)]
pub(crate) enum PullState {
    Open,
    Closed { at: u64 },
    Merged(Ending),
}

/// How a pull request was merged.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) at: u64,
    pub(crate) by: Account,
    /// The commit that landed.
    pub(crate) commit: ObjectId,
    /// The base's tip just before.
    pub(crate) base_before: ObjectId,
}

/// The result of the last trial merge, good as long as both sides stay where they were.
#[derive(Clone, Debug)]
pub(crate) struct Mergeability {
    pub(crate) base_tip: ObjectId,
    pub(crate) head: ObjectId,
    /// The trial merge commit; `None`: there is a conflict.
    pub(crate) trial: Option<ObjectId>,
}

impl PullRequest {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, PullState::Open)
    }

    /// The trial merge, if it is of this base and the present head.
    pub(crate) fn known_mergeability(&self, base_tip: Option<&ObjectId>) -> Option<&Mergeability> {
        let known = self.mergeability.as_ref().filter(|_| self.is_open())?;
        (Some(&known.base_tip) == base_tip && known.head == self.head_sha).then_some(known)
    }
}

impl Repository {
    /// What the pull request changes: from the merge base with the base's present tip, after a merge with the tip of then.
    pub(crate) fn pull_comparison(
        &self,
        state: &RepositoryState,
        pull: &PullRequest,
    ) -> Result<Arc<Comparison>, ForgeError> {
        let base = match &pull.state {
            PullState::Merged(ending) => &ending.base_before,
            PullState::Open => state.tip(&pull.base_ref).unwrap_or(&pull.base_sha),
            PullState::Closed { .. } => &pull.base_sha,
        };
        self.comparison(base, &pull.head_sha)
    }

    /// Tries the merge; the result is for the next one who asks, as GitHub computes it in the background.
    pub(crate) fn compute_mergeability(
        &self,
        state: &mut RepositoryState,
        number: u64,
    ) -> Result<(), ForgeError> {
        let Some(pull) = state.pull(number).filter(|pull| pull.is_open()) else {
            return Ok(());
        };
        let Some(base_tip) = state.tip(&pull.base_ref).cloned() else {
            return Ok(());
        };
        let head = pull.head_sha.clone();
        let trial = match self.git.merge_tree(&base_tip, &head)? {
            Some(tree) => Some(self.trial_commit(&tree, &base_tip, &head)?),
            None => None,
        };
        if let Some(trial) = &trial {
            self.git
                .force_reference(&format!("refs/pull/{number}/merge"), trial)?;
        }
        if let Some(pull) = state.pull_mut(number) {
            pull.mergeability = Some(Mergeability {
                base_tip,
                head,
                trial,
            });
        }
        Ok(())
    }

    fn trial_commit(
        &self,
        tree: &ObjectId,
        base: &ObjectId,
        head: &ObjectId,
    ) -> Result<ObjectId, ForgeError> {
        let merger = Person {
            name: MERGER.login.to_owned(),
            email: MERGER.email.to_owned(),
        };
        let message = format!("Merge {head} into {base}");
        self.git.commit_tree(&NewCommit {
            tree,
            parents: &[base.clone(), head.clone()],
            author: &merger,
            authored: START,
            committer: &merger,
            committed: START,
            message: &message,
        })
    }
}
