//! Tree objects: strict reading, comparing and writing.
//!
//! The comparison is a walk of our own over the raw objects, so that nothing configurable (rename detection, ignored
//! submodules, attributes, pathspecs) can have a say. It gives what
//! `git diff-tree -r -z --no-renames --no-abbrev --ignore-submodules=none` prints; the tests hold the two together.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{ChangeSet, FileChange, Mode, Oid, RepoPath, Side};

use super::repository::cooked;
use super::{RepositoryReader, TrustedRepository, WorkspaceError};

/// Directories below each other that are followed.
const DEPTH: usize = 256;
/// Longest path, in bytes.
const PATH_BYTES: usize = 16 << 10;
/// Tree objects read for one comparison or listing: what a tree that contains itself many times over runs into.
const TREE_READS: usize = 200_000;
/// Entries of one change set.
const CHANGED_PATHS: usize = 100_000;
/// Files of one tree when it is listed.
const TRACKED_PATHS: usize = 1_000_000;

/// An entry of a tree object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Tree(Oid),
    Leaf(Side),
}

/// Reads a tree object as strictly as `git fsck --strict` would: a tree that two programs could read differently is refused.
pub(super) fn parse(tree: Oid, data: &[u8]) -> Result<BTreeMap<Vec<u8>, Node>, WorkspaceError> {
    let odd = |reason: String| WorkspaceError::OddTree { tree, reason };
    let mut nodes = BTreeMap::new();
    let mut previous: Option<Vec<u8>> = None;
    let mut rest = data;
    while !rest.is_empty() {
        let (mode, name, id, after) =
            split_entry(rest, tree).ok_or_else(|| odd("it is cut off in an entry".to_owned()))?;
        rest = after;
        let path = RepoPath::from_bytes(name)?;
        if name.contains(&b'/') {
            return Err(odd(format!("the name {path} contains a slash")));
        }
        if id.is_zero() {
            return Err(odd(format!("{path} has the all-zero object id")));
        }
        let node = match mode {
            b"40000" => Node::Tree(id),
            _ => Node::Leaf(Side {
                mode: leaf_mode(mode)
                    .ok_or_else(|| odd(format!("{path} has the mode {}", mode.escape_ascii())))?,
                oid: id,
            }),
        };
        let mut key = name.to_vec();
        if matches!(node, Node::Tree(_)) {
            key.push(b'/');
        }
        if previous.as_ref().is_some_and(|before| *before >= key) {
            return Err(odd(format!("{path} is listed twice or out of order")));
        }
        previous = Some(key);
        if nodes.insert(name.to_vec(), node).is_some() {
            return Err(odd(format!(
                "{path} is listed both as file and as directory"
            )));
        }
    }
    Ok(nodes)
}

/// Mode, name and id of one entry, and what follows it.
type SplitEntry<'a> = (&'a [u8], &'a [u8], Oid, &'a [u8]);

/// Splits `mode SP name NUL id` off the front.
fn split_entry(data: &[u8], tree: Oid) -> Option<SplitEntry<'_>> {
    let space = data.iter().position(|byte| *byte == b' ')?;
    let (mode, named) = (data.get(..space)?, data.get(space + 1..)?);
    let nul = named.iter().position(|byte| *byte == 0)?;
    let (name, after) = (named.get(..nul)?, named.get(nul + 1..)?);
    let width = tree.format().width();
    let id = Oid::from_bytes(after.get(..width)?).ok()?;
    Some((mode, name, id, after.get(width..)?))
}

fn leaf_mode(word: &[u8]) -> Option<Mode> {
    let mode: Mode = std::str::from_utf8(word).ok()?.parse().ok()?;
    (mode != Mode::Absent).then_some(mode)
}

