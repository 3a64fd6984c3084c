//! Reading a scratch tree that an agent edited back into the trusted repository.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode as Permissions, OFlags, Stat};

use crate::change::{ChangeSet, Mode, Oid, RepoPath, Side};

use super::checkout::TreeLimits;
use super::left_out::LeftOut;
use super::tree::blob_id;
use super::{TrustedRepository, WorkspaceError};

/// Directories below each other that are followed; each holds a file descriptor open.
const DEPTH: usize = 128;
/// Paths that are named in [`Snapshot::left_out`].
const EXAMPLES: usize = 20;

/// A scratch tree as a tree object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The tree.
    pub tree: Oid,
    /// What changes from the base to it.
    pub changes: ChangeSet,
    /// Number of untracked files and directories that were left out as build output.
    pub left_out_count: usize,
    /// The first 20 of them.
    pub left_out: Vec<RepoPath>,
}

impl TrustedRepository {
    /// Reads a scratch tree and writes it as a tree object.
    ///
    /// Everything is opened relative to its directory and without following links, so that nothing outside is read even while
    /// something still changes the tree. File contents are taken as they are. Left out are untracked files that the *base's*
    /// `.gitignore` files ignore and the leftovers of well-known tools (`target` beside a `Cargo.toml`, `__pycache__`,
    /// `node_modules` and the like). The submodules of the base are kept as they were as long as their directories are empty.
    ///
    /// # Errors
    /// A `.git` in any spelling, a socket, device or pipe, a file with several hard links, another file system mounted inside,
    /// a submodule with content, a name that cannot be in a tree, or more than `limits`.
    pub fn snapshot(
        &self,
        scratch: &Path,
        base: Oid,
        limits: &TreeLimits,
    ) -> Result<Snapshot, WorkspaceError> {
        let tracked = self.tracked_files(base)?;
        let root = rustix::fs::open(scratch, directory_flags(), Permissions::empty())
            .map_err(WorkspaceError::io("opening the scratch tree", scratch))?;
        let status = rustix::fs::fstat(&root)
            .map_err(WorkspaceError::io("reading the scratch tree", scratch))?;
        let mut scan = Scan {
            repository: self,
            left_out_rules: LeftOut::of_base(self, &tracked)?,
            base: &tracked,
            device: i128::from(status.st_dev),
            limits: *limits,
            seen: 0,
            bytes: 0,
            files: BTreeMap::new(),
            left_out_count: 0,
            left_out: Vec::new(),
        };
        scan.directory(&root, &mut Vec::new(), 0)?;
        let (files, left_out_count, left_out) = (scan.files, scan.left_out_count, scan.left_out);
        let tree = self.write_tree(&files)?;
        Ok(Snapshot {
            tree,
            changes: self.change_set(base, tree)?,
            left_out_count,
            left_out,
        })
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

struct Scan<'a> {
    repository: &'a TrustedRepository,
    left_out_rules: LeftOut<'a>,
    base: &'a BTreeMap<RepoPath, Side>,
    device: i128,
    limits: TreeLimits,
    seen: usize,
    bytes: u64,
    files: BTreeMap<RepoPath, Side>,
    left_out_count: usize,
    left_out: Vec<RepoPath>,
}

impl Scan<'_> {
    fn directory(
        &mut self,
        directory: &OwnedFd,
        prefix: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        if depth > DEPTH {
            return Err(too_large(
                "the depth of directories",
                format!("{DEPTH} levels"),
            ));
        }
        for name in self.names(directory, prefix)? {
            let length = prefix.len();
            prefix.extend_from_slice(&name);
            if name.eq_ignore_ascii_case(b".git") {
                return Err(refused(
                    prefix,
                    "a scratch tree has no repository of its own; remove it",
                ));
            }
            let path = RepoPath::from_bytes(prefix)?;
            self.entry(directory, &name, &path, prefix, depth)?;
            prefix.truncate(length);
        }
        Ok(())
    }

