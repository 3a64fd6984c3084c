//! Any program as a coder: `agent.adapter: command`.
//!
//! The program is called in the scratch tree, inside the sandbox, as `argv… diagnose` and `argv… fix`. It reads the task as one
//! JSON document on standard input and prints one JSON document; what it did is read from the tree, never from what it says.

pub(super) mod answer;
mod program;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use self::program::Program;
pub use self::program::ProgramError;
use super::{AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary};
use crate::sandbox::{Command, Limits, Outcome, Sandbox, Status};

/// The coder's name in errors and records.
const CODER: &str = "command";

/// Most bytes of standard error that an error carries.
const STDERR_SHOWN: usize = 500;

/// A coder that runs a configured program in the sandbox.
pub struct CommandCoder {
    program: Program,
    sandbox: Arc<Sandbox>,
    limits: Limits,
}

/// What the program may do to the tree.
#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

impl CommandCoder {
    /// A coder that runs `argv` under `limits`. Relative words that name files beside the configuration, in
    /// `configuration_folder`, mean those files.
    ///
    /// # Errors
    /// No program, or a program given as a path that is no file.
    pub fn new(
        argv: &[String],
        configuration_folder: &Path,
        sandbox: Arc<Sandbox>,
        limits: Limits,
    ) -> Result<Self, ProgramError> {
        Ok(Self {
            program: Program::resolve(argv, configuration_folder)?,
            sandbox,
            limits,
        })
    }

    /// Runs the program with one word and returns what it printed.
    async fn call(
        &self,
        word: &'static str,
        task: &CoderTask,
        tree: &Path,
        access: Access,
    ) -> Result<Vec<u8>, CoderError> {
        let command = self.command(word, task, tree, access)?;
        let outcome = self.sandbox.run(&command).await;
        let outcome = outcome.map_err(|error| unavailable(error.to_string()))?;
        if outcome.status.success() {
            return Ok(outcome.stdout.bytes);
        }
        Err(CoderError::Failed {
            coder: CODER.to_owned(),
            task: word,
            status: in_words(outcome.status, &self.limits),
            stderr: end_of_stderr(&outcome),
        })
    }

    fn command(
        &self,
        word: &'static str,
        task: &CoderTask,
        tree: &Path,
        access: Access,
    ) -> Result<Command, CoderError> {
        self.program
            .check_tree(tree)
            .map_err(|error| unavailable(error.to_string()))?;
        let stdin = serde_json::to_vec(task)
            .map_err(|error| unavailable(format!("its task cannot be written as JSON: {error}")))?;
        let words = self.program.argv.iter().cloned();
        let mut command = Command::new(words.chain([OsString::from(word)]), tree);
        if matches!(access, Access::Read) {
            command.writable.clear();
            command.readable.push(tree.to_owned());
        }
        command.readable.extend(self.program.files.iter().cloned());
        command.stdin = stdin;
        command.limits = self.limits;
        Ok(command)
    }
}

#[async_trait]
impl Coder for CommandCoder {
    fn describe(&self) -> AgentDescription {
        AgentDescription {
            id: CODER.to_owned(),
            model: Some(self.program.shown.clone()),
            remark: format!(
                "Runs the configured program {} in the sandbox; tool calls are not gated, the tree is.",
                self.program.shown
            ),
        }
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        _session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        let told = CoderTask {
            diagnosis: None,
            ..task.clone()
        };
        let printed = self.call("diagnose", &told, tree, Access::Read).await?;
        answer::diagnosis(&printed).map_err(|reason| unusable("diagnose", reason))
    }

    async fn fix(
        &self,
        task: &CoderTask,
        tree: &Path,
        _session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        let printed = self.call("fix", task, tree, Access::Write).await?;
        answer::fix_summary(&printed).map_err(|reason| unusable("fix", reason))
    }
}

fn unavailable(reason: String) -> CoderError {
    CoderError::Unavailable {
        coder: CODER.to_owned(),
        reason,
    }
}

fn unusable(task: &'static str, reason: String) -> CoderError {
    CoderError::Answer {
        coder: CODER.to_owned(),
        task,
        reason,
    }
}

pub(super) fn in_words(status: Status, limits: &Limits) -> String {
    match status {
        Status::Exited(code) => format!("exit code {code}"),
        Status::Signalled(signal) => format!("signal {signal}"),
        Status::TimedOut => format!(
            "no answer within {} seconds, so it was killed",
            limits.wall.as_secs()
        ),
        Status::OutputLimit => format!("more than {} bytes of output", limits.output),
        Status::ProcessLimit => format!("more than {} processes", limits.processes),
    }
}

/// The last words of standard error that fit, printable.
pub(super) fn end_of_stderr(outcome: &Outcome) -> String {
    let text = outcome.stderr.text();
    let mut shown: Vec<char> = Vec::new();
    let mut bytes = 0;
    for character in text.trim_end().chars().rev() {
        let printable = if super::reader::is_hidden(character) {
            ' '
        } else {
            character
        };
        bytes += printable.len_utf8();
        if bytes > STDERR_SHOWN {
            break;
        }
        shown.push(printable);
    }
    shown.into_iter().rev().collect()
}
