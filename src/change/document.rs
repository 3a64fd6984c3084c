//! The JSON form of a change set, printed by `change digest` and read by `gate check --changes`.

use serde::{Deserialize, Serialize};

use super::{
    ChangeDigest, ChangeError, ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side,
};

/// A change set as JSON. `path` is null when the name is not UTF-8; `path_hex` always carries the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDocument {
    /// Git's name of the object format.
    pub object_format: ObjectFormat,
    /// Number of entries.
    pub count: usize,
    /// The change digest.
    pub digest: ChangeDigest,
    /// The entries in canonical order.
    pub entries: Vec<ChangeDocumentEntry>,
}

/// One entry of a [`ChangeDocument`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeDocumentEntry {
    /// The path when it is UTF-8.
    pub path: Option<String>,
    /// The path's bytes in hexadecimal.
    pub path_hex: String,
    /// Mode before.
    pub old_mode: Mode,
    /// Mode after.
    pub new_mode: Mode,
    /// Object before.
    pub old_oid: Oid,
    /// Object after.
    pub new_oid: Oid,
}

impl From<&ChangeSet> for ChangeDocument {
    fn from(set: &ChangeSet) -> Self {
        let entries = set.entries().iter().map(|entry| ChangeDocumentEntry {
            path: entry.path.as_text().map(str::to_owned),
            path_hex: hex::encode(entry.path.as_bytes()),
            old_mode: entry.old.mode,
            new_mode: entry.new.mode,
            old_oid: entry.old.oid,
            new_oid: entry.new.oid,
        });
        Self {
            object_format: set.format(),
            count: set.count(),
            digest: set.digest(),
            entries: entries.collect(),
        }
    }
}

impl TryFrom<&ChangeDocument> for ChangeSet {
    type Error = ChangeError;

    /// Rebuilds the set and checks the stated count and digest.
    fn try_from(document: &ChangeDocument) -> Result<Self, ChangeError> {
        let mut entries = Vec::with_capacity(document.entries.len());
        for entry in &document.entries {
            let bytes = hex::decode(&entry.path_hex).map_err(|_| ChangeError::Stated {
                member: "path_hex",
                stated: entry.path_hex.clone(),
                computed: "not hexadecimal".to_owned(),
            })?;
            let path = RepoPath::from_bytes(&bytes)?;
            if entry.path.as_deref() != path.as_text() {
                return Err(ChangeError::Stated {
                    member: "path",
                    stated: format!("{:?}", entry.path),
                    computed: path.to_string(),
                });
            }
            let old = Side {
                mode: entry.old_mode,
                oid: entry.old_oid,
            };
            let new = Side {
                mode: entry.new_mode,
                oid: entry.new_oid,
            };
            entries.push(FileChange { path, old, new });
        }
        let set = Self::new(document.object_format, entries)?;
        let stated = |member, stated: String, computed: String| {
            Err(ChangeError::Stated {
                member,
                stated,
                computed,
            })
        };
        if set.count() != document.count {
            return stated("count", document.count.to_string(), set.count().to_string());
        }
        if set.digest() != document.digest {
            return stated(
                "digest",
                document.digest.to_string(),
                set.digest().to_string(),
            );
        }
        Ok(set)
    }
}
