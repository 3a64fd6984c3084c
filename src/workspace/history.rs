//! The history of a branch, for audits.

use super::repository::{cooked, raw};
use super::{RepositoryReader, WorkspaceError};
use crate::change::Oid;

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitRecord {
    /// The commit.
    pub commit: Oid,
    /// Its message; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// When it was made, in seconds since 1970, as its committer says.
    pub time: i64,
}

impl RepositoryReader {
    /// A commit and those before it, each the first parent of the one after it, newest first, at most `most`.
    ///
    /// # Errors
    /// A commit is missing: the clone is shallow, or it was changed.
    pub fn history(&self, tip: Oid, most: usize) -> Result<Vec<CommitRecord>, WorkspaceError> {
        let mut records = Vec::new();
        let mut next = Some(tip);
        while let Some(commit) = next.filter(|_| records.len() < most) {
            let found = self.inner.find_commit(raw(commit)?);
            let found = found.map_err(WorkspaceError::git(format!("reading commit {commit}")))?;
            records.push(CommitRecord {
                commit,
                message: String::from_utf8_lossy(found.message_raw_bytes()).into_owned(),
                time: found.time().seconds(),
            });
            next = found.parent_ids().next().map(cooked).transpose()?;
        }
        Ok(records)
    }
}
