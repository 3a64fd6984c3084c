//! What somebody else's working tree has that its last commit does not.
//!
//! libgit2 reads it: it runs no program, whatever the repository's configuration says (no fsmonitor, no hook, no filter driver).
//! What the configuration may still do is hide files, so the places where it can are looked at: another working tree, entries that
//! are taken for unchanged.

use std::path::Path;

use git2::{
    IndexEntryExtendedFlag, IndexEntryFlag, Repository, RepositoryOpenFlags, StatusOptions,
};

use super::WorkspaceError;

/// Most changed paths that are listed.
const MAXIMUM: usize = 100_000;

/// The paths, relative to the working tree's top, of files that are changed, added or removed and not ignored; `None` when there is
/// no repository.
///
/// # Errors
/// The repository cannot be read, its working tree is elsewhere, it hides entries from this question, or there are too many.
pub fn changed_paths(top: &Path) -> Result<Option<Vec<Vec<u8>>>, WorkspaceError> {
    if std::fs::symlink_metadata(top.join(".git")).is_err() {
        return Ok(None);
    }
    let refuse = |reason: String| WorkspaceError::Open {
        path: top.to_owned(),
        reason,
    };
    let none: [&std::ffi::OsStr; 0] = [];
    let opened = Repository::open_ext(top, RepositoryOpenFlags::NO_SEARCH, none)
        .map_err(|error| refuse(error.message().to_owned()))?;
    let worktree = opened
        .workdir()
        .and_then(|found| std::fs::canonicalize(found).ok());
    // Break it: believe any working tree; `hook_gate::completion::a_repository_that_points_elsewhere_hides_nothing` fails.
    if worktree != std::fs::canonicalize(top).ok() {
        return Err(refuse("its working tree is another folder".to_owned()));
    }
    let index = opened
        .index()
        .map_err(|error| refuse(error.message().to_owned()))?;
    let hidden = index.iter().find(|entry| {
        IndexEntryFlag::from_bits_retain(entry.flags).is_valid()
            || IndexEntryExtendedFlag::from_bits_retain(entry.flags_extended).is_skip_worktree()
    });
    if let Some(entry) = hidden {
        return Err(refuse(format!(
            "{} is marked as not to be looked at (git update-index --no-assume-unchanged --no-skip-worktree)",
            entry.path.escape_ascii()
        )));
    }
    let mut options = StatusOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_ignored(false)
        .exclude_submodules(true)
        .update_index(false)
        .no_refresh(false);
    let statuses = opened
        .statuses(Some(&mut options))
        .map_err(|error| refuse(error.message().to_owned()))?;
    if statuses.len() > MAXIMUM {
        return Err(refuse(format!("more than {MAXIMUM} files are changed")));
    }
    let mut paths: Vec<Vec<u8>> = statuses
        .iter()
        .map(|status| status.path_bytes().to_vec())
        .collect();
    paths.sort();
    Ok(Some(paths))
}
