//! Pull requests and their comments.

use serde_json::{Map, Value, json};

use super::super::git::{Comparison, ObjectId};
use super::super::state::{CheckRun, Comment, PullRequest, PullState, RepositoryState};
use super::super::time::rfc3339;
use super::{api_root, node_id, repository, user, web_root};

/// A pull request as lists show it.
pub(crate) fn pull_row(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    pull: &PullRequest,
) -> Value {
    Value::Object(row(base, repository_id, state, pull))
}

fn row(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    pull: &PullRequest,
) -> Map<String, Value> {
    let (closed_at, merged_at, landed) = match &pull.state {
        PullState::Open => (None, None, None),
        PullState::Closed { at } => (Some(*at), None, None),
        PullState::Merged(ending) => (Some(ending.at), Some(ending.at), Some(&ending.commit)),
    };
    let trial = pull
        .known_mergeability(state.tip(&pull.base_ref))
        .and_then(|known| known.trial.as_ref());
    let author = user(base, pull.user.login, pull.user.id);
    let auto_merge = json!({"enabled_by": author, "merge_method": "merge", "commit_title": "", "commit_message": ""});
    let own = json!({
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        "number": pull.number,
        "state": if pull.is_open() { "open" } else { "closed" },
        "locked": false,
        "active_lock_reason": null,
        "title": pull.title,
        "body": pull.body,
        "user": author,
        "labels": [],
        "milestone": null,
        "assignee": null,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "draft": pull.draft,
        "created_at": rfc3339(pull.created_at),
        "updated_at": rfc3339(pull.updated_at),
        "closed_at": closed_at.map(rfc3339),
        "merged_at": merged_at.map(rfc3339),
        "merge_commit_sha": landed.or(trial).map(ObjectId::as_str),
        "head": side(base, repository_id, state, &pull.head_ref, &pull.head_sha),
        "base": side(base, repository_id, state, &pull.base_ref, &pull.base_sha),
        "author_association": "CONTRIBUTOR",
        "auto_merge": if pull.auto_merge { auto_merge } else { Value::Null },
    });
    let mut all = addresses(base, state, pull);
    if let Value::Object(own) = own {
        all.extend(own);
    }
    all
}

fn side(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    branch: &str,
    sha: &ObjectId,
) -> Value {
    json!({
        "label": format!("{}:{branch}", state.owner),
        "ref": branch,
        "sha": sha.as_str(),
        "user": user(base, &state.owner, state.owner_id),
        "repo": repository(base, repository_id, state),
    })
}

/// The addresses, once as members and once as links.
fn addresses(base: &str, state: &RepositoryState, pull: &PullRequest) -> Map<String, Value> {
    let api = api_root(base, state);
    let page = format!("{}/pull/{}", web_root(base, state), pull.number);
    let itself = format!("{api}/pulls/{}", pull.number);
    let issue = format!("{api}/issues/{}", pull.number);
    let named = [
        ("self", "url", itself.clone()),
        ("html", "html_url", page.clone()),
        ("issue", "issue_url", issue.clone()),
        ("comments", "comments_url", format!("{issue}/comments")),
        ("commits", "commits_url", format!("{itself}/commits")),
        (
            "review_comments",
            "review_comments_url",
            format!("{itself}/comments"),
        ),
        (
            "review_comment",
            "review_comment_url",
            format!("{api}/pulls/comments{{/number}}"),
        ),
        (
            "statuses",
            "statuses_url",
            format!("{api}/statuses/{}", pull.head_sha),
        ),
    ];
    let links: Map<String, Value> = named
        .iter()
        .map(|(link, _, url)| ((*link).to_owned(), json!({"href": url})))
        .collect();
    let mut all: Map<String, Value> = named
        .iter()
        .map(|(_, member, url)| ((*member).to_owned(), json!(url)))
        .collect();
    all.insert("_links".to_owned(), Value::Object(links));
    all.insert("diff_url".to_owned(), json!(format!("{page}.diff")));
    all.insert("patch_url".to_owned(), json!(format!("{page}.patch")));
    all
}

/// A pull request alone: with what git computes.
pub(crate) fn pull(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    pull: &PullRequest,
    comparison: &Comparison,
) -> Value {
    let mut all = row(base, repository_id, state, pull);
    let known = pull.known_mergeability(state.tip(&pull.base_ref));
    let mergeable = known.map(|known| known.trial.is_some());
    let merged_by = match &pull.state {
        PullState::Merged(ending) => user(base, ending.by.login, ending.by.id),
        _ => Value::Null,
    };
    let more = json!({
        "merged": matches!(pull.state, PullState::Merged(_)),
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": mergeable_state(state, pull, mergeable),
        "merged_by": merged_by,
        "comments": state.comments.iter().filter(|comment| comment.number == pull.number).count(),
        "review_comments": 0,
        "maintainer_can_modify": pull.maintainer_can_modify,
        "commits": comparison.ahead.len(),
        "additions": comparison.additions(),
        "deletions": comparison.deletions(),
        "changed_files": comparison.files.len(),
    });
    if let Value::Object(more) = more {
        all.extend(more);
    }
    Value::Object(all)
}

fn mergeable_state(
    state: &RepositoryState,
    pull: &PullRequest,
    mergeable: Option<bool>,
) -> &'static str {
    let is_red = |check: &CheckRun| {
        check.head_sha == pull.head_sha && check.conclusion.as_deref() != Some("success")
    };
    match mergeable {
        None => "unknown",
        Some(false) => "dirty",
        Some(true) if pull.draft => "draft",
        Some(true) if state.check_runs.iter().any(is_red) => "unstable",
        Some(true) => "clean",
    }
}

/// A comment of a pull request's conversation.
pub(crate) fn comment(base: &str, state: &RepositoryState, comment: &Comment) -> Value {
    let api = api_root(base, state);
    json!({
        "id": comment.id,
        "node_id": node_id("IC", comment.id),
        "url": format!("{api}/issues/comments/{}", comment.id),
        "html_url": format!("{}/pull/{}#issuecomment-{}", web_root(base, state), comment.number, comment.id),
        "issue_url": format!("{api}/issues/{}", comment.number),
        "body": comment.body,
        "user": user(base, comment.user.login, comment.user.id),
        "created_at": rfc3339(comment.created_at),
        "updated_at": rfc3339(comment.created_at),
        "author_association": "CONTRIBUTOR",
    })
}
