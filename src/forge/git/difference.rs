//! What one commit changes against another, as pull requests and comparisons show it.

use super::super::error::ForgeError;
use super::{Git, ObjectId};

/// One file that differs.
#[derive(Clone, Debug)]
pub(crate) struct FileChange {
    /// git's letter: `A`, `D`, `M`, `R` or `T`.
    pub(crate) letter: char,
    /// The path on the new side; of a deleted file the old one.
    pub(crate) path: String,
    /// The old path of a renamed file.
    pub(crate) previous_path: Option<String>,
    pub(crate) old_mode: String,
    pub(crate) new_mode: String,
    pub(crate) old_id: ObjectId,
    pub(crate) new_id: ObjectId,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
}

/// A head against a base, from their merge base.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// `None` when the two have no commit in common.
    pub(crate) merge_base: Option<ObjectId>,
    /// The commits of the head that the base has not, oldest first.
    pub(crate) ahead: Vec<ObjectId>,
    /// How many commits the base has that the head has not.
    pub(crate) behind: usize,
    /// From the merge base to the head, in git's order.
    pub(crate) files: Vec<FileChange>,
}

impl Comparison {
    pub(crate) fn additions(&self) -> u64 {
        self.files.iter().map(|file| file.additions).sum()
    }

    pub(crate) fn deletions(&self) -> u64 {
        self.files.iter().map(|file| file.deletions).sum()
    }
}

impl Git {
    /// Compares two commits as GitHub does: three dots, renames found.
    pub(crate) fn compare(
        &self,
        base: &ObjectId,
        head: &ObjectId,
    ) -> Result<Comparison, ForgeError> {
        let merge_base = self.merge_base(base, head)?;
        let files = match &merge_base {
            Some(merge_base) => self.changes(merge_base, head)?,
            None => Vec::new(),
        };
        let (ahead, behind) = (
            self.commits_between(base, head)?,
            self.commits_between(head, base)?.len(),
        );
        Ok(Comparison {
            merge_base,
            ahead,
            behind,
            files,
        })
    }

    /// The best common ancestor; git's first where there are several.
    fn merge_base(&self, one: &ObjectId, other: &ObjectId) -> Result<Option<ObjectId>, ForgeError> {
        let arguments = ["merge-base", one.as_str(), other.as_str()];
        let finished = self.attempt(&arguments, b"")?;
        match finished.code {
            0 => Ok(String::from_utf8_lossy(&finished.stdout)
                .lines()
                .next()
                .and_then(ObjectId::parse)),
            1 => Ok(None),
            _ => Err(finished.refused(&arguments)),
        }
    }

    /// The files that differ between two commits, renames found.
    fn changes(&self, old: &ObjectId, new: &ObjectId) -> Result<Vec<FileChange>, ForgeError> {
        let arguments = [
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--numstat",
            "--no-abbrev",
            "-M",
            "--ignore-submodules=none",
            old.as_str(),
            new.as_str(),
        ];
        let output = self.run(&arguments)?;
        let mut fields = output
            .split(|byte| *byte == 0)
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .peekable();
        let unreadable = |detail: &str| ForgeError::GitOutput {
            command: "diff-tree",
            detail: detail.to_owned(),
        };
        let mut files = Vec::new();
        while let Some(raw) = fields.next_if(|field| field.starts_with(':')) {
            files.push(
                raw_change(&raw, &mut fields)
                    .ok_or_else(|| unreadable("modes, ids, status and path were expected"))?,
            );
        }
        for file in &mut files {
            let (additions, deletions) = line_counts(&mut fields)
                .ok_or_else(|| unreadable("line counts for each file were expected"))?;
            file.additions = additions;
            file.deletions = deletions;
        }
        Ok(files)
    }

    /// The text of each changed file's hunks, in the order of [`Comparison::files`]; `None` for binary files and type changes.
    pub(crate) fn patches(
        &self,
        old: &ObjectId,
        new: &ObjectId,
        files: &[FileChange],
    ) -> Result<Vec<Option<String>>, ForgeError> {
        let output = self.run(&[
            "diff-tree",
            "-r",
            "-p",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "-M",
            "--ignore-submodules=none",
            old.as_str(),
            new.as_str(),
        ])?;
        let text = String::from_utf8_lossy(&output);
        let mut sections = sections(&text).into_iter();
        let patch_of = |file: &FileChange| {
            let section = sections.next()?;
            if file.letter == 'T' {
                // git writes a change of type as a deletion followed by a creation.
                sections.next();
                return None;
            }
            let start = section.find("\n@@")?;
            Some(section[start + 1..].trim_end_matches('\n').to_owned())
        };
        Ok(files.iter().map(patch_of).collect())
    }
}

/// The patch cut where each file's part begins. Only headers begin with this word: every line of content begins with a
/// space, a sign or a backslash.
fn sections(patch: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = patch
        .match_indices("\ndiff --git ")
        .map(|(index, _)| index + 1)
        .collect();
    if patch.starts_with("diff --git ") {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(start, end)| &patch[*start..end])
        .collect()
}

/// `:old-mode new-mode old-id new-id status`, then one path or two.
fn raw_change(raw: &str, fields: &mut impl Iterator<Item = String>) -> Option<FileChange> {
    let mut words = raw.strip_prefix(':')?.split(' ');
    let (old_mode, new_mode) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (old_id, new_id) = (
        ObjectId::parse(words.next()?)?,
        ObjectId::parse(words.next()?)?,
    );
    let letter = words.next()?.chars().next()?;
    let first = fields.next()?;
    let (path, previous_path) = if letter == 'R' {
        (fields.next()?, Some(first))
    } else {
        (first, None)
    };
    Some(FileChange {
        letter,
        path,
        previous_path,
        old_mode,
        new_mode,
        old_id,
        new_id,
        additions: 0,
        deletions: 0,
    })
}

/// `added TAB deleted TAB path`; of a renamed file the path is empty and two fields follow. Binary files count as 0.
fn line_counts(fields: &mut impl Iterator<Item = String>) -> Option<(u64, u64)> {
    let counts = fields.next()?;
    let mut columns = counts.splitn(3, '\t');
    let (additions, deletions, path) = (columns.next()?, columns.next()?, columns.next()?);
    if path.is_empty() {
        fields.next()?;
        fields.next()?;
    }
    Some((
        additions.parse().unwrap_or(0),
        deletions.parse().unwrap_or(0),
    ))
}
