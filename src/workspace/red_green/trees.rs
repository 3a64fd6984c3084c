//! The three trees of a plan as directories.

use std::path::{Path, PathBuf};

use super::Plan;
use crate::workspace::{RepositoryReader, TreeLimits, WorkspaceError};

/// Where the trees of a plan are checked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchTrees {
    /// The base with the fix's tests.
    pub red: PathBuf,
    /// The fix.
    pub green: PathBuf,
    /// The fix with the base's tests.
    pub base_on_fix: PathBuf,
}

impl Plan {
    /// Checks out the three trees into directories of these names below `place`.
    ///
    /// # Errors
    /// As [`RepositoryReader::checkout`].
    pub fn check_out(
        &self,
        repository: &RepositoryReader,
        place: &Path,
        limits: &TreeLimits,
    ) -> Result<ScratchTrees, WorkspaceError> {
        let trees = ScratchTrees {
            red: place.join("red"),
            green: place.join("green"),
            base_on_fix: place.join("base-on-fix"),
        };
        repository.checkout(self.red, &trees.red, limits)?;
        repository.checkout(self.green, &trees.green, limits)?;
        repository.checkout(self.base_on_fix, &trees.base_on_fix, limits)?;
        Ok(trees)
    }
}
