//! Names for commits and trees, for commands that people type.

use git2::{ErrorCode, ObjectType, Reference};

use crate::change::{ChangeSet, Oid};

use super::repository::{cooked, raw};
use super::{RepositoryReader, WorkspaceError};

/// Where short names are looked for. Nothing else counts: no HEAD, no reflog, no abbreviated ids, no revision syntax.
const NAMESPACES: [&str; 3] = ["refs/heads/", "refs/tags/", "refs/remotes/"];
/// Tags of tags that are followed.
const TAG_CHAIN: usize = 10;

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved {
    /// A commit.
    Commit(Oid),
    /// A tree without history.
    Tree(Oid),
}

impl Resolved {
    /// The object's id.
    pub const fn oid(self) -> Oid {
        match self {
            Self::Commit(oid) | Self::Tree(oid) => oid,
        }
    }
}

impl RepositoryReader {
    /// Resolves a branch, tag, remote branch or complete object id.
    ///
    /// # Errors
    /// The name is unknown, malformed, or stands for different objects as branch, tag and remote branch.
    pub fn resolve(&self, name: &str) -> Result<Resolved, WorkspaceError> {
        if let Ok(oid) = name.parse::<Oid>() {
            return self.peel(name, oid);
        }
        let refuse = |reason: String| Err(refused(name, reason));
        let whole = NAMESPACES.iter().any(|space| name.starts_with(space));
        let mut found: Vec<(String, Oid)> = Vec::new();
        let candidates = if whole {
            vec![name.to_owned()]
        } else {
            NAMESPACES
                .iter()
                .map(|space| format!("{space}{name}"))
                .collect()
        };
        for full in candidates {
            if let Some(oid) = self.reference(&full)? {
                found.push((full, oid));
            }
        }
        match found.as_slice() {
            [] => refuse(missing_words(name)),
            [(_, oid), others @ ..] if others.iter().all(|(_, other)| other == oid) => {
                self.peel(name, *oid)
            }
            several => {
                let names: Vec<&str> = several.iter().map(|(full, _)| full.as_str()).collect();
                refuse(format!("it is ambiguous; say one of {}", names.join(", ")))
            }
        }
    }

    /// What a change from one name to another is: from the merge base of two commits to the second one, or, when either name
    /// stands for a tree, between the two trees directly.
    ///
    /// # Errors
    /// As [`Self::resolve`], [`Self::merge_base`] and [`Self::change_set`].
    pub fn change_between(&self, base: &str, head: &str) -> Result<ChangeSet, WorkspaceError> {
        match (self.resolve(base)?, self.resolve(head)?) {
            (Resolved::Commit(base), Resolved::Commit(head)) => {
                self.change_set(self.merge_base(base, head)?, head)
            }
            (base, head) => self.change_set(base.oid(), head.oid()),
        }
    }

    /// The object that a full reference name (`refs/…`) points to, tags not followed; `None` when there is no such reference.
    ///
    /// # Errors
    /// A malformed name, or a reference file that cannot be read.
    pub fn reference(&self, full_name: &str) -> Result<Option<Oid>, WorkspaceError> {
        if !Reference::is_valid_name(full_name) {
            return Err(refused(
                full_name,
                "git allows no such reference name; name a branch, a tag or a complete object id"
                    .to_owned(),
            ));
        }
        match self.inner.refname_to_id(full_name) {
            Ok(oid) => cooked(oid).map(Some),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(WorkspaceError::git(format!("reading {full_name}"))(error)),
        }
    }

    fn peel(&self, name: &str, oid: Oid) -> Result<Resolved, WorkspaceError> {
        let mut oid = oid;
        for _ in 0..TAG_CHAIN {
            match self.kind_and_size(oid, "commit or tree")?.0 {
                ObjectType::Commit => return Ok(Resolved::Commit(oid)),
                ObjectType::Tree => return Ok(Resolved::Tree(oid)),
                ObjectType::Tag => {
                    let tag = self
                        .inner
                        .find_tag(raw(oid)?)
                        .map_err(WorkspaceError::git(format!("reading tag {oid}")))?;
                    oid = cooked(tag.target_id())?;
                }
                _ => {
                    return Err(refused(
                        name,
                        "it is a file's content; name a commit, a tree, a branch or a tag"
                            .to_owned(),
                    ));
                }
            }
        }
        Err(refused(
            name,
            format!("it is a chain of more than {TAG_CHAIN} tags; name the commit"),
        ))
    }
}

fn missing_words(name: &str) -> String {
    let hexadecimal = name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if hexadecimal {
        "no branch or tag has this name, and abbreviated object ids are not accepted; give all 40 digits in lower case"
            .to_owned()
    } else {
        "no branch, tag or remote branch has this name; give one, or a complete object id (git rev-parse prints it)"
            .to_owned()
    }
}

fn refused(name: &str, reason: String) -> WorkspaceError {
    WorkspaceError::Name {
        name: name.chars().take(200).collect(),
        reason,
    }
}
