//! Making objects and moving references.

use super::super::error::ForgeError;
use super::{Git, ObjectId};

/// What becomes of one file in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEdit {
    /// The file gets this mode and content. Modes are git's: `100644`, `100755`, `120000` (content: the link's target) and
    /// `160000` (content: the forty digits of the submodule's commit).
    Write {
        /// Six octal digits.
        mode: u32,
        /// The new content.
        content: Vec<u8>,
    },
    /// The file goes away.
    Remove,
}

impl FileEdit {
    /// An ordinary file.
    pub fn file(content: impl Into<Vec<u8>>) -> Self {
        Self::Write {
            mode: 0o100_644,
            content: content.into(),
        }
    }
}

/// A name and address for commits.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) email: String,
}

/// Everything a commit object says.
pub(crate) struct NewCommit<'a> {
    pub(crate) tree: &'a ObjectId,
    pub(crate) parents: &'a [ObjectId],
    pub(crate) author: &'a Person,
    /// Seconds since 1970.
    pub(crate) authored: u64,
    pub(crate) committer: &'a Person,
    /// Seconds since 1970.
    pub(crate) committed: u64,
    pub(crate) message: &'a str,
}

/// Where commits are built before a real reference takes them over.
const STAGING: &str = "refs/forge/staging";

impl Git {
    /// A commit with the files of its first parent and these edits; no reference moves.
    pub(crate) fn commit_edits(
        &self,
        parents: &[ObjectId],
        edits: &[(String, FileEdit)],
        person: &Person,
        seconds: u64,
        message: &str,
    ) -> Result<ObjectId, ForgeError> {
        let mut stream = format!("commit {STAGING}\nmark :1\n").into_bytes();
        for role in ["author", "committer"] {
            stream.extend(
                format!(
                    "{role} {} <{}> {seconds} +0000\n",
                    person.name, person.email
                )
                .bytes(),
            );
        }
        push_data(&mut stream, message.as_bytes());
        for (index, parent) in parents.iter().enumerate() {
            let word = if index == 0 { "from" } else { "merge" };
            stream.extend(format!("{word} {parent}\n").bytes());
        }
        for (path, edit) in edits {
            push_edit(&mut stream, path, edit)?;
        }
        stream.extend(
            format!(
                "\nget-mark :1\nreset {STAGING}\nfrom {}\n\n",
                ObjectId::zero()
            )
            .bytes(),
        );
        let output = self.run_with(
            &["fast-import", "--quiet", "--force", "--date-format=raw"],
            &stream,
        )?;
        let unreadable = || ForgeError::GitOutput {
            command: "fast-import",
            detail: "the new commit's id was expected".to_owned(),
        };
        String::from_utf8_lossy(&output)
            .lines()
            .next()
            .and_then(ObjectId::parse)
            .ok_or_else(unreadable)
    }

    /// A commit object of a tree that exists.
    pub(crate) fn commit_tree(&self, commit: &NewCommit<'_>) -> Result<ObjectId, ForgeError> {
        let signed = |role: &str, person: &Person, seconds: u64| {
            format!("{role} {} <{}> {seconds} +0000", person.name, person.email)
        };
        let mut lines = vec![format!("tree {}", commit.tree)];
        lines.extend(
            commit
                .parents
                .iter()
                .map(|parent| format!("parent {parent}")),
        );
        lines.push(signed("author", commit.author, commit.authored));
        lines.push(signed("committer", commit.committer, commit.committed));
        lines.push(String::new());
        lines.push(format!("{}\n", commit.message.trim_end_matches('\n')));
        let object = lines.join("\n");
        let output = self.run_with(
            &["hash-object", "-t", "commit", "-w", "--stdin"],
            object.as_bytes(),
        )?;
        let unreadable = || ForgeError::GitOutput {
            command: "hash-object",
            detail: "the new commit's id was expected".to_owned(),
        };
        ObjectId::parse(String::from_utf8_lossy(&output).trim()).ok_or_else(unreadable)
    }

