//! Names as they are written on git's command line, and what is read back.

use std::fmt;
use std::str::FromStr;

use crate::change::Oid;

use super::process::Finished;
use super::{GitError, Merged};

/// Longest ref name, in bytes.
const LONGEST_NAME: usize = 500;
/// Most conflicting paths that are told.
const MOST_CONFLICTS: usize = 100;

/// The full name of a ref, such as `refs/heads/main` (git-check-ref-format(1)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefName(String);

impl FromStr for RefName {
    type Err = GitError;

    fn from_str(name: &str) -> Result<Self, GitError> {
        let refuse = |reason| {
            Err(GitError::BadRef {
                name: name.chars().take(80).collect(),
                reason,
            })
        };
        if !name.starts_with("refs/") || name.len() > LONGEST_NAME {
            return refuse("it is not a full name of at most 500 bytes beginning with refs/");
        }
        let odd = |character: char| character.is_control() || " ~^:?*[\\\u{7f}".contains(character);
        if name.contains(odd) || name.contains("..") || name.contains("@{") {
            return refuse("it contains a character or sequence that git does not allow");
        }
        let bad = |part: &str| {
            let unnamed = part.is_empty() || part.starts_with('.');
            unnamed || part.ends_with('.') || part.strip_suffix(".lock").is_some()
        };
        if name.split('/').count() < 3 || name.split('/').any(bad) {
            return refuse(
                "one of its parts is missing, begins or ends with a dot, or ends with .lock",
            );
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What to fetch, and the ref of our own that is set to it whatever it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refspec {
    /// A ref of the remote.
    Ref {
        /// The remote's ref.
        from: RefName,
        /// Ours.
        to: RefName,
    },
    /// A commit by its id, as far as the remote gives it out.
    Commit {
        /// The commit.
        from: Oid,
        /// Our ref.
        to: RefName,
    },
}

impl fmt::Display for Refspec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ref { from, to } => write!(formatter, "+{from}:{to}"),
            Self::Commit { from, to } => write!(formatter, "+{from}:{to}"),
        }
    }
}

/// One ref of the remote and what it is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// The remote's ref.
    pub reference: RefName,
    /// The commit it is to point to; `None` deletes it.
    pub commit: Option<Oid>,
    /// What it must point to for the push to happen; `None` means that it must not exist.
    pub expected: Option<Oid>,
}

impl Push {
    pub(super) fn lease(&self) -> String {
        format!(
            "--force-with-lease={}:{}",
            self.reference,
            written(self.expected.as_ref())
        )
    }

    pub(super) fn refspec(&self) -> String {
        format!("{}:{}", written(self.commit.as_ref()), self.reference)
    }
}

fn written(oid: Option<&Oid>) -> String {
    oid.map(ToString::to_string).unwrap_or_default()
}

/// Reads what `merge-tree -z --name-only` printed: the tree, then the conflicting paths, each ended by NUL.
pub(super) fn merged(finished: &Finished) -> Option<Merged> {
    let mut words = finished.stdout.split(|byte| *byte == 0);
    let tree = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    match finished.code {
        Some(0) => Some(Merged::Tree(tree)),
        Some(1) => {
            let paths = words
                .take_while(|path| !path.is_empty())
                .take(MOST_CONFLICTS);
            Some(Merged::Conflict(paths.map(<[u8]>::to_vec).collect()))
        }
        _ => None,
    }
}
