//! What became of a merge, read from the base branch's own history.

use super::answer::nonsense;
use super::api::Api;
use super::commits::{self, Commit};
use super::trees::Trees;
use super::{pulls, refs};
use crate::approve::{Binding, MergeMethod};
use crate::change::{ChangeSet, Oid};
use crate::connector::ConnectorError;
use crate::id::ExecutionId;
use crate::reconcile::{EXECUTION_TRAILER, LandedCommit, LandedView};

/// How many commits of the base branch are searched.
const WALK_LIMIT: usize = 200;
/// Trailer of the fix branch's one commit, which a rebase carries over.
const PROPOSAL_TRAILER: &str = "Caretaker-Proposal: ";

/// By which signs the landed commit is known.
struct Signs {
    execution: String,
    /// The provider's own word for it, once it says merged; a hint, for what it names is searched and compared all the same.
    hint: Option<Oid>,
    head: Oid,
    /// Proposal trailers of the head commit, when a rebase would keep them.
    proposals: Vec<String>,
    merged: bool,
}

impl Signs {
    fn fit(&self, commit: &Commit) -> bool {
        let has_line = |wanted: &str| commit.message.lines().any(|line| line.trim() == wanted);
        if has_line(&self.execution) || self.hint == Some(commit.id) {
            return true;
        }
        if self.proposals.iter().any(|proposal| has_line(proposal)) {
            return true;
        }
        // A merge by a person carries none of our words, but has our head as its parent, or is our head.
        self.merged && (commit.id == self.head || commit.parents.get(1) == Some(&self.head))
    }
}

/// How a search of the base branch ended.
enum Search {
    Found(Commit),
    /// Not there, as far back as it can be.
    NotThere,
    /// Not found, and not searched to the end.
    GaveUp,
}

/// Reads the pull request, the base tip, and the landed commit when there is one. A lost answer is found by our trailer even
/// while the pull request still says that it is not merged.
pub(super) async fn landed(
    api: &Api,
    binding: &Binding,
    execution: &ExecutionId,
) -> Result<LandedView, ConnectorError> {
    let action = format!(
        "finding what landed of pull request {}",
        binding.pull_request
    );
    let wire = pulls::read(api, binding.pull_request).await?;
    let pull = pulls::state(&wire)?;
    let base_tip = refs::tip(api, &binding.base_ref).await?;
    let hint = wire
        .merge_commit_sha
        .and_then(|text| text.parse().ok())
        .filter(|_| pull.merged);
    let signs = Signs {
        execution: format!("{EXECUTION_TRAILER}: {execution}"),
        hint,
        head: binding.head_commit,
        proposals: proposals(api, binding).await?,
        merged: pull.merged,
    };
    let found = match search(api, base_tip, binding.merge_base, &signs).await? {
        Search::Found(commit) => Some((commit, true)),
        Search::NotThere | Search::GaveUp if pull.merged => {
            Some(hinted(api, &action, base_tip, hint).await?)
        }
        Search::NotThere => None,
        Search::GaveUp => {
            return Err(ConnectorError::Refused {
                action,
                reason: format!(
                    "the newest {WALK_LIMIT} commits of {} neither carry the execution nor reach the merge base; a person has to look",
                    binding.base_ref
                ),
            });
        }
    };
    let landed = match found {
        Some((commit, on_base)) => Some(described(api, commit, on_base).await?),
        None => None,
    };
    Ok(LandedView {
        pull,
        base_tip,
        landed,
    })
}

/// Walks first parents from the tip until a sign, the merge base, the root or the limit.
async fn search(
    api: &Api,
    tip: Oid,
    merge_base: Oid,
    signs: &Signs,
) -> Result<Search, ConnectorError> {
    let mut next = tip;
    for _ in 0..WALK_LIMIT {
        // Nothing that landed later lies behind the commit that the change started from.
        if next == merge_base {
            return Ok(Search::NotThere);
        }
        let commit = commits::read(api, next).await?;
        if signs.fit(&commit) {
            return Ok(Search::Found(commit));
        }
        match commit.parents.first() {
            Some(parent) => next = *parent,
            None => return Ok(Search::NotThere),
        }
    }
    Ok(Search::GaveUp)
}

/// The commit that the provider names for a merge which the walk did not meet. Whether the base contains it is asked, not
/// assumed.
async fn hinted(
    api: &Api,
    action: &str,
    base_tip: Oid,
    hint: Option<Oid>,
) -> Result<(Commit, bool), ConnectorError> {
    let Some(hint) = hint else {
        return Err(nonsense(
            action,
            "the pull request is merged, but nothing on the base branch is its commit; a person has to look",
        ));
    };
    let commit = commits::read(api, hint).await?;
    let on_base = match commits::merge_base(api, base_tip, hint).await {
        Ok(merge_base) => merge_base == hint,
        // No common ancestor: not on the base.
        Err(ConnectorError::Refused { .. }) => false,
        Err(error) => return Err(error),
    };
    Ok((commit, on_base))
}

/// A rebase writes the head commit's own message, not ours, so that its proposal trailer has to do.
async fn proposals(api: &Api, binding: &Binding) -> Result<Vec<String>, ConnectorError> {
    if binding.merge_method != MergeMethod::Rebase {
        return Ok(Vec::new());
    }
    let head = commits::read(api, binding.head_commit).await?;
    Ok(head
        .message
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(PROPOSAL_TRAILER))
        .map(str::to_owned)
        .collect())
}

async fn described(
    api: &Api,
    commit: Commit,
    on_base: bool,
) -> Result<LandedCommit, ConnectorError> {
    let entries = match commit.parents.first() {
        Some(parent) => {
            let parent = commits::read(api, *parent).await?;
            Trees::new(api).changes(parent.tree, commit.tree).await?
        }
        None => ChangeSet::new(commit.tree.format(), Vec::new())
            .map_err(|error| nonsense("reading a commit without parents", &error.to_string()))?,
    };
    Ok(LandedCommit {
        commit: commit.id,
        tree: commit.tree,
        parents: commit.parents,
        entries,
        on_base,
        message: commit.message,
    })
}
