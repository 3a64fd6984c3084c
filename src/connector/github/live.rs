//! Everything that the comparison before a merge needs, read in the order of the merge protocol.

use super::answer::{nonsense, required};
use super::api::Api;
use super::trees::Trees;
use super::{checks, commits, landing_place, pulls, refs, wire};
use crate::approve::Binding;
use crate::change::{ChangeSet, RepoPath};
use crate::connector::ConnectorError;
use crate::reconcile::{LiveView, PullState};

/// Reads steps 1 to 6.
pub(super) async fn live(api: &Api, binding: &Binding) -> Result<LiveView, ConnectorError> {
    let action = format!("comparing pull request {}", binding.pull_request);
    let first = pulls::read(api, binding.pull_request).await?;
    let pull = pulls::state(&first)?;
    let repository = api.repository().await?;
    let repository_id = identity(&action, &repository, &first)?;

    let base_tip = refs::tip(api, &binding.base_ref).await?;
    let merge_base = commits::merge_base(api, base_tip, pull.head_commit).await?;
    let head_tree = commits::read(api, pull.head_commit).await?.tree;

    let mut trees = Trees::new(api);
    let base_tree = commits::read(api, merge_base).await?.tree;
    let entries = trees.changes(base_tree, head_tree).await?;
    let tip_tree = commits::read(api, base_tip).await?.tree;
    let approved = approved_paths(&action, binding)?;
    let place = landing_place::look(&mut trees, tip_tree, &entries, &approved).await?;

    let files = pulls::files(api, binding.pull_request).await?;
    let again = pulls::state(&pulls::read(api, binding.pull_request).await?)?;

    let checks = checks::on_commit(api, pull.head_commit).await?;
    let rules = checks::rules(api, &binding.base_ref).await?;
    let mut allowed_methods = methods(&repository);
    if let Some(ruled) = &rules.methods {
        allowed_methods.retain(|method| ruled.contains(method));
    }
    Ok(LiveView {
        repository_id,
        archived: repository.archived.unwrap_or(false),
        base_tip,
        merge_base,
        head_tree,
        entries,
        base_sides: place.sides,
        path_conflicts: place.conflicts,
        files,
        head_commit_after_files: again.head_commit,
        // Flags of the second look are newer (someone may have retargeted it meanwhile); the head is the one compared.
        pull: PullState {
            head_commit: pull.head_commit,
            ..again
        },
        checks,
        blocking_rules: rules.blocking,
        allowed_methods,
    })
}

/// The repository's number, which the pull request must agree with.
fn identity(
    action: &str,
    repository: &wire::Repository,
    pull: &wire::Pull,
) -> Result<String, ConnectorError> {
    let id = required(action, "the repository's id", repository.id)?;
    let base = pull.base.as_ref().and_then(|base| base.repo.as_ref());
    if base.and_then(|repository| repository.id) != Some(id) {
        return Err(nonsense(
            action,
            "the pull request does not belong to the repository that was asked for",
        ));
    }
    Ok(id.to_string())
}

fn approved_paths(action: &str, binding: &Binding) -> Result<Vec<RepoPath>, ConnectorError> {
    let approved =
        ChangeSet::try_from(&binding.change).map_err(|error| ConnectorError::Refused {
            action: action.to_owned(),
            reason: format!("the approved change is not well-formed: {error}"),
        })?;
    Ok(approved.paths().cloned().collect())
}

/// A method that the provider does not say is allowed is not allowed.
fn methods(repository: &wire::Repository) -> Vec<String> {
    [
        ("merge", repository.allow_merge_commit),
        ("squash", repository.allow_squash_merge),
        ("rebase", repository.allow_rebase_merge),
    ]
    .into_iter()
    .filter(|(_, allowed)| *allowed == Some(true))
    .map(|(method, _)| method.to_owned())
    .collect()
}
