//! Files of the tree that is worked on, and never any other.
//!
//! Every step of a path is opened from the folder before it, and no link is followed at any step, so that what a program of the session
//! leaves in the tree (links, pipes, hard links) leads nowhere, not even while it is being changed.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::change::RepoPath;

/// Largest file that is read or written, in bytes.
pub(super) const LARGEST_FILE: usize = 8 << 20;
/// Longest path, in bytes.
const LONGEST_PATH: usize = 4096;
/// Most entries of one folder.
const MOST_ENTRIES: usize = 20_000;

/// What stands in a folder.
pub(super) struct Entry {
    /// Its name.
    pub(super) name: Vec<u8>,
    /// What it is, links not followed.
    pub(super) kind: FileType,
}

/// A tree that is worked on. Refusals are sentences for the model.
pub(super) struct Tree {
    root: OwnedFd,
    device: i128,
}

fn folder_flags() -> OFlags {
    // Break it: leave NOFOLLOW out of both flags; a link then leads out
    // (`agent::builtin_tree::a_link_out_of_the_tree_is_followed_for_nothing`).
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// A pipe is opened without waiting for somebody at its other end.
fn file_flags() -> OFlags {
    OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

impl Tree {
    /// Opens a tree.
    ///
    /// # Errors
    /// It is no folder.
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        let opened = rustix::fs::open(folder, folder_flags(), Mode::empty());
        let root = opened.map_err(|error| format!("the tree cannot be opened: {error}"))?;
        let status = rustix::fs::fstat(&root);
        let status = status.map_err(|error| format!("the tree cannot be looked at: {error}"))?;
        Ok(Self {
            root,
            device: i128::from(status.st_dev),
        })
    }

    /// A whole file.
    pub(super) fn read(&self, path: &RepoPath) -> Result<Vec<u8>, String> {
        let (folder, name) = self.folder_of(path, false)?;
        self.read_in(&folder, name, LARGEST_FILE)
            .map_err(|error| format!("{path}: {error}"))
    }

    /// Writes a whole file, and makes it and its folders where they are not there. Says whether the file was there.
    pub(super) fn write(&self, path: &RepoPath, content: &[u8]) -> Result<bool, String> {
        if content.len() > LARGEST_FILE {
            return Err(format!(
                "{path}: {} bytes are more than {LARGEST_FILE}",
                content.len()
            ));
        }
        let (folder, name) = self.folder_of(path, true)?;
        let told = |error: String| format!("{path}: {error}");
        let flags = OFlags::WRONLY | file_flags();
        let new = rustix::fs::openat(
            &folder,
            name,
            flags | OFlags::CREATE | OFlags::EXCL,
            Mode::from_raw_mode(0o644),
        );
        let (file, existed) = match new {
            Ok(file) => (file, false),
            Err(Errno::EXIST) => {
                let opened = rustix::fs::openat(&folder, name, flags, Mode::empty());
                let file = opened.map_err(|error| told(reason(error)))?;
                self.plain(&file).map_err(told)?;
                let emptied = rustix::fs::ftruncate(&file, 0);
                emptied.map_err(|error| told(reason(error)))?;
                (file, true)
            }
            Err(error) => return Err(told(reason(error))),
        };
        let written = std::fs::File::from(file).write_all(content);
        written.map_err(|error| told(error.to_string()))?;
        Ok(existed)
    }

    /// Removes a file or a link; what a link leads to stays.
    pub(super) fn remove(&self, path: &RepoPath) -> Result<(), String> {
        let (folder, name) = self.folder_of(path, false)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())
            .map_err(|error| format!("{path}: {}", reason(error)))
    }

    /// Opens a folder; none is the top.
    pub(super) fn folder(&self, path: Option<&RepoPath>) -> Result<OwnedFd, String> {
        let Some(path) = path else {
            return self.below(&self.root, b".").map_err(reason);
        };
        let (folder, name) = self.folder_of(path, false)?;
        self.below(&folder, name)
            .map_err(|error| format!("{path}: {}", reason(error)))
    }

    /// What stands in a folder, by name; not `.git`.
    pub(super) fn entries(folder: &OwnedFd) -> Result<Vec<Entry>, String> {
        let mut found = Vec::new();
        for entry in Dir::read_from(folder).map_err(reason)? {
            let entry = entry.map_err(reason)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || name.eq_ignore_ascii_case(b".git") {
                continue;
            }
            if found.len() >= MOST_ENTRIES {
                return Err(format!("a folder has more than {MOST_ENTRIES} entries"));
            }
            let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            found.push(Entry {
                name: name.to_vec(),
                kind: FileType::from_raw_mode(status.map_err(reason)?.st_mode),
            });
        }
        found.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(found)
    }

    /// Opens one folder in another.
    pub(super) fn below(&self, folder: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
        let below = rustix::fs::openat(folder, name, folder_flags(), Mode::empty())?;
        let status = rustix::fs::fstat(&below)?;
        // Another file system that is mounted inside is not the tree's.
        if i128::from(status.st_dev) == self.device {
            Ok(below)
        } else {
            Err(Errno::XDEV)
        }
    }

    /// A whole file of at most `largest` bytes in an open folder.
    pub(super) fn read_in(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        largest: usize,
    ) -> Result<Vec<u8>, String> {
        let flags = OFlags::RDONLY | file_flags();
        let file = rustix::fs::openat(folder, name, flags, Mode::empty()).map_err(reason)?;
        self.plain(&file)?;
        let mut content = Vec::new();
        // Break it: read without the limit; `agent::builtin_tree::what_is_too_large_is_refused_and_what_is_long_is_cut`.
        let limit = u64::try_from(largest).unwrap_or(u64::MAX);
        let read = std::fs::File::from(file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut content);
        read.map_err(|error| error.to_string())?;
        if content.len() > largest {
            return Err(format!("it has more than {largest} bytes"));
        }
        Ok(content)
    }

    /// Whether an open file is one that belongs to the tree alone.
    fn plain(&self, file: &OwnedFd) -> Result<Stat, String> {
        let status = rustix::fs::fstat(file).map_err(reason)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err("it is no file".to_owned());
        }
        // Break it: leave this out; `agent::builtin_tree::a_hard_link_to_a_file_outside_is_refused`.
        if status.st_nlink > 1 {
            return Err("it has several names (hard links), so that it may lie elsewhere too; remove it and write it anew".to_owned());
        }
        if i128::from(status.st_dev) != self.device {
            return Err("it lies on another file system".to_owned());
        }
        Ok(status)
    }

    /// The folder of a path, opened step by step, and the name in it.
    fn folder_of<'p>(&self, path: &'p RepoPath, make: bool) -> Result<(OwnedFd, &'p [u8]), String> {
        if path.as_bytes().len() > LONGEST_PATH {
            return Err(format!(
                "the path has more than {LONGEST_PATH} bytes; no file here has"
            ));
        }
        let told = |error| format!("{path}: {}", reason(error));
        let mut steps: Vec<&[u8]> = path.as_bytes().split(|byte| *byte == b'/').collect();
        let name = steps.pop().unwrap_or_default();
        let mut folder = self.below(&self.root, b".").map_err(told)?;
        for step in steps {
            if make {
                match rustix::fs::mkdirat(&folder, step, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(told(error)),
                }
            }
            folder = self.below(&folder, step).map_err(told)?;
        }
        Ok((folder, name))
    }
}

/// An error of the system in words for the model.
pub(super) fn reason(error: Errno) -> String {
    match error {
        Errno::NOENT => "there is no such file".to_owned(),
        Errno::LOOP => "it is a symbolic link, and links are not followed".to_owned(),
        Errno::NOTDIR => {
            "a folder is needed there, and there is none, or a link, and links are not followed"
                .to_owned()
        }
        Errno::ISDIR => "it is a folder".to_owned(),
        Errno::XDEV => "it lies on another file system".to_owned(),
        Errno::NXIO => "it is no file".to_owned(),
        Errno::NAMETOOLONG => "a name in it is too long".to_owned(),
        other => other.to_string(),
    }
}
