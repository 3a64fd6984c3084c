//! The content of a proposed change: which paths get which mode and object, and the digest over them.
//!
//! Format `caretaker/change-set/v1`: entries are rename-free, cover blobs, symbolic links and submodule links only, and are
//! sorted by path bytes. See `docs/ledger.md`.

mod digest;
mod document;
mod hexadecimal;
mod oid;
mod path;

pub use digest::{ChangeDigest, Sha256Digest};
pub use document::{ChangeDocument, ChangeDocumentEntry};
pub(crate) use hexadecimal::read as read_text;
pub use oid::{ObjectFormat, Oid, OidError};
pub use path::{PathError, RepoPath};

use serde::{Deserialize, Serialize};

/// The name under which the digest's format is signed.
pub const CHANGE_SET_ALGORITHM: &str = "caretaker/change-set/v1";

/// What a tree entry is; the six-digit octal word that git stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// There is no entry on this side.
    #[serde(rename = "000000")]
    Absent,
    /// An ordinary file.
    #[serde(rename = "100644")]
    Regular,
    /// A file with the executable bit.
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link.
    #[serde(rename = "120000")]
    Symlink,
    /// A submodule: the object is a commit of another repository.
    #[serde(rename = "160000")]
    Gitlink,
}

impl Mode {
    /// The six ASCII digits.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "000000",
            Self::Regular => "100644",
            Self::Executable => "100755",
            Self::Symlink => "120000",
            Self::Gitlink => "160000",
        }
    }

    /// The numeric mode, as git libraries use it.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Absent => 0,
            Self::Regular => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Symlink => 0o120_000,
            Self::Gitlink => 0o160_000,
        }
    }

    /// The mode of a tree entry that can be part of a change set.
    ///
    /// # Errors
    /// A tree (`040000`) or a word git does not write, such as the historical `100664`.
    pub fn from_bits(bits: u32) -> Result<Self, ChangeError> {
        match bits {
            0 => Ok(Self::Absent),
            0o100_644 => Ok(Self::Regular),
            0o100_755 => Ok(Self::Executable),
            0o120_000 => Ok(Self::Symlink),
            0o160_000 => Ok(Self::Gitlink),
            _ => Err(ChangeError::Mode(format!("{bits:06o}"))),
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = ChangeError;

    fn from_str(text: &str) -> Result<Self, ChangeError> {
        [
            Self::Absent,
            Self::Regular,
            Self::Executable,
            Self::Symlink,
            Self::Gitlink,
        ]
        .into_iter()
        .find(|mode| mode.as_str() == text)
        .ok_or_else(|| ChangeError::Mode(text.chars().take(20).collect()))
    }
}

/// One side of an entry: mode and object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side {
    /// What the entry is.
    pub mode: Mode,
    /// Its object; all zeros when absent.
    pub oid: Oid,
}

impl Side {
    /// The side on which the path does not exist.
    pub const fn absent(format: ObjectFormat) -> Self {
        Self {
            mode: Mode::Absent,
            oid: Oid::zero(format),
        }
    }
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileChange {
    /// The path.
    pub path: RepoPath,
    /// What was there.
    pub old: Side,
    /// What will be there.
    pub new: Side,
}

/// Why something is not a change set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// A mode other than the five.
    #[error(
        "reading a change set: mode {0:?} is not one of 000000, 100644, 100755, 120000, 160000"
    )]
    Mode(String),
    /// An object id that is not complete.
    #[error("reading a change set: {0}")]
    Oid(#[from] OidError),
    /// A path that cannot exist in a tree.
    #[error("reading a change set: {0}")]
    Path(#[from] PathError),
    /// The same path twice.
    #[error("building a change set: {0} is listed twice; a path has one entry")]
    Duplicate(RepoPath),
    /// Both sides equal.
    #[error("building a change set: {0} is listed although it does not change")]
    Unchanged(RepoPath),
    /// Absent mode with an object, or the reverse, or ids of two object formats.
    #[error(
        "building a change set: {0} has a side whose mode and object id do not fit each other or the object format"
    )]
    Side(RepoPath),
    /// A stated count or digest that does not match the entries.
    #[error(
        "reading a change set: the document says {member} {stated}, its entries give {computed}"
    )]
    Stated {
        /// Which member disagrees.
        member: &'static str,
        /// What the document says.
        stated: String,
        /// What its entries give.
        computed: String,
    },
}

/// All changed paths between two trees, in canonical order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    format: ObjectFormat,
    entries: Vec<FileChange>,
}

impl ChangeSet {
    /// Sorts and checks entries.
    ///
    /// # Errors
    /// A path listed twice, an entry that does not change, sides that contradict themselves.
    pub fn new(format: ObjectFormat, mut entries: Vec<FileChange>) -> Result<Self, ChangeError> {
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        if let Some([a, _]) = entries
            .windows(2)
            .find(|pair| matches!(pair, [a, b] if a.path == b.path))
            .and_then(|pair| pair.first_chunk::<2>())
        {
            return Err(ChangeError::Duplicate(a.path.clone()));
        }
        for entry in &entries {
            let fits = |side: &Side| {
                side.oid.format() == format && (side.mode == Mode::Absent) == side.oid.is_zero()
            };
            if !fits(&entry.old) || !fits(&entry.new) {
                return Err(ChangeError::Side(entry.path.clone()));
            }
            if entry.old == entry.new {
                return Err(ChangeError::Unchanged(entry.path.clone()));
            }
        }
        Ok(Self { format, entries })
    }

    /// The object format of every id in the set.
    pub const fn format(&self) -> ObjectFormat {
        self.format
    }

    /// The entries, sorted by path bytes.
    pub fn entries(&self) -> &[FileChange] {
        &self.entries
    }

    /// The changed paths, in order.
    pub fn paths(&self) -> impl Iterator<Item = &RepoPath> {
        self.entries.iter().map(|entry| &entry.path)
    }

    /// Number of entries.
    pub const fn count(&self) -> usize {
        self.entries.len()
    }

    /// The content address of the change.
    pub fn digest(&self) -> ChangeDigest {
        digest::compute(self)
    }
}
