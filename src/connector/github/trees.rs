//! Trees, read one level at a time, and what two of them differ in.
//!
//! A listing is believed only when it hashes to the id that was asked for: then it is complete, in order, and every name
//! came through JSON unharmed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::answer::{nonsense, object_id, required};
use super::api::Api;
use super::wire;
use crate::change::{ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side};
use crate::connector::ConnectorError;

/// The most trees read for one comparison.
const TREE_LIMIT: usize = 2_000;
/// The most entries of one change.
const ENTRY_LIMIT: usize = 3_000;
/// The longest path, in bytes.
const PATH_LIMIT: usize = 4_096;
/// The mode of a tree inside a tree.
const TREE_BITS: u32 = 0o040_000;

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: String,
    bits: u32,
    pub(super) oid: Oid,
}

impl Item {
    pub(super) fn is_tree(&self) -> bool {
        self.bits == TREE_BITS
    }

    /// Mode and object of something that is not a tree.
    pub(super) fn side(&self, action: &str) -> Result<Side, ConnectorError> {
        let mode = Mode::from_bits(self.bits)
            .map_err(|error| nonsense(action, &format!("{}: {error}", self.name)))?;
        Ok(Side {
            mode,
            oid: self.oid,
        })
    }
}

/// Entries sorted by the bytes of their names.
pub(super) type Listing = Arc<Vec<Item>>;

/// Reads each tree once, and not too many of them.
pub(super) struct Trees<'a> {
    api: &'a Api,
    read: HashMap<Oid, Listing>,
}

impl<'a> Trees<'a> {
    pub(super) fn new(api: &'a Api) -> Self {
        Self {
            api,
            read: HashMap::new(),
        }
    }

    /// The entries of a tree.
    pub(super) async fn listing(&mut self, id: Oid) -> Result<Listing, ConnectorError> {
        if let Some(listing) = self.read.get(&id) {
            return Ok(Arc::clone(listing));
        }
        let action = format!("reading tree {id}");
        if self.read.len() >= TREE_LIMIT {
            return Err(ConnectorError::Refused {
                action,
                reason: format!(
                    "the change touches more than {TREE_LIMIT} directories, which is more than is compared"
                ),
            });
        }
        let items = if tree_id(&[], id.format()) == Some(id) {
            Vec::new()
        } else {
            let tail = format!("/git/trees/{id}");
            listed(&action, id, self.api.read(&action, &tail).await?)?
        };
        let listing = Arc::new(items);
        self.read.insert(id, Arc::clone(&listing));
        Ok(listing)
    }

    /// What changes from one tree to another: only subtrees whose ids differ are read.
    pub(super) async fn changes(
        &mut self,
        old: Oid,
        new: Oid,
    ) -> Result<ChangeSet, ConnectorError> {
        let action = format!("comparing tree {old} with tree {new}");
        let mut entries = Vec::new();
        let mut open = vec![(String::new(), Some(old), Some(new))];
        while let Some((prefix, old, new)) = open.pop() {
            if old == new {
                continue;
            }
            let old = self.optional(old).await?;
            let new = self.optional(new).await?;
            for (name, (before, after)) in paired(&old, &new) {
                if before == after {
                    continue;
                }
                let path = joined(&action, &prefix, name)?;
                let subtree =
                    |item: Option<&Item>| item.filter(|item| item.is_tree()).map(|item| item.oid);
                let (old_tree, new_tree) = (subtree(before), subtree(after));
                if let Some(entry) = leaf_change(&action, &path, before, after)? {
                    entries.push(entry);
                }
                if old_tree.is_some() || new_tree.is_some() {
                    open.push((path, old_tree, new_tree));
                }
                if entries.len() > ENTRY_LIMIT {
                    return Err(ConnectorError::Refused {
                        action,
                        reason: format!("more than {ENTRY_LIMIT} paths differ"),
                    });
                }
            }
        }
        ChangeSet::new(old.format(), entries).map_err(|error| nonsense(&action, &error.to_string()))
    }

    async fn optional(&mut self, id: Option<Oid>) -> Result<Listing, ConnectorError> {
        match id {
            Some(id) => self.listing(id).await,
            None => Ok(Listing::default()),
        }
    }
}

