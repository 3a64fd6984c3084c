//! Files of a scratch tree whose content nobody vouches for.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::change::RepoPath;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A scratch tree. No symbolic link in it is followed: one could lead anywhere this process may write.
pub(super) struct Tree<'t> {
    root: &'t Path,
}

impl<'t> Tree<'t> {
    pub(super) const fn at(root: &'t Path) -> Self {
        Self { root }
    }

    /// The text of a file.
    pub(super) fn read(&self, path: &RepoPath) -> Result<String, String> {
        let place = self.check(path)?;
        let size = fs::metadata(&place)
            .map_err(|error| format!("{path} cannot be read: {error}"))?
            .len();
        if size > LARGEST {
            return Err(format!("{path} has {size} bytes, more than {LARGEST}"));
        }
        fs::read_to_string(&place).map_err(|error| format!("{path} cannot be read: {error}"))
    }

    /// Writes a file and the directories above it.
    pub(super) fn write(&self, path: &RepoPath, content: &str) -> Result<(), String> {
        let place = self.check(path)?;
        let written = match place.parent() {
            Some(folder) => fs::create_dir_all(folder).and_then(|()| fs::write(&place, content)),
            None => fs::write(&place, content),
        };
        written.map_err(|error| format!("{path} cannot be written: {error}"))
    }

    /// Where `path` lies on disk, if no component that exists is anything but a directory and, last, an ordinary file.
    pub(super) fn check(&self, path: &RepoPath) -> Result<PathBuf, String> {
        let text = path
            .as_text()
            .ok_or_else(|| format!("{path} is not UTF-8"))?;
        let mut place = self.root.to_owned();
        let mut components = text.split('/').peekable();
        while let Some(component) = components.next() {
            place.push(component);
            let kind = match fs::symlink_metadata(&place) {
                Ok(metadata) => metadata.file_type(),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{path} cannot be looked at: {error}")),
            };
            let expected = if components.peek().is_some() {
                kind.is_dir()
            } else {
                kind.is_file()
            };
            if !expected {
                return Err(format!(
                    "{path} leads through a link or something else that is neither a directory nor an ordinary file"
                ));
            }
        }
        Ok(place)
    }
}
