//! Which files a session has changed: what is changed now and was not, or not so, when it was registered.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::change::Sha256Digest;
use crate::tool_gate::{Policy, is_protected};
use crate::workspace::changed_paths;

/// What was changed already when a session was registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Baseline {
    /// Whether the worktree was a repository that could be read.
    repository: bool,
    /// Changed paths in hexadecimal, each with the digest of what it held.
    changed: BTreeMap<String, Option<Sha256Digest>>,
}

/// The state of the worktree now.
pub(super) fn baseline(worktree: &Path) -> Baseline {
    match changed_paths(worktree) {
        Ok(Some(paths)) => Baseline {
            repository: true,
            changed: paths
                .into_iter()
                .map(|path| (hex::encode(&path), digest(worktree, &path)))
                .collect(),
        },
        Ok(None) | Err(_) => Baseline::default(),
    }
}

/// The files outside of the allowlist that the session has changed, at most twenty of them.
///
/// # Errors
/// The repository could be read when the session was registered, and cannot now; in words.
pub(super) fn out_of_scope(
    worktree: &Path,
    baseline: &Baseline,
    policy: &Policy,
    folds: bool,
) -> Result<Vec<String>, String> {
    if !baseline.repository || !policy.allowlist().enforces() {
        return Ok(Vec::new());
    }
    let now = changed_paths(worktree)
        .map_err(|error| error.to_string())?
        .ok_or("the repository is gone")?;
    // What was changed before and is as it was committed now was changed by the session, too.
    let reverted = baseline
        .changed
        .keys()
        .filter_map(|path| hex::decode(path).ok())
        .filter(|path| !now.contains(path));
    let changed = now.iter().filter(|path| {
        baseline
            .changed
            .get(&hex::encode(path))
            .is_none_or(|before| *before != digest(worktree, path))
    });
    Ok(outside(changed.cloned().chain(reverted), policy, folds))
}

/// Those of these files that are outside of the allowlist or protected, at most twenty.
pub(super) fn outside(
    files: impl Iterator<Item = Vec<u8>>,
    policy: &Policy,
    folds: bool,
) -> Vec<String> {
    files
        .filter(|path| {
            let file = path.strip_suffix(b"/").unwrap_or(path);
            // Break it: leave the allowlist out; `hook_gate::completion::a_changed_file_outside_the_allowlist_blocks` fails.
            is_protected(file) || !policy.allowlist().allows(file, folds)
        })
        .take(20)
        .map(|path| String::from_utf8_lossy(&path).into_owned())
        .collect()
}

/// SHA-256 of what a path holds: a file's bytes, a link's target; `None` when there is nothing.
fn digest(worktree: &Path, path: &[u8]) -> Option<Sha256Digest> {
    let file = worktree.join(std::ffi::OsStr::from_bytes(path));
    let status = std::fs::symlink_metadata(&file).ok()?;
    if status.is_symlink() {
        let target = std::fs::read_link(&file).ok()?;
        return Some(Sha256Digest::of(target.as_os_str().as_bytes()));
    }
    if !status.is_file() {
        return None;
    }
    let mut hash = Sha256::new();
    let mut opened = std::fs::File::open(&file).ok()?;
    std::io::copy(&mut opened, &mut HashWriter(&mut hash)).ok()?;
    Some(Sha256Digest::from_bytes(hash.finalize().into()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