    /// The names in a directory, sorted so that errors and examples do not depend on the file system.
    fn names(
        &mut self,
        directory: &OwnedFd,
        prefix: &[u8],
    ) -> Result<Vec<Vec<u8>>, WorkspaceError> {
        let mut names = Vec::new();
        let entries = Dir::read_from(directory).map_err(|error| failed(prefix, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(prefix, error))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            self.seen += 1;
            if self.seen > self.limits.files {
                return Err(too_large(
                    "the number of files and directories",
                    format!("{}", self.limits.files),
                ));
            }
            names.push(name.to_vec());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn entry(
        &mut self,
        directory: &OwnedFd,
        name: &[u8],
        path: &RepoPath,
        prefix: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let status = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| failed(prefix, error))?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if kind == FileType::Directory {
            return self.subdirectory(directory, name, path, prefix, depth);
        }
        if self.left_out_rules.file(path)? {
            self.leave_out(path);
            return Ok(());
        }
        let (mode, content) = match kind {
            FileType::RegularFile => self.regular(directory, name, prefix)?,
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())
                    .map_err(|error| failed(prefix, error))?;
                (Mode::Symlink, target.into_bytes())
            }
            _ => {
                return Err(refused(
                    prefix,
                    "it is a socket, pipe or device, which git cannot hold; remove it",
                ));
            }
        };
        self.weigh(content.len())?;
        let oid = self.store(path, &content)?;
        self.files.insert(path.clone(), Side { mode, oid });
        Ok(())
    }

    fn subdirectory(
        &mut self,
        directory: &OwnedFd,
        name: &[u8],
        path: &RepoPath,
        prefix: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), WorkspaceError> {
        let gitlink = self
            .base
            .get(path)
            .copied()
            .filter(|side| side.mode == Mode::Gitlink);
        if gitlink.is_none() && self.left_out_rules.directory(path)? {
            self.leave_out(path);
            return Ok(());
        }
        let below = rustix::fs::openat(directory, name, directory_flags(), Permissions::empty())
            .map_err(|error| failed(prefix, error))?;
        let status = rustix::fs::fstat(&below).map_err(|error| failed(prefix, error))?;
        self.check_device(&status, prefix)?;
        let Some(side) = gitlink else {
            prefix.push(b'/');
            return self.directory(&below, prefix, depth + 1);
        };
        if !self.names(&below, prefix)?.is_empty() {
            return Err(refused(
                prefix,
                "files were written into a submodule; a change of it belongs into its own repository, so empty the directory",
            ));
        }
        self.files.insert(path.clone(), side);
        Ok(())
    }

    fn regular(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        prefix: &[u8],
    ) -> Result<(Mode, Vec<u8>), WorkspaceError> {
        // Without NONBLOCK, a pipe put in the file's place meanwhile would hold the opening up for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Permissions::empty())
            .map_err(|error| failed(prefix, error))?;
        let status = rustix::fs::fstat(&file).map_err(|error| failed(prefix, error))?;
        self.check_device(&status, prefix)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(refused(
                prefix,
                "it changed while it was read; end every process that works in the tree",
            ));
        }
        if status.st_nlink > 1 {
            return Err(refused(
                prefix,
                "it has several hard links, so that it may be a file from elsewhere; replace it by a copy",
            ));
        }
        let executable = status.st_mode & 0o100 != 0;
        let left = self.limits.bytes.saturating_sub(self.bytes);
        let mut content = Vec::new();
        std::fs::File::from(file)
            .take(left.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| failed(prefix, error))?;
        let mode = if executable {
            Mode::Executable
        } else {
            Mode::Regular
        };
        Ok((mode, content))
    }

    fn check_device(&self, status: &Stat, prefix: &[u8]) -> Result<(), WorkspaceError> {
        if i128::from(status.st_dev) == self.device {
            return Ok(());
        }
        Err(refused(
            prefix,
            "it lies on another file system; unmount what is mounted inside the tree",
        ))
    }

    fn weigh(&mut self, length: usize) -> Result<(), WorkspaceError> {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        if self.bytes > self.limits.bytes {
            return Err(too_large(
                "the size of all files",
                format!("{} bytes", self.limits.bytes),
            ));
        }
        Ok(())
    }

    /// Writes the content unless the base has the same at this path.
    fn store(&self, path: &RepoPath, content: &[u8]) -> Result<Oid, WorkspaceError> {
        let known = blob_id(content)?;
        if self.base.get(path).is_some_and(|side| side.oid == known) {
            return Ok(known);
        }
        self.repository.write_blob(content)
    }

    fn leave_out(&mut self, path: &RepoPath) {
        self.left_out_count += 1;
        if self.left_out.len() < EXAMPLES {
            self.left_out.push(path.clone());
        }
    }
}

fn shown(path: &[u8]) -> String {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    if path.is_empty() {
        return "its top directory".to_owned();
    }
    path.escape_ascii().to_string()
}

fn refused(path: &[u8], reason: &str) -> WorkspaceError {
    WorkspaceError::Scratch {
        path: shown(path),
        reason: reason.to_owned(),
    }
}

fn failed(path: &[u8], error: impl Into<std::io::Error>) -> WorkspaceError {
    let error: std::io::Error = error.into();
    WorkspaceError::Scratch {
        path: shown(path),
        reason: format!("it cannot be read: {error}"),
    }
}

fn too_large(what: &str, limit: String) -> WorkspaceError {
    WorkspaceError::TooLarge {
        doing: "reading the scratch tree",
        what: what.to_owned(),
        limit,
        mend: "remove generated files, or add them to the project's .gitignore first",
    }
}
