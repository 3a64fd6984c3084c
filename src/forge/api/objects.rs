//! Trees, blobs and commits.

use super::super::encoding::base64_lines;
use super::super::git::ObjectId;
use super::super::render;
use super::routes::Scene;
use super::{Answer, Body, Refusal, Reply};

/// A recursive tree is cut after so many entries, or when its answer grows beyond so many bytes.
const TREE_ENTRIES: usize = 100_000;
const TREE_BYTES: usize = 7_000_000;
/// The API gives no larger blobs.
const BLOB_BYTES: u64 = 100_000_000;

/// The object of `kind` that a branch, a tag, a reference without `refs/` or an id leads to.
pub(crate) fn resolved(
    scene: Scene<'_>,
    name: &str,
    kind: &str,
) -> Result<Option<ObjectId>, Refusal> {
    let full_id = ObjectId::parse(name).is_some();
    let candidates = [
        format!("refs/heads/{name}"),
        format!("refs/tags/{name}"),
        format!("refs/{name}"),
        name.to_owned(),
    ];
    for candidate in candidates.iter().skip(if full_id { 3 } else { 0 }) {
        if let Some(id) = scene.repository.git.resolve(candidate, kind)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// `GET /repos/{owner}/{repo}/git/trees/{tree_sha}`: whatever `recursive` says, even `0` or `false`, it recurses.
pub(crate) fn tree(scene: Scene<'_>, name: &str) -> Answer {
    let id = resolved(scene, name, "tree")?.ok_or_else(Refusal::not_found)?;
    let recursive = scene.call.query_value("recursive").is_some();
    let state = scene.repository.current()?;
    let mut entries = Vec::new();
    let mut bytes = 0;
    let all = scene.repository.git.tree(&id, recursive)?;
    for entry in &all {
        // Each entry costs its path, its id and about 200 bytes of address and names.
        bytes += entry.path.len() + 240;
        if entries.len() == TREE_ENTRIES || bytes > TREE_BYTES {
            break;
        }
        entries.push(render::tree_entry(&scene.shared.url, &state, entry));
    }
    let truncated = entries.len() < all.len();
    Ok(Reply::ok(render::tree(
        &scene.shared.url,
        &state,
        &id,
        &entries,
        truncated,
    )))
}

/// `GET /repos/{owner}/{repo}/git/blobs/{file_sha}`
pub(crate) fn blob(scene: Scene<'_>, name: &str) -> Answer {
    let id = ObjectId::parse(name).ok_or_else(|| {
        Refusal::new(
            422,
            "The sha parameter must be exactly 40 characters and contain only [0-9a-f].",
        )
    })?;
    let size = scene
        .repository
        .git
        .blob_size(&id)?
        .ok_or_else(Refusal::not_found)?;
    if size > BLOB_BYTES {
        return Err(Refusal::new(
            403,
            "This API returns blobs up to 100 MB in size. The requested blob is too large to fetch via the API.",
        ));
    }
    let content = scene.repository.git.blob(&id)?;
    if scene.call.accept.contains("vnd.github.raw")
        || scene.call.accept.contains("vnd.github.v3.raw")
    {
        return Ok(Reply {
            status: 200,
            headers: Vec::new(),
            body: Body::Raw(content),
        });
    }
    let state = scene.repository.remembered();
    Ok(Reply::ok(render::blob(
        &scene.shared.url,
        &state,
        &id,
        size,
        &base64_lines(&content),
    )))
}

/// `GET /repos/{owner}/{repo}/git/commits/{commit_sha}`: the bare object; takes full ids only.
pub(crate) fn git_commit(scene: Scene<'_>, name: &str) -> Answer {
    let id = ObjectId::parse(name).ok_or_else(Refusal::not_found)?;
    let id = scene
        .repository
        .git
        .resolve(id.as_str(), "commit")?
        .ok_or_else(Refusal::not_found)?;
    let commit = scene.repository.git.commit(&id)?;
    let state = scene.repository.remembered();
    Ok(Reply::ok(render::git_commit(
        &scene.shared.url,
        &state,
        &commit,
    )))
}

/// `GET /repos/{owner}/{repo}/commits/{ref}`
pub(crate) fn commit(scene: Scene<'_>, name: &str) -> Answer {
    let missing = || Refusal::new(422, format!("No commit found for SHA: {name}"));
    let id = resolved(scene, name, "commit")?.ok_or_else(missing)?;
    if scene.call.accept.contains("vnd.github.sha") {
        return Ok(Reply {
            status: 200,
            headers: Vec::new(),
            body: Body::Raw(id.as_str().into()),
        });
    }
    let commit = scene.repository.git.commit(&id)?;
    let state = scene.repository.remembered();
    Ok(Reply::ok(render::commit(
        &scene.shared.url,
        &state,
        &commit,
    )))
}
