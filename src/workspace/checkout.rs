//! Scratch trees: a commit's files in a directory, without a repository beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::change::{Mode, Oid, RepoPath, Side};

use super::{RepositoryReader, WorkspaceError};

/// Longest target of a symbolic link, in bytes; no file system takes more.
const LINK_BYTES: u64 = 4095;

/// How large a scratch tree may be, both when it is written and when it is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Number of files, links and directories.
    pub files: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            files: 50_000,
            bytes: 500 << 20,
        }
    }
}

/// What a checkout wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedOut {
    /// Files and links.
    pub files: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl RepositoryReader {
    /// Writes the files of a commit or tree into `into`, which must be empty or not exist yet.
    ///
    /// The bytes are the blobs' own: no filter, no line-ending change, no hook. There is no `.git`. Symbolic links are written
    /// as they are and never followed while writing: they come last, and every file must be new. A submodule becomes an empty
    /// directory.
    ///
    /// # Errors
    /// The tree is larger than `limits` or holds an object that is missing, the directory is in use, or a file cannot be
    /// written (two names that the file system takes for one); the directory is empty then, as far as it can be emptied.
    pub fn checkout(
        &self,
        treeish: Oid,
        into: &Path,
        limits: &TreeLimits,
    ) -> Result<CheckedOut, WorkspaceError> {
        let files = self.tracked_files(treeish)?;
        let written = self.weigh(&files, limits)?;
        prepare_empty(into)?;
        match self.write_files(&files, into) {
            Ok(()) => Ok(written),
            Err(error) => {
                // The first error is the one to report; what cannot be removed is found by the next checkout.
                drop(empty_directory(into));
                Err(error)
            }
        }
    }

    fn weigh(
        &self,
        files: &BTreeMap<RepoPath, Side>,
        limits: &TreeLimits,
    ) -> Result<CheckedOut, WorkspaceError> {
        let too_large = |what: String, limit: String| WorkspaceError::TooLarge {
            doing: "checking out a tree",
            what,
            limit,
            mend: "raise the limit of scratch trees, or leave this project to a person",
        };
        if files.len() > limits.files {
            return Err(too_large(
                format!("{} files", files.len()),
                format!("{} files", limits.files),
            ));
        }
        let mut bytes = 0_u64;
        for side in files.values().filter(|side| side.mode != Mode::Gitlink) {
            bytes = bytes.saturating_add(self.blob_size(side.oid)?);
            if bytes > limits.bytes {
                return Err(too_large(
                    "the size of all files".to_owned(),
                    format!("{} bytes", limits.bytes),
                ));
            }
        }
        let files = files.len();
        Ok(CheckedOut { files, bytes })
    }

    fn write_files(
        &self,
        files: &BTreeMap<RepoPath, Side>,
        into: &Path,
    ) -> Result<(), WorkspaceError> {
        for directory in directories(files) {
            let path = into.join(OsStr::from_bytes(directory));
            DirBuilder::new()
                .mode(0o755)
                .create(&path)
                .map_err(WorkspaceError::io("creating the directory", &path))?;
        }
        for (path, side) in files {
            let target = place(into, path);
            match side.mode {
                Mode::Regular => write_file(&target, &self.content(side)?, 0o644)?,
                Mode::Executable => write_file(&target, &self.content(side)?, 0o755)?,
                Mode::Symlink | Mode::Gitlink | Mode::Absent => {}
            }
        }
        for (path, side) in files.iter().filter(|(_, side)| side.mode == Mode::Symlink) {
            let target = place(into, path);
            let points_to = self.read_blob(side.oid, LINK_BYTES)?;
            std::os::unix::fs::symlink(OsStr::from_bytes(&points_to), &target)
                .map_err(WorkspaceError::io("creating the symbolic link", &target))?;
        }
        Ok(())
    }

    fn content(&self, side: &Side) -> Result<Vec<u8>, WorkspaceError> {
        // Sizes were added up against the limit before anything was written.
        self.read_blob(side.oid, u64::MAX)
    }
}

/// Every directory that must exist, parents before children: those above a file, and those that submodules leave empty.
fn directories(files: &BTreeMap<RepoPath, Side>) -> BTreeSet<&[u8]> {
    let mut found = BTreeSet::new();
    for (path, side) in files {
        let bytes = path.as_bytes();
        let above = bytes
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .filter_map(|(at, _)| bytes.get(..at));
        found.extend(above);
        if side.mode == Mode::Gitlink {
            found.insert(bytes);
        }
    }
    found
}

fn place(into: &Path, path: &RepoPath) -> PathBuf {
    into.join(OsStr::from_bytes(path.as_bytes()))
}

fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), WorkspaceError> {
    // `create_new` neither follows a link nor replaces a file, so two names that a file system takes for one cannot meet.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(WorkspaceError::io("writing the file", path))
}

fn prepare_empty(into: &Path) -> Result<(), WorkspaceError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(into)
        .map_err(WorkspaceError::io("creating the scratch tree", into))?;
    let mut entries =
        std::fs::read_dir(into).map_err(WorkspaceError::io("reading the directory", into))?;
    if entries.next().is_some() {
        return Err(WorkspaceError::Io {
            doing: "checking out a tree into",
            path: into.to_owned(),
            source: std::io::Error::other("the directory is not empty; name a new one"),
        });
    }
    Ok(())
}

fn empty_directory(into: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(into)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
