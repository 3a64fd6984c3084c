//! Commits of caretaker's own records, such as the log's branch. They hold nothing of a project's code.

use std::collections::BTreeMap;

use git2::{Signature, Time};

use crate::change::{Mode, Oid, RepoPath, Side};
use crate::clock::Millis;

use super::repository::{cooked, raw};
use super::{Identity, TrustedRepository, WorkspaceError};

/// A commit of records.
#[derive(Debug)]
pub struct RecordCommit<'a> {
    /// The commit before it.
    pub parent: Option<Oid>,
    /// Every file of it, by the object that holds its bytes.
    pub files: &'a BTreeMap<RepoPath, Oid>,
    /// Whom it is from.
    pub author: &'a Identity,
    /// Its message.
    pub message: &'a str,
    /// When; kept in whole seconds, UTC.
    pub time: Millis,
}

impl TrustedRepository {
    /// Writes the bytes of a record unless they are there, and gives their object.
    ///
    /// # Errors
    /// The object cannot be written.
    pub fn keep_record(&self, bytes: &[u8]) -> Result<Oid, WorkspaceError> {
        self.write_blob(bytes)
    }

    /// Writes a commit of records. No branch moves, and none of a fix ever does: those need what the gate cleared.
    ///
    /// # Errors
    /// The parent is missing, a path is both a file and a directory, or the objects cannot be written.
    pub fn record(&self, record: &RecordCommit<'_>) -> Result<Oid, WorkspaceError> {
        let doing = || WorkspaceError::git("writing a commit of records");
        let side = |oid: &Oid| Side {
            mode: Mode::Regular,
            oid: *oid,
        };
        let files = record
            .files
            .iter()
            .map(|(path, oid)| (path.clone(), side(oid)));
        let tree = self.write_tree(&files.collect())?;
        let tree = self.inner.find_tree(raw(tree)?).map_err(doing())?;
        let seconds = Time::new(record.time.0.div_euclid(1000), 0);
        let author = record.author;
        let signature = Signature::new(&author.name, &author.email, &seconds).map_err(doing())?;
        let parent = match record.parent {
            Some(parent) => Some(self.inner.find_commit(raw(parent)?).map_err(doing())?),
            None => None,
        };
        let parents: Vec<_> = parent.iter().collect();
        let written = self
            .inner
            .commit(
                None,
                &signature,
                &signature,
                record.message,
                &tree,
                &parents,
            )
            .map_err(doing())?;
        cooked(written)
    }
}
