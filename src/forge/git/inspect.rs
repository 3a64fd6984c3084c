//! Reading references, commits, trees and blobs.

use std::collections::BTreeMap;

use super::super::error::ForgeError;
use super::{Git, ObjectId};

/// Fields of one commit in `git log`, each ended by a NUL.
const COMMIT_FORMAT: &str =
    "--format=format:%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B";
const COMMIT_FIELDS: usize = 10;

/// Who and when, as a commit says it.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Since 1970-01-01 UTC; 0 where the commit tells an earlier time or none.
    pub(crate) seconds: u64,
}

/// What one commit object says.
#[derive(Clone, Debug)]
pub(crate) struct CommitFacts {
    pub(crate) id: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) author: Signature,
    pub(crate) committer: Signature,
    /// Without the line feeds at its end.
    pub(crate) message: String,
}

impl CommitFacts {
    /// The message's first line.
    pub(crate) fn title(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// The message after its first line and the blank lines that follow it.
    pub(crate) fn body(&self) -> &str {
        self.message
            .split_once('\n')
            .map_or("", |(_, rest)| rest.trim())
    }
}

/// One line of a tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeEntry {
    pub(crate) path: String,
    /// Six octal digits.
    pub(crate) mode: String,
    /// `blob`, `tree` or `commit`.
    pub(crate) kind: String,
    pub(crate) id: ObjectId,
    /// Bytes, of blobs only.
    pub(crate) size: Option<u64>,
}

impl Git {
    /// Every reference outside `refs/forge` with the object it names.
    pub(crate) fn references(&self) -> Result<BTreeMap<String, ObjectId>, ForgeError> {
        let output = self.run(&["for-each-ref", "--format=%(objectname) %(refname)"])?;
        let text = String::from_utf8_lossy(&output);
        let named = text.lines().filter_map(|line| {
            let (id, name) = line.split_once(' ')?;
            Some((name.to_owned(), ObjectId::parse(id)?))
        });
        Ok(named
            .filter(|(name, _)| !name.starts_with("refs/forge/"))
            .collect())
    }