/// Both sides of every name, in order of names.
fn paired<'a>(
    old: &'a [Item],
    new: &'a [Item],
) -> BTreeMap<&'a str, (Option<&'a Item>, Option<&'a Item>)> {
    let mut pairs: BTreeMap<&str, (Option<&Item>, Option<&Item>)> = BTreeMap::new();
    for item in old {
        pairs.entry(&item.name).or_default().0 = Some(item);
    }
    for item in new {
        pairs.entry(&item.name).or_default().1 = Some(item);
    }
    pairs
}

/// The entry at a path whose sides differ, unless both are directories or nothing.
fn leaf_change(
    action: &str,
    path: &str,
    before: Option<&Item>,
    after: Option<&Item>,
) -> Result<Option<FileChange>, ConnectorError> {
    let Some(format) = before.or(after).map(|item| item.oid.format()) else {
        return Ok(None);
    };
    let side = |item: Option<&Item>| match item.filter(|item| !item.is_tree()) {
        Some(item) => item.side(action),
        None => Ok(Side::absent(format)),
    };
    let (old, new) = (side(before)?, side(after)?);
    if old == new {
        return Ok(None);
    }
    let path = RepoPath::from_bytes(path.as_bytes())
        .map_err(|error| nonsense(action, &error.to_string()))?;
    Ok(Some(FileChange { path, old, new }))
}

/// A name below a directory.
pub(super) fn joined(action: &str, prefix: &str, name: &str) -> Result<String, ConnectorError> {
    let path = if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}/{name}")
    };
    if path.len() > PATH_LIMIT {
        return Err(nonsense(
            action,
            &format!("a path is longer than {PATH_LIMIT} bytes"),
        ));
    }
    Ok(path)
}

/// Checks a listing and sorts it.
fn listed(action: &str, id: Oid, tree: wire::Tree) -> Result<Vec<Item>, ConnectorError> {
    if tree.truncated != Some(false) {
        return Err(nonsense(
            action,
            "the listing is cut short, or does not say that it is not",
        ));
    }
    let mut items = Vec::new();
    for entry in required(action, "tree", tree.entries)? {
        let mode = required(action, "mode", entry.mode)?;
        let Ok(bits) = u32::from_str_radix(&mode, 8) else {
            return Err(nonsense(action, "a mode is not an octal number"));
        };
        let oid = object_id(action, "tree.sha", entry.sha.as_deref())?;
        let name = required(action, "path", entry.path)?;
        items.push(Item { name, bits, oid });
    }
    let harmed = items.iter().any(|item| item.name.contains('\u{fffd}'));
    items.sort_by_key(stored_name);
    // Break it: drop this comparison; `connector::listings::a_listing_that_is_not_the_tree_is_refused` then fails.
    if tree_id(&items, id.format()) != Some(id) {
        return Err(nonsense(
            action,
            if harmed {
                "it holds a name that is not UTF-8, which JSON cannot carry; such a directory cannot be compared"
            } else {
                "the listing is not the tree that was asked for"
            },
        ));
    }
    items.sort_by(|a, b| a.name.cmp(&b.name));
    let twice = items
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.name == b.name));
    let unsafe_name = |item: &Item| item.name.is_empty() || item.name.contains(['/', '\0']);
    if twice || items.iter().any(unsafe_name) {
        return Err(nonsense(
            action,
            "it lists a name twice, or a name that no tree may hold",
        ));
    }
    Ok(items)
}

/// Git sorts a directory as if its name ended in a slash.
fn stored_name(item: &Item) -> Vec<u8> {
    let mut name = item.name.as_bytes().to_vec();
    if item.is_tree() {
        name.push(b'/');
    }
    name
}

/// The id of a tree with these entries, already in git's order.
fn tree_id(items: &[Item], format: ObjectFormat) -> Option<Oid> {
    let mut raw = Vec::new();
    for item in items {
        raw.extend_from_slice(format!("{:o} {}\0", item.bits, item.name).as_bytes());
        raw.extend_from_slice(item.oid.as_bytes());
    }
    match format {
        ObjectFormat::Sha1 => {
            let id = git2::Oid::hash_object(git2::ObjectType::Tree, &raw).ok()?;
            Oid::from_bytes(id.as_bytes()).ok()
        }
        ObjectFormat::Sha256 => {
            let hash = Sha256::new()
                .chain_update(format!("tree {}\0", raw.len()))
                .chain_update(&raw)
                .finalize();
            Oid::from_bytes(&hash).ok()
        }
    }
}
