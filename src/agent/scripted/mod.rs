//! A coder that follows a script: no model, no program, the same edits for the same failure every time.
//!
//! It stands behind the real port and does real work: it looks for its texts in the scratch tree and edits files there. What it
//! cannot do is find anything its script does not name, and it says so.

mod demo;
mod tree;

use std::path::Path;

use async_trait::async_trait;

use self::tree::Tree;
use super::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, ExtractedFact,
    FixSummary,
};
use crate::change::RepoPath;

/// The coder's name in errors and records.
const CODER: &str = "scripted";

/// What it does about one failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The failure it is for.
    pub when: When,
    /// What it says the cause is, and which files it intends to change.
    pub diagnosis: Diagnosis,
    /// What it changes.
    pub edits: Vec<Edit>,
    /// What it says of its change.
    pub fix: FixSummary,
}

/// The facts that call for a script: one fact of the extraction has all members that are given here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    /// Name of the test.
    pub test_name: Option<String>,
    /// Tracked file.
    pub file: Option<String>,
}

impl When {
    fn holds(&self, facts: &[ExtractedFact]) -> bool {
        let wanted =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        facts
            .iter()
            .any(|fact| wanted(&self.test_name, &fact.test_name) && wanted(&self.file, &fact.file))
    }
}

/// One change to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Puts a text in the place of another, which must stand in the file exactly once.
    Replace {
        /// The file.
        path: RepoPath,
        /// What must be there.
        find: String,
        /// What stands there afterwards.
        replace: String,
    },
    /// Writes a whole file, with the directories it needs.
    Write {
        /// The file.
        path: RepoPath,
        /// Its content.
        content: String,
    },
}

/// A coder that follows scripts; the first one that fits the failure is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCoder {
    scripts: Vec<Script>,
}

impl ScriptedCoder {
    /// A coder that knows these failures.
    pub const fn new(scripts: Vec<Script>) -> Self {
        Self { scripts }
    }

    fn script(&self, task: &CoderTask, word: &'static str) -> Result<&Script, CoderError> {
        let fitting = self
            .scripts
            .iter()
            .find(|script| script.when.holds(&task.extraction));
        fitting.ok_or_else(|| {
            failed(
                word,
                "no script fits the facts of this failure; configure a coder that can think (agent.adapter: command)".to_owned(),
            )
        })
    }
}

#[async_trait]
impl Coder for ScriptedCoder {
    fn describe(&self) -> AgentDescription {
        AgentDescription {
            id: CODER.to_owned(),
            model: None,
            remark:
                "This coder is scripted: it replays prepared edits for known failures and no model is involved."
                    .to_owned(),
        }
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        _session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let script = self.script(task, "diagnose")?;
        edited(&script.edits, &Tree::at(tree)).map_err(|reason| failed("diagnose", reason))?;
        Ok(script.diagnosis.clone())
    }

    async fn fix(
        &self,
        task: &CoderTask,
        tree: &Path,
        _session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let script = self.script(task, "fix")?;
        let tree = Tree::at(tree);
        // Everything is looked up before anything is written, so that a failing script leaves the tree as it was.
        edited(&script.edits, &tree)
            .and_then(|files| {
                files
                    .iter()
                    .try_for_each(|(path, content)| tree.write(path, content))
            })
            .map_err(|reason| failed("fix", reason))?;
        Ok(script.fix.clone())
    }
}

/// The files that the edits touch, as they will be.
fn edited(edits: &[Edit], tree: &Tree<'_>) -> Result<Vec<(RepoPath, String)>, String> {
    let mut files: Vec<(RepoPath, String)> = Vec::new();
    for edit in edits {
        let (Edit::Replace { path, .. } | Edit::Write { path, .. }) = edit;
        let earlier = files.iter().position(|(known, _)| known == path);
        let content = match edit {
            Edit::Write { content, .. } => {
                tree.check(path)?;
                content.clone()
            }
            Edit::Replace { find, replace, .. } => {
                let before = match earlier {
                    Some(index) => files[index].1.clone(),
                    None => tree.read(path)?,
                };
                replaced(path, &before, find, replace)?
            }
        };
        match earlier {
            Some(index) => files[index].1 = content,
            None => files.push((path.clone(), content)),
        }
    }
    Ok(files)
}

fn replaced(path: &RepoPath, text: &str, find: &str, replace: &str) -> Result<String, String> {
    let shown: String = find.chars().take(60).collect();
    match text.matches(find).count() {
        1 => Ok(text.replacen(find, replace, 1)),
        0 => Err(format!(
            "{path} does not contain {shown:?}, which the script wants to replace; the code is not the one it was written for"
        )),
        count => Err(format!(
            "{path} contains {shown:?} {count} times, so it is not clear which one the script means"
        )),
    }
}

fn failed(task: &'static str, reason: String) -> CoderError {
    CoderError::Answer {
        coder: CODER.to_owned(),
        task,
        reason,
    }
}
