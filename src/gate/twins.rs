//! Twins: two paths that some file system cannot keep apart.

use std::collections::HashMap;

use crate::change::{ChangeSet, RepoPath};

use super::Verdict;
use super::fold::{folded, portable};
use super::reason::Reason;

fn form(path: &RepoPath) -> Vec<u8> {
    portable(&folded(path.as_bytes()))
}

/// Pairs of twins of which at least one is changed. Twins that were there before and stay untouched are not this change's.
pub(super) fn twins(change: &ChangeSet, tree: Option<&[RepoPath]>) -> Reason {
    let mut changed: HashMap<Vec<u8>, &RepoPath> = HashMap::with_capacity(change.count());
    let mut pairs = Vec::new();
    for path in change.paths() {
        if let Some(first) = changed.insert(form(path), path) {
            pairs.push((first, path));
        }
    }
    for path in tree.unwrap_or_default() {
        if let Some(first) = changed.get(&form(path))
            && *first != path
        {
            pairs.push((first, path));
        }
    }
    let children = pairs.into_iter().map(|(first, second)| {
        Reason::new("same name on some file systems", Verdict::Approve)
            .with("path", first.to_string())
            .with("twin", second.to_string())
    });
    Reason::new("twins", Verdict::Free).because(children.collect())
}
