//! Who diagnoses and fixes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::AgentSection;

/// The coder behind the agent port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapter {
    /// The demo's, with answers fixed in advance; it says so in its provenance.
    Scripted,
    /// Any program that speaks the command protocol.
    Command,
}

/// The configured coder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// Which coder; without one incidents are opened and reported, and nothing is fixed.
    pub adapter: Option<Adapter>,
    /// The program and its first arguments; those that name a file are absolute.
    pub command: Vec<String>,
    /// The files among them, to be mounted read-only in the sandbox.
    pub files: Vec<PathBuf>,
}

impl Agent {
    pub(super) fn resolve(
        section: AgentSection,
        folder: &Path,
    ) -> Result<Self, (&'static str, String)> {
        let key = "agent.command";
        match (section.adapter, section.command.as_slice()) {
            (Some(Adapter::Command), [] | [_, ..])
                if section
                    .command
                    .first()
                    .is_none_or(|program| program.trim().is_empty()) =>
            {
                return Err((key, "the adapter is `command`, but no program is named; write it as a list, as in [python3, coder.py]".to_owned()));
            }
            (None | Some(Adapter::Scripted), [_, ..]) => {
                return Err((key, "a program is named, but the adapter is not `command`; set agent.adapter: command, or remove it".to_owned()));
            }
            _ => {}
        }
        if section
            .command
            .iter()
            .any(|argument| argument.contains('\0'))
        {
            return Err((key, "an argument holds a NUL byte; remove it".to_owned()));
        }
        let mut agent = Self {
            adapter: section.adapter,
            ..Self::default()
        };
        for argument in section.command {
            let file = folder.join(&argument);
            match file.to_str() {
                Some(absolute) if file.is_file() => {
                    agent.command.push(absolute.to_owned());
                    agent.files.push(file);
                }
                // It would be looked for in the scratch tree, where the watched repository chooses what lies there.
                _ if names_a_file(&argument) && !agent.command.is_empty() => {
                    let problem = format!(
                        "{argument:?} names no file in {}; put it there, or write its whole path",
                        folder.display()
                    );
                    return Err((key, problem));
                }
                _ => agent.command.push(argument),
            }
        }
        Ok(agent)
    }
}

/// Endings of programs that an interpreter runs.
const SCRIPTS: [&str; 8] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl"];

/// Whether an argument looks like a script that belongs to the configuration.
fn names_a_file(argument: &str) -> bool {
    let path = std::path::Path::new(argument);
    let ending = path.extension().and_then(std::ffi::OsStr::to_str);
    path.is_relative() && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
}
