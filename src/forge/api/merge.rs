//! Merging a pull request by one of three methods.

use serde_json::json;

use super::super::error::ForgeError;
use super::super::git::{CommitFacts, NewCommit, ObjectId, Person};
use super::super::state::{
    Account, Ending, MERGER, PullRequest, PullState, ReferenceUpdate, Repository, RepositoryState,
    TOKEN_OWNER,
};
use super::guards::merge_objection;
use super::pulls::number_of;
use super::routes::Scene;
use super::{Answer, Credentials, Refusal, Reply, text};

/// How somebody wants a pull request merged.
pub(crate) struct MergeRequest {
    pub(crate) by: Account,
    /// `merge`, `squash` or `rebase`.
    pub(crate) method: String,
    /// The head it must still have.
    pub(crate) sha: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) message: Option<String>,
}

/// `PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge`
pub(crate) fn merge(scene: Scene<'_>, number: &str) -> Answer {
    let object = scene.call.object()?;
    let request = MergeRequest {
        by: TOKEN_OWNER,
        method: text(&object, "merge_method")?.unwrap_or_else(|| "merge".to_owned()),
        sha: text(&object, "sha")?,
        title: text(&object, "commit_title")?,
        message: text(&object, "commit_message")?,
    };
    let mut state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    workflows_allowed(scene, &state, number)?;
    let landed = land(scene.repository, &mut state, number, &request)?;
    Ok(Reply::ok(
        json!({"sha": landed.as_str(), "merged": true, "message": "Pull Request successfully merged"}),
    ))
}

/// Refuses a token that may not touch workflow files where the pull request does.
fn workflows_allowed(
    scene: Scene<'_>,
    state: &RepositoryState,
    number: u64,
) -> Result<(), Refusal> {
    let Credentials::Token(token) = &scene.call.credentials else {
        return Err(Refusal::not_found());
    };
    let Some(pull) = state.pull(number).filter(|pull| pull.is_open()) else {
        return Ok(());
    };
    if token.may_write_workflows() {
        return Ok(());
    }
    let comparison = scene.repository.pull_comparison(state, pull)?;
    let is_workflow = |path: &&str| path.starts_with(".github/workflows/");
    let touched = comparison
        .files
        .iter()
        .flat_map(|file| [Some(file.path.as_str()), file.previous_path.as_deref()])
        .flatten()
        .find(is_workflow);
    let (who, what) = token.workflow_refusal();
    match touched {
        None => Ok(()),
        Some(path) => Err(Refusal::new(
            403,
            format!("refusing to allow {who} to create or update workflow `{path}` without {what}"),
        )),
    }
}

/// Merges, or says in GitHub's words why not. Only the head is pinned: nothing here looks at what the base was when
/// somebody approved.
pub(crate) fn land(
    repository: &Repository,
    state: &mut RepositoryState,
    number: u64,
    request: &MergeRequest,
) -> Result<ObjectId, Refusal> {
    let pull = state.pull(number).cloned().ok_or_else(Refusal::not_found)?;
    let tip = admissible(state, &pull, request)?;
    // Break it: leave this out, and `forge::guards::a_merge_obeys_protection_and_rules` fails.
    if let Some(objection) = merge_objection(
        repository,
        state,
        &pull.base_ref,
        &pull.head_sha,
        &request.method,
    )? {
        return Err(Refusal::new(405, objection));
    }
    let landed = match request.method.as_str() {
        "merge" => merge_commit(repository, state, &pull, &tip, request)?,
        "squash" => squash_commit(repository, &pull, &tip, request)?,
        _ => rebased_commits(repository, &pull, &tip)?,
    };
    let branch = format!("refs/heads/{}", pull.base_ref);
    if repository.update_reference(state, &branch, &landed)? == ReferenceUpdate::Overtaken {
        return Err(Refusal::new(
            405,
            "Base branch was modified. Review and try the merge again.",
        ));
    }
    if let Some(merged) = state.pull_mut(number) {
        merged.updated_at = (repository.now)();
        merged.state = PullState::Merged(Ending {
            at: merged.updated_at,
            by: request.by,
            commit: landed.clone(),
            base_before: tip,
        });
    }
    repository.tell_pull(state, number, "closed", request.by, json!({}))?;
    if state.delete_branch_on_merge {
        repository
            .git
            .delete_reference(&format!("refs/heads/{}", pull.head_ref))?;
    }
    Ok(landed)
}

/// The base's tip, if the pull request may be merged this way now.
fn admissible(
    state: &RepositoryState,
    pull: &PullRequest,
    request: &MergeRequest,
) -> Result<ObjectId, Refusal> {
    let not_mergeable = || Refusal::new(405, "Pull Request is not mergeable");
    if !pull.is_open() {
        return Err(not_mergeable());
    }
    if request
        .sha
        .as_ref()
        .is_some_and(|sha| pull.head_sha != sha.as_str())
    {
        return Err(Refusal::new(
            409,
            "Head branch was modified. Review and try the merge again.",
        ));
    }
    if pull.draft {
        return Err(Refusal::new(405, "Pull Request is still a draft"));
    }
    let (allowed, disallowed) = match request.method.as_str() {
        "merge" => (
            state.allowed.merge,
            "Merge commits are not allowed on this repository.",
        ),
        "squash" => (
            state.allowed.squash,
            "Squash merges are not allowed on this repository.",
        ),
        "rebase" => (
            state.allowed.rebase,
            "Rebase merges are not allowed on this repository.",
        ),
        _ => {
            return Err(Refusal::invalid_field(
                "PullRequest",
                "merge_method",
                "invalid",
            ));
        }
    };
    if !allowed {
        return Err(Refusal::new(405, disallowed));
    }
    state.tip(&pull.base_ref).cloned().ok_or_else(not_mergeable)
}

