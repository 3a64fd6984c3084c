//! A change as people read it.

use git2::{DiffOptions, Patch};

use crate::change::{ChangeSet, FileChange};

use super::{RepositoryReader, WorkspaceError};

impl RepositoryReader {
    /// The change as a unified diff, for people: what counts are the entries and their ids. At most `cap` bytes; what is left
    /// out is said, and so are binary files and changes too large to be measured.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn patch(&self, change: &ChangeSet, cap: usize) -> Result<String, WorkspaceError> {
        if !self.measurable(change)? {
            return Ok("The change is too large to be shown here.\n".to_owned());
        }
        let mut text = String::new();
        for (shown, entry) in change.entries().iter().enumerate() {
            let part = self.patch_of(entry)?;
            if text.len() + part.len() > cap {
                let left = change.count() - shown;
                return Ok(format!(
                    "{text}{left} of {} files are not shown here.
",
                    change.count()
                ));
            }
            text.push_str(&part);
        }
        Ok(text)
    }

    fn patch_of(&self, entry: &FileChange) -> Result<String, WorkspaceError> {
        let (old, new) = (self.side_text(entry.old)?, self.side_text(entry.new)?);
        let modes = (entry.old.mode.as_str(), entry.new.mode.as_str());
        let mut text = format!("# {} ({} to {})\n", entry.path, modes.0, modes.1);
        if old.contains(&0) || new.contains(&0) {
            text.push_str("binary\n");
            return Ok(text);
        }
        let doing = || WorkspaceError::git(format!("comparing the two sides of {}", entry.path));
        let mut options = DiffOptions::new();
        options.force_text(true);
        let mut patch =
            Patch::from_buffers(&old, None, &new, None, Some(&mut options)).map_err(doing())?;
        patch
            .print(&mut |_, _, line| {
                // Git's own header names the buffers, which have no names; ours stands above.
                let mark = match line.origin() {
                    mark @ ('+' | '-' | ' ') => Some(mark),
                    'F' => return true,
                    _ => None,
                };
                text.extend(mark);
                text.push_str(&String::from_utf8_lossy(line.content()));
                if !text.ends_with('\n') {
                    text.push('\n');
                }
                true
            })
            .map_err(doing())?;
        Ok(text)
    }
}
