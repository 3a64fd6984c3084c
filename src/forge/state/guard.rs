//! The lock of a repository's state, which notices changes.

use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

use super::RepositoryState;

/// A repository's state, locked. Every look that could change it counts as a change, so that no kept answer outlives one.
pub(crate) struct StateGuard<'a>(pub(super) MutexGuard<'a, RepositoryState>);

impl Deref for StateGuard<'_> {
    type Target = RepositoryState;

    fn deref(&self) -> &RepositoryState {
        &self.0
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut RepositoryState {
        self.0.version += 1;
        &mut self.0
    }
}
