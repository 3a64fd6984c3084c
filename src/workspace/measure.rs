//! How large a change is.

use git2::{DiffOptions, Patch};

use crate::change::{ChangeSet, FileChange, Mode, Side};

use super::{RepositoryReader, WorkspaceError};

/// Changed paths that are measured.
const PATHS: usize = 5_000;
/// Bytes of one side of one file that are compared.
const SIDE_BYTES: u64 = 4 << 20;
/// Bytes of all sides together.
const TOTAL_BYTES: u64 = 64 << 20;

/// What was measured. `None` stands for "not measured", which a rule that needs it takes as a reason to ask a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measurement {
    /// Added plus removed lines of all files that are text; a submodule counts one line a side, a mere change of mode none.
    pub lines: Option<u64>,
    /// Number of binary files: those with a NUL byte anywhere in either side.
    pub binary: Option<u64>,
}

impl RepositoryReader {
    /// Counts lines and binary files of a change.
    ///
    /// Nothing is measured (both `None`) when the change has more than 5,000 paths, a file of more than 4 MiB, more than
    /// 64 MiB in all, or a blob that the repository does not hold.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn measure(&self, change: &ChangeSet) -> Result<Measurement, WorkspaceError> {
        if change.count() > PATHS || !self.measurable(change)? {
            return Ok(Measurement::default());
        }
        let (mut lines, mut binary) = (0, 0);
        for entry in change.entries() {
            match self.changed_lines(entry)? {
                Some(count) => lines += count,
                None => binary += 1,
            }
        }
        Ok(Measurement {
            lines: Some(lines),
            binary: Some(binary),
        })
    }

    pub(super) fn measurable(&self, change: &ChangeSet) -> Result<bool, WorkspaceError> {
        let mut total = 0_u64;
        let sides = change.entries().iter().flat_map(|e| [e.old, e.new]);
        for side in sides.filter(|side| holds_blob(*side)) {
            let size = match self.blob_size(side.oid) {
                Ok(size) => size,
                Err(WorkspaceError::Missing { .. }) => return Ok(false),
                Err(error) => return Err(error),
            };
            total = total.saturating_add(size);
            if size > SIDE_BYTES || total > TOTAL_BYTES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Added plus removed lines; `None` for a binary file.
    fn changed_lines(&self, entry: &FileChange) -> Result<Option<u64>, WorkspaceError> {
        if entry.old.oid == entry.new.oid {
            return Ok(Some(0));
        }
        let (old, new) = (self.side_text(entry.old)?, self.side_text(entry.new)?);
        if old.contains(&0) || new.contains(&0) {
            return Ok(None);
        }
        let doing = || WorkspaceError::git(format!("comparing the two sides of {}", entry.path));
        let mut options = DiffOptions::new();
        options.context_lines(0).force_text(true);
        let patch =
            Patch::from_buffers(&old, None, &new, None, Some(&mut options)).map_err(doing())?;
        let (_, added, removed) = patch.line_stats().map_err(doing())?;
        Ok(Some(u64::try_from(added + removed).unwrap_or(u64::MAX)))
    }

    pub(super) fn side_text(&self, side: Side) -> Result<Vec<u8>, WorkspaceError> {
        match side.mode {
            Mode::Absent => Ok(Vec::new()),
            Mode::Gitlink => Ok(format!("{}\n", side.oid).into_bytes()),
            Mode::Regular | Mode::Executable | Mode::Symlink => {
                self.read_blob(side.oid, SIDE_BYTES)
            }
        }
    }
}

const fn holds_blob(side: Side) -> bool {
    matches!(side.mode, Mode::Regular | Mode::Executable | Mode::Symlink)
}