impl RepositoryReader {
    /// What changes from one commit or tree to another: every path, whatever it is, with both sides.
    ///
    /// # Errors
    /// A missing or odd object, a path that cannot be in a change set, or more than 100,000 changed paths.
    pub fn change_set(&self, base: Oid, head: Oid) -> Result<ChangeSet, WorkspaceError> {
        let (old, new) = (self.tree_of(base)?, self.tree_of(head)?);
        let mut walk = Walk::new(self, CHANGED_PATHS);
        if old != new {
            walk.compare(&mut Vec::new(), Some(old), Some(new), 0)?;
        }
        Ok(ChangeSet::new(self.object_format(), walk.entries)?)
    }

    /// Every tracked path of a commit or tree with what is there, submodule links included.
    ///
    /// # Errors
    /// A missing or odd object, or more than 1,000,000 paths.
    pub fn tracked_files(&self, treeish: Oid) -> Result<BTreeMap<RepoPath, Side>, WorkspaceError> {
        let tree = self.tree_of(treeish)?;
        let mut walk = Walk::new(self, TRACKED_PATHS);
        walk.compare(&mut Vec::new(), None, Some(tree), 0)?;
        let files = walk.entries.into_iter();
        Ok(files.map(|entry| (entry.path, entry.new)).collect())
    }

    /// Every tracked path of a commit or tree, in byte order.
    ///
    /// # Errors
    /// As [`Self::tracked_files`].
    pub fn tracked_paths(&self, treeish: Oid) -> Result<Vec<RepoPath>, WorkspaceError> {
        Ok(self.tracked_files(treeish)?.into_keys().collect())
    }
}

struct Walk<'a> {
    reader: &'a RepositoryReader,
    reads: usize,
    cap: usize,
    entries: Vec<FileChange>,
}

impl<'a> Walk<'a> {
    const fn new(reader: &'a RepositoryReader, cap: usize) -> Self {
        Self {
            reader,
            reads: 0,
            cap,
            entries: Vec::new(),
        }
    }

    fn compare(
        &mut self,
        prefix: &mut Vec<u8>,
        old: Option<Oid>,
        new: Option<Oid>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if depth > DEPTH || prefix.len() > PATH_BYTES {
            return Err(too_large(
                "the depth of directories",
                format!("{DEPTH} levels or {PATH_BYTES} bytes of path"),
            ));
        }
        let old = self.children(old)?;
        let new = self.children(new)?;
        let names: BTreeSet<&Vec<u8>> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (before, after) = (old.get(name).copied(), new.get(name).copied());
            if before == after {
                continue;
            }
            let length = prefix.len();
            prefix.extend_from_slice(name);
            self.compare_nodes(prefix, before, after, depth)?;
            prefix.truncate(length);
        }
        Ok(())
    }

    fn compare_nodes(
        &mut self,
        path: &mut Vec<u8>,
        before: Option<Node>,
        after: Option<Node>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let absent = Side::absent(self.reader.object_format());
        let leaf = |node| match node {
            Some(Node::Leaf(side)) => side,
            _ => absent,
        };
        let below = |node| match node {
            Some(Node::Tree(oid)) => Some(oid),
            _ => None,
        };
        let (old, new) = (leaf(before), leaf(after));
        if old != new {
            if self.entries.len() >= self.cap {
                return Err(too_large(
                    "the number of paths",
                    format!("{} paths", self.cap),
                ));
            }
            let path = RepoPath::from_bytes(path)?;
            self.entries.push(FileChange { path, old, new });
        }
        let (old, new) = (below(before), below(after));
        if old.is_some() || new.is_some() {
            path.push(b'/');
            self.compare(path, old, new, depth + 1)?;
        }
        Ok(())
    }

    fn children(&mut self, tree: Option<Oid>) -> Result<BTreeMap<Vec<u8>, Node>, WorkspaceError> {
        let Some(tree) = tree else {
            return Ok(BTreeMap::new());
        };
        self.reads += 1;
        if self.reads > TREE_READS {
            return Err(too_large(
                "the number of directories",
                format!("{TREE_READS} directories"),
            ));
        }
        self.reader.read_tree(tree)
    }
}

