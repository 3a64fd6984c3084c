//! What stands at the base tip where the change would land.

use std::collections::{BTreeMap, BTreeSet};

use super::trees::{Item, Trees, joined};
use crate::change::{ChangeSet, Mode, Oid, RepoPath, Side};
use crate::connector::ConnectorError;

/// What stands at each path of interest, and where a file and a directory would collide.
pub(super) struct LandingPlace {
    pub(super) sides: BTreeMap<RepoPath, Side>,
    pub(super) conflicts: Vec<RepoPath>,
}

/// What a path meets in a tree.
enum Standing {
    /// Nothing.
    Nothing,
    /// A file, link or submodule.
    Leaf(Side),
    /// A directory.
    Directory(Oid),
    /// Something that is not a directory, further up.
    Below(String),
}

/// Looks at every path of the live change and at those `approved` besides.
pub(super) async fn look(
    trees: &mut Trees<'_>,
    root: Oid,
    change: &ChangeSet,
    approved: &[RepoPath],
) -> Result<LandingPlace, ConnectorError> {
    let mut place = LandingPlace {
        sides: BTreeMap::new(),
        conflicts: Vec::new(),
    };
    let is_removed = |side: &Side| side.mode == Mode::Absent;
    let removed: BTreeSet<&[u8]> = change
        .entries()
        .iter()
        .filter(|entry| is_removed(&entry.new))
        .map(|entry| entry.path.as_bytes())
        .collect();
    let paths: BTreeSet<&RepoPath> = change.paths().chain(approved).collect();
    for path in paths {
        let conflict = match stands(trees, root, path).await? {
            Standing::Nothing => false,
            Standing::Leaf(side) => {
                place.sides.insert(path.clone(), side);
                false
            }
            // Where the change itself turns a file into a directory, the file is one of its deletions.
            Standing::Below(leaf) => !removed.contains(leaf.as_bytes()),
            // And the reverse: then every file below is one of its deletions.
            Standing::Directory(id) => {
                removed.contains(path.as_bytes()) || keeps_any(trees, id, path, &removed).await?
            }
        };
        if conflict {
            place.conflicts.push(path.clone());
        }
    }
    Ok(place)
}

async fn stands(
    trees: &mut Trees<'_>,
    root: Oid,
    path: &RepoPath,
) -> Result<Standing, ConnectorError> {
    let action = format!("looking at {path} at the base tip");
    let Some(text) = path.as_text() else {
        return Err(ConnectorError::Refused {
            action,
            reason: "the name is not UTF-8, which JSON cannot carry".to_owned(),
        });
    };
    let mut directory = root;
    let mut walked = String::new();
    for component in text.split('/') {
        let listing = trees.listing(directory).await?;
        let found = listing.binary_search_by(|item| item.name.as_str().cmp(component));
        let Some(item) = found.ok().and_then(|position| listing.get(position)) else {
            return Ok(Standing::Nothing);
        };
        walked = joined(&action, &walked, component)?;
        if item.is_tree() {
            directory = item.oid;
        } else if walked == text {
            return item.side(&action).map(Standing::Leaf);
        } else {
            return Ok(Standing::Below(walked));
        }
    }
    Ok(Standing::Directory(directory))
}

/// Whether a directory holds anything that the change does not delete. Ends at the first such file.
async fn keeps_any(
    trees: &mut Trees<'_>,
    directory: Oid,
    path: &RepoPath,
    removed: &BTreeSet<&[u8]>,
) -> Result<bool, ConnectorError> {
    let action = format!("looking below {path} at the base tip");
    let text = path.as_text().unwrap_or_default();
    let mut open = vec![(text.to_owned(), directory)];
    while let Some((prefix, directory)) = open.pop() {
        let listing = trees.listing(directory).await?;
        for item in listing.iter() {
            let Item { name, oid, .. } = item;
            let below = joined(&action, &prefix, name)?;
            if item.is_tree() {
                open.push((below, *oid));
            } else if !removed.contains(below.as_bytes()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