fn merged_tree(
    repository: &Repository,
    tip: &ObjectId,
    pull: &PullRequest,
) -> Result<ObjectId, Refusal> {
    let tree = repository.git.merge_tree(tip, &pull.head_sha)?;
    tree.ok_or_else(|| Refusal::new(405, "Pull Request is not mergeable"))
}

fn person(account: Account) -> Person {
    Person {
        name: account.login.to_owned(),
        email: account.email.to_owned(),
    }
}

/// A message out of a title and a body, either of which may be empty.
fn message(title: &str, body: &str) -> String {
    format!("{title}\n\n{body}").trim().to_owned()
}

fn merge_commit(
    repository: &Repository,
    state: &RepositoryState,
    pull: &PullRequest,
    tip: &ObjectId,
    request: &MergeRequest,
) -> Result<ObjectId, Refusal> {
    let tree = merged_tree(repository, tip, pull)?;
    let usual_title = format!(
        "Merge pull request #{} from {}/{}",
        pull.number, state.owner, pull.head_ref
    );
    let title = request.title.as_deref().unwrap_or(&usual_title);
    let body = request.message.as_deref().unwrap_or(&pull.title);
    let now = (repository.now)();
    Ok(repository.git.commit_tree(&NewCommit {
        tree: &tree,
        parents: &[tip.clone(), pull.head_sha.clone()],
        author: &person(request.by),
        authored: now,
        committer: &person(MERGER),
        committed: now,
        message: &message(title, body),
    })?)
}

fn squash_commit(
    repository: &Repository,
    pull: &PullRequest,
    tip: &ObjectId,
    request: &MergeRequest,
) -> Result<ObjectId, Refusal> {
    let tree = merged_tree(repository, tip, pull)?;
    let commits = repository
        .git
        .commits(&repository.comparison(tip, &pull.head_sha)?.ahead)?;
    let (usual_title, usual_body) = squash_words(pull, &commits);
    let title = request.title.as_deref().unwrap_or(&usual_title);
    let body = request.message.as_deref().unwrap_or(&usual_body);
    let now = (repository.now)();
    Ok(repository.git.commit_tree(&NewCommit {
        tree: &tree,
        parents: std::slice::from_ref(tip),
        author: &person(pull.user),
        authored: now,
        committer: &person(MERGER),
        committed: now,
        message: &message(title, body),
    })?)
}

/// GitHub's defaults: the words of a single commit, else the pull request's title and all messages.
fn squash_words(pull: &PullRequest, commits: &[CommitFacts]) -> (String, String) {
    if let [only] = commits {
        return (
            format!("{} (#{})", only.title(), pull.number),
            only.body().to_owned(),
        );
    }
    let messages: Vec<String> = commits
        .iter()
        .map(|commit| format!("* {}", commit.message))
        .collect();
    (
        format!("{} (#{})", pull.title, pull.number),
        messages.join("\n\n"),
    )
}

/// The pull request's commits again on top of the base: same authors and messages, new committer.
fn rebased_commits(
    repository: &Repository,
    pull: &PullRequest,
    tip: &ObjectId,
) -> Result<ObjectId, Refusal> {
    let impossible = || Refusal::new(405, "This branch can't be rebased");
    let commits = repository
        .git
        .commits(&repository.comparison(tip, &pull.head_sha)?.ahead)?;
    let mut on = repository.git.commit(tip)?;
    for commit in &commits {
        let [parent] = commit.parents.as_slice() else {
            return Err(impossible());
        };
        // What has been built so far, as if it had been made on the commit's own parent: that makes the parent the merge
        // base, and the merge brings in this one commit only.
        let aside = replayed(repository, commit, &on.tree, parent)?;
        let tree = repository.git.merge_tree(&aside, &commit.id)?;
        let tree = tree.ok_or_else(impossible)?;
        if tree != on.tree {
            on = repository
                .git
                .commit(&replayed(repository, commit, &tree, &on.id)?)?;
        }
    }
    if on.id == *tip {
        Err(impossible())
    } else {
        Ok(on.id)
    }
}

fn replayed(
    repository: &Repository,
    commit: &CommitFacts,
    tree: &ObjectId,
    parent: &ObjectId,
) -> Result<ObjectId, ForgeError> {
    repository.git.commit_tree(&NewCommit {
        tree,
        parents: std::slice::from_ref(parent),
        author: &Person {
            name: commit.author.name.clone(),
            email: commit.author.email.clone(),
        },
        authored: commit.author.seconds,
        committer: &person(MERGER),
        committed: (repository.now)(),
        message: &commit.message,
    })
}
