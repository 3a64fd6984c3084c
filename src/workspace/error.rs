//! What can go wrong with trusted repositories and scratch trees.

use std::path::{Path, PathBuf};

use crate::change::{ChangeError, Oid, PathError, RepoPath};

/// Why an operation on a repository or a scratch tree was not done. Nothing is half-written when one is returned, except where
/// a variant says so.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A directory that cannot be used as a repository.
    #[error("opening the git repository {path}: {reason}", path = .path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why, and the mend.
        reason: String,
    },
    /// An object that the repository does not hold.
    #[error(
        "reading {wanted} {oid}: the repository does not hold it; fetch it first, or correct the id"
    )]
    Missing {
        /// The object.
        oid: Oid,
        /// What it was expected to be.
        wanted: &'static str,
    },
    /// An object of another kind than needed.
    #[error("reading {oid} as {wanted}: it is a {found}; name {wanted} instead")]
    Kind {
        /// The object.
        oid: Oid,
        /// What it was expected to be.
        wanted: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A tree object that git itself would not write.
    #[error("reading tree {tree}: {reason}; such a tree is refused, have its author write it anew")]
    OddTree {
        /// The tree.
        tree: Oid,
        /// What is odd about it.
        reason: String,
    },
    /// Something larger than what is handled.
    #[error("{doing}: {what} is more than the limit of {limit}; {mend}")]
    TooLarge {
        /// What was being done.
        doing: &'static str,
        /// What is too large.
        what: String,
        /// The limit, with its unit.
        limit: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// Two commits without a common ancestor, with several, or in a history that is cut off.
    #[error("finding the merge base of {one} and {two}: {reason}")]
    MergeBase {
        /// One side.
        one: Oid,
        /// The other.
        two: Oid,
        /// Why there is not exactly one.
        reason: String,
    },
    /// A path that is not an ordinary file where one is needed.
    #[error("reading {path} at {commit}: it is {found}, not a file; name a file")]
    NotAFile {
        /// The path.
        path: RepoPath,
        /// The commit or tree.
        commit: Oid,
        /// What is there.
        found: &'static str,
    },
    /// Something in a scratch tree that must not become part of a change.
    #[error("reading the scratch tree: {path}: {reason}")]
    Scratch {
        /// The path, printable.
        path: String,
        /// What is wrong with it, and the mend.
        reason: String,
    },
    /// A name that resolves to nothing, or to more than one thing.
    #[error("resolving {name:?}: {reason}")]
    Name {
        /// What was asked for.
        name: String,
        /// Why, and the mend.
        reason: String,
    },
    /// An identity, message or branch name that a commit or ref cannot carry.
    #[error("writing {what}: {reason}")]
    Unwritable {
        /// What was to be written.
        what: String,
        /// Why it is refused, and the mend.
        reason: String,
    },
    /// A path that cannot exist in a tree.
    #[error("reading a tree: {0}")]
    Path(#[from] PathError),
    /// Entries that are not a change set.
    #[error("comparing two trees: {0}")]
    Change(#[from] ChangeError),
    /// The git library failed.
    #[error("{doing}: git says: {reason}")]
    Git {
        /// What was being done.
        doing: String,
        /// Its words.
        reason: String,
    },
    /// The operating system failed.
    #[error("{doing} {path}: {source}", path = .path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl WorkspaceError {
    pub(super) fn git(doing: impl Into<String>) -> impl FnOnce(git2::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Git {
            doing,
            reason: error.message().to_owned(),
        }
    }

    pub(super) fn io<E: Into<std::io::Error>>(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source: source.into(),
        }
    }
}
