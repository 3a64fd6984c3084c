//! The tracked files of a commit as detection looks at them.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::{Mode, Oid, RepoPath, Sha256Digest};

use super::super::{RepositoryReader, WorkspaceError};
use super::Evidence;

/// Directories below each other that are looked into.
const DEPTH: usize = 4;
/// Directories that are looked into in all.
const DIRECTORIES: usize = 2_000;
/// Longest marker file that is read, in bytes.
const FILE_BYTES: u64 = 16 << 20;
/// Directories that hold other people's code, or data for tests.
const SKIPPED: [&str; 8] = [
    "vendor",
    "third_party",
    "node_modules",
    "testdata",
    "fixtures",
    "dist",
    "target",
    "site-packages",
];

/// The tracked files by directory.
pub(super) struct ProjectTree<'a> {
    repository: &'a RepositoryReader,
    commit: Oid,
    /// Names by directory; the top is the empty text.
    directories: BTreeMap<String, BTreeSet<String>>,
    executables: BTreeSet<RepoPath>,
}

impl<'a> ProjectTree<'a> {
    pub(super) fn read(
        repository: &'a RepositoryReader,
        commit: Oid,
    ) -> Result<Self, WorkspaceError> {
        let mut directories: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut executables = BTreeSet::new();
        for (path, side) in repository.tracked_files(commit)? {
            if side.mode == Mode::Executable {
                executables.insert(path.clone());
            }
            let is_file = matches!(side.mode, Mode::Regular | Mode::Executable);
            let Some(text) = path.as_text().filter(|_| is_file) else {
                continue;
            };
            let (directory, name) = text.rsplit_once('/').unwrap_or(("", text));
            let known = directories.contains_key(directory);
            if is_searched(directory) && (known || directories.len() < DIRECTORIES) {
                let names = directories.entry(directory.to_owned()).or_default();
                names.insert(name.to_owned());
            }
        }
        Ok(Self {
            repository,
            commit,
            directories,
            executables,
        })
    }

    /// Every directory that is looked into, the top first.
    pub(super) fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.keys().map(String::as_str)
    }

    /// Whether a directory holds a file; `*.end` matches any name with that ending.
    pub(super) fn find(&self, directory: &str, pattern: &str) -> Option<&str> {
        let names = self.directories.get(directory)?;
        match pattern.strip_prefix('*') {
            Some(ending) => names.iter().find(|name| name.ends_with(ending)),
            None => names.get(pattern),
        }
        .map(String::as_str)
    }

    pub(super) fn has(&self, directory: &str, pattern: &str) -> bool {
        self.find(directory, pattern).is_some()
    }

    /// The directories that hold a matching file.
    pub(super) fn folders_with(
        &self,
        matches: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &str> {
        self.directories
            .iter()
            .filter(move |(_, names)| names.iter().any(|name| matches(name)))
            .map(|(directory, _)| directory.as_str())
    }

    pub(super) fn is_executable(&self, path: &str) -> bool {
        path.parse()
            .is_ok_and(|path: RepoPath| self.executables.contains(&path))
    }

    /// The bytes of a file; empty when it is not there.
    pub(super) fn bytes(&self, directory: &str, name: &str) -> Result<Vec<u8>, WorkspaceError> {
        let path: RepoPath = join(directory, name).parse()?;
        let found = self.repository.read_file(self.commit, &path, FILE_BYTES)?;
        Ok(found.unwrap_or_default())
    }

    /// The text of a file, with anything that is not UTF-8 replaced; empty when it is not there.
    pub(super) fn text(&self, directory: &str, name: &str) -> Result<String, WorkspaceError> {
        let bytes = self.bytes(directory, name)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn evidence(
        &self,
        directory: &str,
        name: &str,
        why: &str,
    ) -> Result<Evidence, WorkspaceError> {
        Ok(Evidence {
            file: join(directory, name).parse()?,
            sha256: Sha256Digest::of(&self.bytes(directory, name)?),
            why: why.to_owned(),
        })
    }
}

fn is_searched(directory: &str) -> bool {
    directory.is_empty()
        || (directory.split('/').count() <= DEPTH
            && !directory.split('/').any(|part| {
                (part.starts_with('.') && part != ".config") || SKIPPED.contains(&part)
            }))
}

/// Whether `directory` is `root` or lies below it.
pub(super) fn is_inside(directory: &str, root: &str) -> bool {
    root.is_empty()
        || directory == root
        || directory
            .strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// A path from a directory and a name.
pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}
