//! Files and directories of a commit.

use serde_json::{Value, json};

use super::super::encoding::{base64_lines, percent_encoded_path};
use super::super::git::{ObjectId, TreeEntry};
use super::super::render::{api_root, web_root};
use super::super::state::RepositoryState;
use super::objects::resolved;
use super::routes::Scene;
use super::{Answer, Body, Refusal, Reply};

/// Larger files come without their content in JSON; in bytes.
const CONTENT_BYTES: u64 = 1_000_000;
/// Larger files do not come at all; in bytes.
const RAW_BYTES: u64 = 100_000_000;
/// A directory is cut after so many entries.
const ENTRIES: usize = 1_000;

/// Where a file lies.
struct Place<'a> {
    scene: Scene<'a>,
    state: &'a RepositoryState,
    /// The name of the commit as it was asked for.
    reference: &'a str,
    path: &'a str,
}

/// `GET /repos/{owner}/{repo}/contents/{path}`
pub(crate) fn show(scene: Scene<'_>, path: &str) -> Answer {
    let state = scene.repository.current()?;
    let asked = scene
        .call
        .query_value("ref")
        .unwrap_or(&state.default_branch);
    let reference = asked
        .strip_prefix("refs/heads/")
        .or_else(|| asked.strip_prefix("refs/tags/"))
        .unwrap_or(asked);
    let missing = || Refusal::new(404, format!("No commit found for the ref {asked}"));
    let commit = resolved(scene, reference, "commit")?.ok_or_else(missing)?;
    let place = Place {
        scene,
        state: &state,
        reference,
        path,
    };
    if path.is_empty() {
        let tree = scene.repository.git.resolve(commit.as_str(), "tree")?;
        return place.directory(&tree.ok_or_else(Refusal::not_found)?);
    }
    let entry = scene
        .repository
        .git
        .entry(&commit, path)?
        .ok_or_else(Refusal::not_found)?;
    match (entry.kind.as_str(), entry.mode.as_str()) {
        ("tree", _) => place.directory(&entry.id),
        ("commit", _) => Ok(Reply::ok(place.submodule(path, &entry))),
        (_, "120000") => place.link(&commit, &entry),
        _ => place.file(&entry),
    }
}

/// The path that a link leads to, if it stays in the repository.
fn link_target(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

impl Place<'_> {
    /// What every kind of entry has.
    fn common(&self, path: &str, kind: &str, entry: &TreeEntry) -> Value {
        let base = &self.scene.shared.url;
        let encoded = percent_encoded_path(path);
        let reference = percent_encoded_path(self.reference);
        let url = format!(
            "{}/contents/{encoded}?ref={reference}",
            api_root(base, self.state)
        );
        let git = format!(
            "{}/git/{}s/{}",
            api_root(base, self.state),
            entry.kind,
            entry.id
        );
        let word = if entry.kind == "tree" { "tree" } else { "blob" };
        let html = format!(
            "{}/{word}/{reference}/{encoded}",
            web_root(base, self.state)
        );
        let download = (entry.kind == "blob")
            .then(|| format!("{}/raw/{reference}/{encoded}", web_root(base, self.state)));
        json!({
            "name": path.rsplit('/').next(),
            "path": path,
            "sha": entry.id.as_str(),
            "size": entry.size.unwrap_or(0),
            "type": kind,
            "url": url,
            "git_url": git,
            "html_url": html,
            "download_url": download,
            "_links": {"self": url, "git": git, "html": html},
        })
    }

    fn directory(&self, tree: &ObjectId) -> Answer {
        let entries = self.scene.repository.git.tree(tree, false)?;
        let rows = entries.iter().take(ENTRIES).map(|entry| {
            let path = if self.path.is_empty() {
                entry.path.clone()
            } else {
                format!("{}/{}", self.path, entry.path)
            };
            let kind = match (entry.kind.as_str(), entry.mode.as_str()) {
                ("tree", _) => "dir",
                // The older API version calls a submodule in a directory a file.
                ("commit", _) if self.scene.call.is_old_version() => "file",
                ("commit", _) => "submodule",
                (_, "120000") => "symlink",
                _ => "file",
            };
            self.common(&path, kind, entry)
        });
        Ok(Reply::ok(rows.collect()))
    }

    fn submodule(&self, path: &str, entry: &TreeEntry) -> Value {
        let mut value = self.common(path, "submodule", entry);
        value["submodule_git_url"] = json!(format!("{}/{path}.git", self.scene.shared.url));
        value
    }

    /// A link to a regular file shows that file.
    fn link(&self, commit: &ObjectId, entry: &TreeEntry) -> Answer {
        let git = &self.scene.repository.git;
        let target = String::from_utf8_lossy(&git.blob(&entry.id)?).into_owned();
        let followed = match link_target(self.path, &target) {
            Some(path) if !path.is_empty() => git.entry(commit, &path)?,
            _ => None,
        };
        if let Some(file) = followed.filter(|entry| entry.kind == "blob" && entry.mode != "120000")
        {
            self.file(&file)
        } else {
            let mut value = self.common(self.path, "symlink", entry);
            value["target"] = json!(target);
            Ok(Reply::ok(value))
        }
    }

    fn file(&self, entry: &TreeEntry) -> Answer {
        let size = entry.size.unwrap_or(0);
        if size > RAW_BYTES {
            return Err(Refusal::new(
                403,
                "This API returns blobs up to 100 MB in size. The requested blob is too large to fetch via the API.",
            ));
        }
        let accept = &self.scene.call.accept;
        let raw = accept.contains("vnd.github.raw") || accept.contains("vnd.github.v3.raw");
        let git = &self.scene.repository.git;
        if raw {
            return Ok(Reply {
                status: 200,
                headers: Vec::new(),
                body: Body::Raw(git.blob(&entry.id)?),
            });
        }
        let mut value = self.common(self.path, "file", entry);
        let (content, encoding) = if size > CONTENT_BYTES {
            (String::new(), "none")
        } else {
            (base64_lines(&git.blob(&entry.id)?), "base64")
        };
        value["content"] = json!(content);
        value["encoding"] = json!(encoding);
        Ok(Reply::ok(value))
    }
}