    /// The object of `kind` that a full or abbreviated id or a full reference name leads to.
    pub(crate) fn resolve(&self, name: &str, kind: &str) -> Result<Option<ObjectId>, ForgeError> {
        let is_id =
            (7..=40).contains(&name.len()) && name.bytes().all(|digit| digit.is_ascii_hexdigit());
        let is_name = name.starts_with("refs/") && valid_name(name);
        if !is_id && !is_name {
            return Ok(None);
        }
        let wanted = format!("{name}^{{{kind}}}");
        let finished = self.attempt(
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &wanted,
            ],
            b"",
        )?;
        Ok(String::from_utf8_lossy(&finished.stdout)
            .lines()
            .last()
            .and_then(ObjectId::parse)
            .filter(|_| finished.code == 0))
    }

    /// The type of an object, `None` where there is no such object.
    pub(crate) fn kind(&self, id: &ObjectId) -> Result<Option<String>, ForgeError> {
        let finished = self.attempt(&["cat-file", "-t", id.as_str()], b"")?;
        let kind = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
        Ok((finished.code == 0).then_some(kind))
    }

    /// One commit's facts.
    pub(crate) fn commit(&self, id: &ObjectId) -> Result<CommitFacts, ForgeError> {
        let mut commits = self.commits(std::slice::from_ref(id))?;
        commits.pop().ok_or_else(|| ForgeError::Absent {
            what: format!("commit {id}"),
        })
    }

    /// The facts of many commits, in the order of the ids.
    pub(crate) fn commits(&self, ids: &[ObjectId]) -> Result<Vec<CommitFacts>, ForgeError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input = ids
            .iter()
            .map(|id| format!("{id}\n"))
            .collect::<Vec<_>>()
            .concat();
        let arguments = [
            "log",
            "-z",
            "--no-walk=unsorted",
            "--no-color",
            "--encoding=UTF-8",
            "--no-show-signature",
            COMMIT_FORMAT,
            "--stdin",
        ];
        let output = self.run_with(&arguments, input.as_bytes())?;
        let text = String::from_utf8_lossy(&output);
        let fields: Vec<&str> = text.split('\0').collect();
        let unreadable = || ForgeError::GitOutput {
            command: "log",
            detail: "ten fields a commit were expected".to_owned(),
        };
        fields
            .chunks(COMMIT_FIELDS)
            .filter(|chunk| chunk.len() == COMMIT_FIELDS)
            .map(|chunk| commit_facts(chunk).ok_or_else(unreadable))
            .collect()
    }

    /// The ids of the commits that `to` has and `from` has not, oldest first.
    pub(crate) fn commits_between(
        &self,
        from: &ObjectId,
        to: &ObjectId,
    ) -> Result<Vec<ObjectId>, ForgeError> {
        let range = format!("{from}..{to}");
        let output = self.run(&["rev-list", "--reverse", "--topo-order", &range])?;
        Ok(String::from_utf8_lossy(&output)
            .lines()
            .filter_map(ObjectId::parse)
            .collect())
    }

    /// Whether `ancestor` is reachable from `descendant`.
    pub(crate) fn is_ancestor(
        &self,
        ancestor: &ObjectId,
        descendant: &ObjectId,
    ) -> Result<bool, ForgeError> {
        let arguments = [
            "merge-base",
            "--is-ancestor",
            ancestor.as_str(),
            descendant.as_str(),
        ];
        let finished = self.attempt(&arguments, b"")?;
        match finished.code {
            0 => Ok(true),
            1 => Ok(false),
            _ => Err(finished.refused(&arguments)),
        }
    }

    /// A tree's entries; `recursive` goes into the trees below and names them too.
    pub(crate) fn tree(
        &self,
        id: &ObjectId,
        recursive: bool,
    ) -> Result<Vec<TreeEntry>, ForgeError> {
        let mut arguments = vec!["ls-tree", "-z", "-l"];
        if recursive {
            arguments.extend(["-r", "-t"]);
        }
        arguments.push(id.as_str());
        let output = self.run(&arguments)?;
        let unreadable = || ForgeError::GitOutput {
            command: "ls-tree",
            detail: "mode, type, id, size and path were expected".to_owned(),
        };
        output
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
            .map(|line| tree_entry(line).ok_or_else(unreadable))
            .collect()
    }

    /// What lies at a path of a commit; `None` where nothing does.
    pub(crate) fn entry(
        &self,
        commit: &ObjectId,
        path: &str,
    ) -> Result<Option<TreeEntry>, ForgeError> {
        let place = format!(":(literal,top){path}");
        let output = self.run(&["ls-tree", "-z", "-l", commit.as_str(), "--", &place])?;
        Ok(output
            .split(|byte| *byte == 0)
            .filter_map(tree_entry)
            .find(|entry| entry.path == path))
    }

    /// The size of a blob in bytes, `None` where there is no such blob.
    pub(crate) fn blob_size(&self, id: &ObjectId) -> Result<Option<u64>, ForgeError> {
        if self.kind(id)?.as_deref() != Some("blob") {
            return Ok(None);
        }
        let output = self.run(&["cat-file", "-s", id.as_str()])?;
        Ok(String::from_utf8_lossy(&output).trim().parse().ok())
    }

    /// A blob's bytes.
    pub(crate) fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, ForgeError> {
        self.run(&["cat-file", "blob", id.as_str()])
    }

    /// The bytes of a file in a commit, `None` where the commit has no such file.
    pub(crate) fn file(
        &self,
        commit: &ObjectId,
        path: &str,
    ) -> Result<Option<Vec<u8>>, ForgeError> {
        let output = self.run(&[
            "ls-tree",
            "-z",
            commit.as_str(),
            "--",
            &format!(":(literal,top){path}"),
        ])?;
        let entry = output.split(|byte| *byte == 0).next().unwrap_or_default();
        let words: Vec<String> = String::from_utf8_lossy(entry)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        match (
            words.get(1).map(String::as_str),
            words.get(2).and_then(|id| ObjectId::parse(id)),
        ) {
            (Some("blob"), Some(id)) => self.blob(&id).map(Some),
            _ => Ok(None),
        }
    }
}

fn commit_facts(fields: &[&str]) -> Option<CommitFacts> {
    let [
        id,
        tree,
        parents,
        author,
        author_email,
        authored,
        committer,
        committer_email,
        committed,
        message,
    ] = fields
    else {
        return None;
    };
    let signature = |name: &str, email: &str, seconds: &str| Signature {
        name: name.to_owned(),
        email: email.to_owned(),
        seconds: seconds.parse().unwrap_or(0),
    };
    Some(CommitFacts {
        id: ObjectId::parse(id)?,
        tree: ObjectId::parse(tree)?,
        parents: parents.split(' ').filter_map(ObjectId::parse).collect(),
        author: signature(author, author_email, authored),
        committer: signature(committer, committer_email, committed),
        message: message.trim_end_matches('\n').to_owned(),
    })
}

fn tree_entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (facts, path) = (String::from_utf8_lossy(&line[..tab]), &line[tab + 1..]);
    let mut words = facts.split_whitespace();
    let (mode, kind, id, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(TreeEntry {
        // A JSON string cannot carry bytes that are not UTF-8.
        path: String::from_utf8_lossy(path).into_owned(),
        mode: mode.to_owned(),
        kind: kind.to_owned(),
        id: ObjectId::parse(id)?,
        size: size.parse().ok(),
    })
}

/// Whether git allows this as a reference name (the rules of `git check-ref-format`).
pub(crate) fn valid_name(name: &str) -> bool {
    let forbidden = |character: char| character.is_control() || " ~^:?*[\\".contains(character);
    let part_is_wrong =
        |part: &str| part.is_empty() || part.starts_with('.') || has_lock_ending(part);
    name.len() <= 1_000
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.chars().any(forbidden)
        && !name.split('/').any(part_is_wrong)
}

/// `.lock` in exactly this case: git's own rule, since it makes lock files of that name.
fn has_lock_ending(part: &str) -> bool {
    part.strip_suffix(".lock").is_some()
}
