//! Check runs and commit statuses.

use serde_json::{Value, json};

use super::super::git::ObjectId;
use super::super::state::{CheckRun, RepositoryState, Status, Suite};
use super::super::time::{START, rfc3339};
use super::{api_root, node_id, repository, user, web_root};

fn app(base: &str, suite: &Suite) -> Value {
    json!({
        "id": suite.app_id,
        "slug": suite.app_slug,
        "node_id": node_id("A", suite.app_id),
        "owner": user(base, &suite.app_slug, suite.app_id),
        "name": suite.app_slug,
        "description": null,
        "external_url": format!("{base}/apps/{}", suite.app_slug),
        "html_url": format!("{base}/apps/{}", suite.app_slug),
        "created_at": rfc3339(START),
        "updated_at": rfc3339(START),
        "permissions": {"checks": "write", "metadata": "read"},
        "events": [],
    })
}

/// A check run.
pub(crate) fn check_run(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    check: &CheckRun,
) -> Value {
    let url = format!("{}/check-runs/{}", api_root(base, state), check.id);
    let page = format!("{}/runs/{}", web_root(base, state), check.id);
    let here = json!({"id": repository_id, "url": api_root(base, state), "name": state.name});
    let pulls = state
        .pulls
        .iter()
        .filter(|pull| pull.is_open() && pull.head_sha == check.head_sha)
        .map(|pull| {
            json!({
                "id": pull.id,
                "number": pull.number,
                "url": format!("{}/pulls/{}", api_root(base, state), pull.number),
                "head": {"ref": pull.head_ref, "sha": pull.head_sha.as_str(), "repo": here},
                "base": {"ref": pull.base_ref, "sha": pull.base_sha.as_str(), "repo": here},
            })
        });
    let annotations = format!("{url}/annotations");
    json!({
        "id": check.id,
        "node_id": node_id("CR", check.id),
        "head_sha": check.head_sha.as_str(),
        "external_id": "",
        "url": url,
        "html_url": page,
        "details_url": page,
        "name": check.name,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": rfc3339(check.started_at),
        "completed_at": check.completed_at.map(rfc3339),
        "output": {"title": null, "summary": null, "text": null, "annotations_count": 0, "annotations_url": annotations},
        "check_suite": {"id": check.suite.id},
        "app": app(base, &check.suite),
        "pull_requests": pulls.collect::<Value>(),
    })
}

fn bare_status(base: &str, state: &RepositoryState, status: &Status) -> Value {
    json!({
        "id": status.id,
        "node_id": node_id("SC", status.id),
        "url": format!("{}/statuses/{}", api_root(base, state), status.sha),
        "avatar_url": format!("{base}/avatars/{}", status.creator.id),
        "state": status.state,
        "context": status.context,
        "description": status.description,
        "target_url": status.target_url,
        "created_at": rfc3339(status.created_at),
        "updated_at": rfc3339(status.created_at),
    })
}

/// One commit status with its creator.
pub(crate) fn status(base: &str, state: &RepositoryState, status: &Status) -> Value {
    let mut value = bare_status(base, state, status);
    value["creator"] = user(base, status.creator.login, status.creator.id);
    value
}

/// All statuses of a commit under one word.
pub(crate) fn combined_status(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    sha: &ObjectId,
    word: &str,
    statuses: &[&Status],
) -> Value {
    let commit = format!("{}/commits/{sha}", api_root(base, state));
    json!({
        "state": word,
        "sha": sha.as_str(),
        "total_count": statuses.len(),
        "statuses": statuses.iter().map(|status| bare_status(base, state, status)).collect::<Value>(),
        "repository": repository(base, repository_id, state),
        "commit_url": commit,
        "url": format!("{commit}/status"),
    })
}