    /// The tree that merging two commits gives, `None` on a conflict.
    pub(crate) fn merge_tree(
        &self,
        ours: &ObjectId,
        theirs: &ObjectId,
    ) -> Result<Option<ObjectId>, ForgeError> {
        let (ours, theirs) = (ours.as_str(), theirs.as_str());
        let arguments = ["merge-tree", "--write-tree", "--no-messages", ours, theirs];
        let finished = self.attempt(&arguments, b"")?;
        match finished.code {
            0 => Ok(first_id(&finished.stdout)),
            1 => Ok(None),
            _ => Err(finished.refused(&arguments)),
        }
    }

    /// Sets a reference if it still is what it was (`None`: absent); `false` when somebody was faster.
    pub(crate) fn move_reference(
        &self,
        name: &str,
        to: &ObjectId,
        from: Option<&ObjectId>,
    ) -> Result<bool, ForgeError> {
        let zero = ObjectId::zero();
        let arguments = [
            "update-ref",
            "--no-deref",
            name,
            to.as_str(),
            from.unwrap_or(&zero).as_str(),
        ];
        Ok(self.attempt(&arguments, b"")?.code == 0)
    }

    /// Sets a reference, whatever it was.
    pub(crate) fn force_reference(&self, name: &str, to: &ObjectId) -> Result<(), ForgeError> {
        self.run(&["update-ref", "--no-deref", name, to.as_str()])
            .map(drop)
    }

    /// Removes a reference.
    pub(crate) fn delete_reference(&self, name: &str) -> Result<(), ForgeError> {
        self.run(&["update-ref", "--no-deref", "-d", name])
            .map(drop)
    }
}

/// The id that a line of output begins with.
fn first_id(output: &[u8]) -> Option<ObjectId> {
    String::from_utf8_lossy(output)
        .lines()
        .next()
        .and_then(ObjectId::parse)
}

fn push_data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend(format!("data {}\n", bytes.len()).bytes());
    stream.extend(bytes);
    stream.push(b'\n');
}

fn push_edit(stream: &mut Vec<u8>, path: &str, edit: &FileEdit) -> Result<(), ForgeError> {
    let quoted = quoted_path(path)?;
    match edit {
        FileEdit::Remove => stream.extend(format!("D {quoted}\n").bytes()),
        FileEdit::Write {
            mode: 0o160_000,
            content,
        } => {
            let commit = std::str::from_utf8(content).ok().and_then(ObjectId::parse);
            let refused = || ForgeError::Refused {
                act: format!("writing the submodule {path}"),
                reason: "its content must be forty hex digits".to_owned(),
            };
            stream.extend(format!("M 160000 {} {quoted}\n", commit.ok_or_else(refused)?).bytes());
        }
        FileEdit::Write {
            mode: mode @ (0o100_644 | 0o100_755 | 0o120_000),
            content,
        } => {
            stream.extend(format!("M {mode:06o} inline {quoted}\n").bytes());
            push_data(stream, content);
        }
        FileEdit::Write { mode, .. } => {
            let reason = "modes are 100644, 100755, 120000 and 160000 (octal)".to_owned();
            return Err(ForgeError::Refused {
                act: format!("writing {path} with mode {mode:o}"),
                reason,
            });
        }
    }
    Ok(())
}

/// A path as git's fast-import reads it: in quotes, with the characters escaped that would end it.
fn quoted_path(path: &str) -> Result<String, ForgeError> {
    if path.is_empty() || path.contains('\0') || path.starts_with('/') || path.ends_with('/') {
        let reason = "a path is relative, not empty and has no NUL".to_owned();
        return Err(ForgeError::Refused {
            act: format!("writing {path:?}"),
            reason,
        });
    }
    Ok(format!(
        "\"{}\"",
        path.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    ))
}