fn too_large(what: &str, limit: String) -> WorkspaceError {
    WorkspaceError::TooLarge {
        doing: "walking a tree",
        what: what.to_owned(),
        limit,
        mend: "such a tree is not handled; check that the commit is the one meant",
    }
}

impl TrustedRepository {
    /// Writes tree objects for a listing of files and gives the id of the top one.
    ///
    /// # Errors
    /// A path that is both a file and a directory, an absent side, or objects that cannot be written.
    pub(super) fn write_tree(
        &self,
        files: &BTreeMap<RepoPath, Side>,
    ) -> Result<Oid, WorkspaceError> {
        let entries: Vec<(&[u8], Side)> = files
            .iter()
            .map(|(path, side)| (path.as_bytes(), *side))
            .collect();
        self.write_level(&entries, 0)
    }

    fn write_level(
        &self,
        mut entries: &[(&[u8], Side)],
        start: usize,
    ) -> Result<Oid, WorkspaceError> {
        // Keyed as git sorts: a directory's name counts with a slash at its end.
        let mut nodes: BTreeMap<Vec<u8>, (&'static str, Oid)> = BTreeMap::new();
        while let Some((path, side)) = entries.first() {
            let rest = path.get(start..).unwrap_or_default();
            let slash = rest.iter().position(|byte| *byte == b'/');
            let (key, node, taken) = if let Some(slash) = slash {
                let directory = rest.get(..=slash).unwrap_or_default();
                let taken = entries
                    .iter()
                    .take_while(|(path, _)| {
                        path.get(start..)
                            .is_some_and(|rest| rest.starts_with(directory))
                    })
                    .count();
                let below = self.write_level(
                    entries.get(..taken).unwrap_or_default(),
                    start + directory.len(),
                )?;
                if nodes.contains_key(rest.get(..slash).unwrap_or_default()) {
                    return Err(both(path));
                }
                (directory.to_vec(), ("40000", below), taken)
            } else if side.mode == Mode::Absent {
                return Err(both(path));
            } else {
                (rest.to_vec(), (side.mode.as_str(), side.oid), 1)
            };
            nodes.insert(key, node);
            entries = entries.get(taken..).unwrap_or_default();
        }
        self.write_tree_object(&nodes)
    }

    fn write_tree_object(
        &self,
        nodes: &BTreeMap<Vec<u8>, (&'static str, Oid)>,
    ) -> Result<Oid, WorkspaceError> {
        let mut data = Vec::new();
        for (key, (mode, oid)) in nodes {
            data.extend_from_slice(mode.as_bytes());
            data.push(b' ');
            data.extend_from_slice(key.strip_suffix(b"/").unwrap_or(key));
            data.push(0);
            data.extend_from_slice(oid.as_bytes());
        }
        let odb = self.odb()?;
        let written = odb
            .write(git2::ObjectType::Tree, &data)
            .map_err(WorkspaceError::git("writing a tree"))?;
        cooked(written)
    }

    /// Writes a blob unless it is there, and gives its id.
    pub(super) fn write_blob(&self, bytes: &[u8]) -> Result<Oid, WorkspaceError> {
        let written = self
            .odb()?
            .write(git2::ObjectType::Blob, bytes)
            .map_err(WorkspaceError::git("writing a file's content"))?;
        cooked(written)
    }
}

/// The id that a blob would have.
pub(super) fn blob_id(bytes: &[u8]) -> Result<Oid, WorkspaceError> {
    git2::Oid::hash_object(git2::ObjectType::Blob, bytes)
        .map_err(WorkspaceError::git("hashing a file"))
        .and_then(cooked)
}

fn both(path: &[u8]) -> WorkspaceError {
    WorkspaceError::Unwritable {
        what: "a tree".to_owned(),
        reason: format!(
            "{} would be both a file and a directory, or nothing at all",
            path.escape_ascii()
        ),
    }
}
