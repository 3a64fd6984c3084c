//! Repositories and branches.

use serde_json::{Map, Value, json};

use super::super::git::CommitFacts;
use super::super::state::RepositoryState;
use super::super::time::rfc3339;
use super::{api_root, commit, node_id, user, web_root};

/// Members that are the repository's API address followed by a path.
const ADDRESSES: [(&str, &str); 36] = [
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    (
        "notifications_url",
        "/notifications{?since,all,participating}",
    ),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
];

/// Members that are always the same here.
fn constants() -> Value {
    json!({
        "private": true, "visibility": "private", "description": null, "fork": false, "homepage": null, "language": null,
        "license": null, "mirror_url": null, "topics": [], "is_template": false, "disabled": false, "size": 1,
        "forks": 0, "forks_count": 0, "stargazers_count": 0, "watchers": 0, "watchers_count": 0, "subscribers_count": 0,
        "network_count": 0, "has_issues": true, "has_projects": false, "has_wiki": false, "has_pages": false,
        "has_downloads": false, "has_discussions": false, "allow_forking": false, "web_commit_signoff_required": false,
        "allow_auto_merge": false, "allow_update_branch": false,
        "permissions": {"admin": false, "maintain": false, "push": true, "triage": true, "pull": true},
    })
}

/// A repository; the same members whether it stands alone or inside another object.
pub(crate) fn repository(base: &str, id: u64, state: &RepositoryState) -> Value {
    let (api, web) = (api_root(base, state), web_root(base, state));
    let mut all = Map::new();
    if let Value::Object(same) = constants() {
        all.extend(same);
    }
    all.extend(
        ADDRESSES
            .iter()
            .map(|(name, path)| ((*name).to_owned(), json!(format!("{api}{path}")))),
    );
    let open = state.pulls.iter().filter(|pull| pull.is_open()).count();
    let own = json!({
        "id": id,
        "node_id": node_id("R", id),
        "name": state.name,
        "full_name": state.full_name(),
        "owner": user(base, &state.owner, state.owner_id),
        "url": api,
        "html_url": web,
        "clone_url": format!("{web}.git"),
        "git_url": format!("{web}.git"),
        "ssh_url": format!("{web}.git"),
        "svn_url": web,
        "default_branch": state.default_branch,
        "open_issues": open,
        "open_issues_count": open,
        "archived": state.archived,
        "created_at": rfc3339(state.created_at),
        "updated_at": rfc3339(state.pushed_at),
        "pushed_at": rfc3339(state.pushed_at),
        "allow_merge_commit": state.allowed.merge,
        "allow_squash_merge": state.allowed.squash,
        "allow_rebase_merge": state.allowed.rebase,
        "delete_branch_on_merge": state.delete_branch_on_merge,
    });
    if let Value::Object(own) = own {
        all.extend(own);
    }
    Value::Object(all)
}

/// A branch with the commit at its tip.
pub(crate) fn branch(base: &str, state: &RepositoryState, name: &str, tip: &CommitFacts) -> Value {
    let api = api_root(base, state);
    let address = format!(
        "{api}/branches/{}",
        super::super::encoding::percent_encoded_path(name)
    );
    let guarded = state.guarded_branches().contains(name);
    json!({
        "name": name,
        "commit": commit(base, state, tip),
        "_links": {"self": address, "html": format!("{}/tree/{name}", web_root(base, state))},
        "protected": guarded,
        "protection": {"enabled": state.protections.contains_key(name)},
        "protection_url": format!("{address}/protection"),
    })
}
