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
                _ => agent.command.push(argument),
            }
        }
        Ok(agent)
    }
}
