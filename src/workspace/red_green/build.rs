//! Putting the trees of a plan together.

use std::collections::BTreeMap;

use crate::change::{Mode, Oid, RepoPath, Side};

use super::UnprovenReason;
use super::plan::{Fault, Planner, fault};
use super::rust_items::join;
use crate::workspace::WorkspaceError;

type Files = BTreeMap<RepoPath, Side>;

impl Planner<'_> {
    /// Writes red, and the base's tests on the fix.
    pub(super) fn write_trees(&self) -> Result<(Oid, Oid), Fault> {
        let red = self.written(&self.red()?, "the fix's tests on the base")?;
        let base_on_fix = self.written(&self.base_on_fix()?, "the base's tests on the fix")?;
        Ok((red, base_on_fix))
    }

    /// The base, with the changed test files and test items of the fix.
    fn red(&self) -> Result<Files, WorkspaceError> {
        let mut files = self.base.clone();
        for entry in &self.tests {
            put(&mut files, &entry.path, entry.new);
        }
        for (path, inline) in &self.inline {
            let both = self.base.get(path).zip(self.fix.get(path));
            if let Some((side, _)) = both
                && inline.base.tests != inline.fix.tests
            {
                let source = join(&inline.base.production, &inline.fix.tests);
                put(&mut files, path, self.rewritten(*side, &source)?);
            }
        }
        Ok(files)
    }

    /// The fix, with exactly the test files and test items of the base.
    fn base_on_fix(&self) -> Result<Files, WorkspaceError> {
        let mut files = self.fix.clone();
        // Also those that the fix adds go: a new `conftest.py` or helper could keep the base's tests from running.
        files.retain(|path, _| !self.files.contains(path));
        for entry in &self.tests {
            put(&mut files, &entry.path, entry.old);
        }
        let of_base = self.base.iter();
        for (path, side) in of_base.filter(|(path, _)| self.files.contains(path)) {
            put(&mut files, path, *side);
        }
        for (path, inline) in &self.inline {
            if let Some(side) = self.fix.get(path)
                && inline.base.tests != inline.fix.tests
            {
                let source = join(&inline.fix.production, &inline.base.tests);
                put(&mut files, path, self.rewritten(*side, &source)?);
            }
        }
        Ok(files)
    }

    fn rewritten(&self, side: Side, source: &str) -> Result<Side, WorkspaceError> {
        Ok(Side {
            mode: side.mode,
            oid: self.repository.write_blob(source.as_bytes())?,
        })
    }

    fn written(&self, files: &Files, what: &str) -> Result<Oid, Fault> {
        self.repository
            .write_tree(files)
            .map_err(|error| match error {
                WorkspaceError::Unwritable { reason, .. } => fault(
                    UnprovenReason::TreesNotBuildable,
                    &format!("{what}: {reason}"),
                ),
                other => Fault::Workspace(other),
            })
    }
}

fn put(files: &mut Files, path: &RepoPath, side: Side) {
    if side.mode == Mode::Absent {
        files.remove(path);
    } else {
        files.insert(path.clone(), side);
    }
}
