//! Git's objects and references, and what lies between two commits.

use serde_json::{Value, json};

use super::super::encoding::percent_encoded_path;
use super::super::git::{CommitFacts, Comparison, FileChange, ObjectId, Signature, TreeEntry};
use super::super::state::RepositoryState;
use super::super::time::rfc3339;
use super::{api_root, node_id, web_root};

fn signature(signature: &Signature) -> Value {
    json!({"name": signature.name, "email": signature.email, "date": rfc3339(signature.seconds)})
}

/// Nothing here is signed.
fn verification() -> Value {
    json!({"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null})
}

fn object_node(kind: &str, id: &ObjectId) -> String {
    format!("{}_{id}", node_id(kind, 0))
}

/// The address of a reference.
pub(crate) fn reference_url(base: &str, state: &RepositoryState, name: &str) -> String {
    format!(
        "{}/git/{}",
        api_root(base, state),
        percent_encoded_path(name)
    )
}

/// A reference and the object it names.
pub(crate) fn reference(
    base: &str,
    state: &RepositoryState,
    name: &str,
    target: &ObjectId,
    kind: &str,
) -> Value {
    json!({
        "ref": name,
        "node_id": object_node("REF", target),
        "url": reference_url(base, state, name),
        "object": {"type": kind, "sha": target.as_str(), "url": format!("{}/git/{kind}s/{target}", api_root(base, state))},
    })
}

/// One entry of a tree. A submodule has neither size nor address.
pub(crate) fn tree_entry(base: &str, state: &RepositoryState, entry: &TreeEntry) -> Value {
    let mut value = json!({"path": entry.path, "mode": entry.mode, "type": entry.kind, "sha": entry.id.as_str()});
    if entry.kind != "commit" {
        value["url"] = json!(format!(
            "{}/git/{}s/{}",
            api_root(base, state),
            entry.kind,
            entry.id
        ));
    }
    if let Some(size) = entry.size {
        value["size"] = json!(size);
    }
    value
}

/// A tree out of its rendered entries.
pub(crate) fn tree(
    base: &str,
    state: &RepositoryState,
    id: &ObjectId,
    entries: &[Value],
    truncated: bool,
) -> Value {
    json!({"sha": id.as_str(), "url": format!("{}/git/trees/{id}", api_root(base, state)), "tree": entries, "truncated": truncated})
}

/// A blob; the content in base64.
pub(crate) fn blob(
    base: &str,
    state: &RepositoryState,
    id: &ObjectId,
    size: u64,
    content: &str,
) -> Value {
    json!({
        "sha": id.as_str(),
        "node_id": object_node("B", id),
        "size": size,
        "url": format!("{}/git/blobs/{id}", api_root(base, state)),
        "content": content,
        "encoding": "base64",
    })
}

/// A commit as the bare object.
pub(crate) fn git_commit(base: &str, state: &RepositoryState, commit: &CommitFacts) -> Value {
    let (api, web) = (api_root(base, state), web_root(base, state));
    let parent = |id: &ObjectId| json!({"sha": id.as_str(), "url": format!("{api}/git/commits/{id}"), "html_url": format!("{web}/commit/{id}")});
    json!({
        "sha": commit.id.as_str(),
        "node_id": object_node("C", &commit.id),
        "url": format!("{api}/git/commits/{}", commit.id),
        "html_url": format!("{web}/commit/{}", commit.id),
        "author": signature(&commit.author),
        "committer": signature(&commit.committer),
        "tree": {"sha": commit.tree.as_str(), "url": format!("{api}/git/trees/{}", commit.tree)},
        "message": commit.message,
        "parents": commit.parents.iter().map(parent).collect::<Value>(),
        "verification": verification(),
    })
}

/// A commit as lists and branches show it. Which accounts wrote it is not known here.
pub(crate) fn commit(base: &str, state: &RepositoryState, commit: &CommitFacts) -> Value {
    let (api, web) = (api_root(base, state), web_root(base, state));
    let id = &commit.id;
    let parent = |id: &ObjectId| json!({"sha": id.as_str(), "url": format!("{api}/commits/{id}"), "html_url": format!("{web}/commit/{id}")});
    json!({
        "sha": id.as_str(),
        "node_id": object_node("C", id),
        "url": format!("{api}/commits/{id}"),
        "html_url": format!("{web}/commit/{id}"),
        "comments_url": format!("{api}/commits/{id}/comments"),
        "commit": {
            "url": format!("{api}/git/commits/{id}"),
            "author": signature(&commit.author),
            "committer": signature(&commit.committer),
            "message": commit.message,
            "comment_count": 0,
            "tree": {"sha": commit.tree.as_str(), "url": format!("{api}/git/trees/{}", commit.tree)},
            "verification": verification(),
        },
        "author": null,
        "committer": null,
        "parents": commit.parents.iter().map(parent).collect::<Value>(),
    })
}

/// The commits that a comparison is about.
pub(crate) struct ComparisonFrame<'a> {
    pub(crate) base: &'a CommitFacts,
    pub(crate) merge_base: &'a CommitFacts,
    pub(crate) head: &'a ObjectId,
}

/// A comparison without its files.
pub(crate) fn comparison(
    base: &str,
    state: &RepositoryState,
    frame: &ComparisonFrame<'_>,
    comparison: &Comparison,
    commits: &[CommitFacts],
) -> Value {
    let range = format!("compare/{}...{}", frame.base.id, frame.head);
    let (api, web) = (api_root(base, state), web_root(base, state));
    let status = match (comparison.ahead.len(), comparison.behind) {
        (0, 0) => "identical",
        (0, _) => "behind",
        (_, 0) => "ahead",
        _ => "diverged",
    };
    json!({
        "url": format!("{api}/{range}"),
        "html_url": format!("{web}/{range}"),
        "permalink_url": format!("{web}/{range}"),
        "diff_url": format!("{web}/{range}.diff"),
        "patch_url": format!("{web}/{range}.patch"),
        "base_commit": commit(base, state, frame.base),
        "merge_base_commit": commit(base, state, frame.merge_base),
        "status": status,
        "ahead_by": comparison.ahead.len(),
        "behind_by": comparison.behind,
        "total_commits": comparison.ahead.len(),
        "commits": commits.iter().map(|facts| commit(base, state, facts)).collect::<Value>(),
    })
}

/// One changed file, with GitHub's quirks: no id when only the mode changed, the old id of a removed file, no addresses
/// for a submodule.
pub(crate) fn file(
    base: &str,
    state: &RepositoryState,
    head: &ObjectId,
    file: &FileChange,
    patch: Option<String>,
) -> Value {
    let (api, web) = (api_root(base, state), web_root(base, state));
    let status = match file.letter {
        'A' => "added",
        'D' => "removed",
        'R' => "renamed",
        'T' => "changed",
        _ => "modified",
    };
    let only_mode = file.letter == 'M' && file.old_id == file.new_id;
    let id = if file.letter == 'D' {
        &file.old_id
    } else {
        &file.new_id
    };
    let path = percent_encoded_path(&file.path);
    let is_submodule =
        file.new_mode == "160000" || (file.letter == 'D' && file.old_mode == "160000");
    let page = |kind: &str| {
        if is_submodule {
            Value::Null
        } else {
            json!(format!("{web}/{kind}/{head}/{path}"))
        }
    };
    let mut value = json!({
        "sha": if only_mode { Value::Null } else { json!(id.as_str()) },
        "filename": file.path,
        "status": status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": page("blob"),
        "raw_url": page("raw"),
        "contents_url": format!("{api}/contents/{path}?ref={head}"),
    });
    if let Some(patch) = patch {
        value["patch"] = json!(patch);
    }
    if let Some(previous) = &file.previous_path {
        value["previous_filename"] = json!(previous);
    }
    value
}
