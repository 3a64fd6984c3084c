//! The clients that are known, and what is known of each: its tools by the names that its hooks say, and what it speaks.

use super::proxy::Protocol;
use crate::agent::{GatedTool, ToolAccess};

/// A coding client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Copilot CLI.
    Copilot,
    /// opencode.
    Opencode,
    /// goose.
    Goose,
}

impl Client {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Copilot,
        Self::Opencode,
        Self::Goose,
    ];

    /// The name in the configuration and in records; also the program's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// The name for people.
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Copilot => "Copilot CLI",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// Whether it can speak to a server of this protocol, as it is started here.
    pub const fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Self::Claude => matches!(protocol, Protocol::Anthropic),
            Self::Gemini => matches!(protocol, Protocol::Gemini),
            Self::Codex | Self::Qwen | Self::Copilot | Self::Opencode | Self::Goose => {
                matches!(protocol, Protocol::OpenAi | Protocol::Ollama)
            }
        }
    }

    /// What it speaks, as the configuration spells providers.
    pub(super) const fn providers(self) -> &'static str {
        match self {
            Self::Claude => "anthropic",
            Self::Gemini => "gemini",
            _ => "openai or ollama",
        }
    }

    /// Its tools, by the names that its hooks are told. What is not here is not granted.
    pub fn tools(self) -> Vec<GatedTool> {
        let (reads, writes, executes) = self.tool_names();
        let of = |names: &[&str], access: &ToolAccess| {
            names
                .iter()
                .map(|name| GatedTool {
                    name: (*name).to_owned(),
                    access: access.clone(),
                })
                .collect::<Vec<_>>()
        };
        // Clients name files absolutely or relatively as they like, so that no argument can be bound: the gate's own paths hold.
        let mut tools = of(reads, &ToolAccess::Reads);
        tools.extend(of(writes, &ToolAccess::Writes { path: None }));
        tools.extend(of(executes, &ToolAccess::Executes));
        tools
    }

    /// What of a repository it would take for its own configuration, and put before ours. It is hidden from the client.
    pub const fn configuration_in_repositories(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[".claude", ".mcp.json"],
            Self::Codex => &[".codex", ".agents"],
            Self::Gemini => &[".gemini", ".agents", ".env"],
            Self::Qwen => &[".qwen", ".agents", ".env"],
            Self::Copilot => &[".github/hooks", ".copilot", ".agents", ".mcp.json"],
            Self::Opencode => &[".opencode", ".agents", "opencode.json", "opencode.jsonc"],
            Self::Goose => &[".agents", ".goose", ".goosehints"],
        }
    }

    /// Tools that look, tools that change files, tools that run programs.
    pub(super) const fn tool_names(
        self,
    ) -> (
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
    ) {
        match self {
            Self::Claude => (&["Read", "Glob", "Grep"], &["Write", "Edit"], &["Bash"]),
            Self::Codex => (&["update_plan", "view_image"], &["apply_patch"], &["Bash"]),
            Self::Gemini => (
                &[
                    "read_file",
                    "read_many_files",
                    "list_directory",
                    "glob",
                    "grep_search",
                ],
                &["write_file", "replace"],
                &["run_shell_command"],
            ),
            Self::Qwen => (
                &["read_file", "list_directory", "glob", "grep_search"],
                &["write_file", "edit"],
                &["run_shell_command"],
            ),
            Self::Copilot => (&["view", "glob", "grep"], &["create", "edit"], &["bash"]),
            Self::Opencode => (
                &["read", "glob", "grep", "list"],
                &["write", "edit", "apply_patch"],
                &["bash"],
            ),
            Self::Goose => (
                &["developer__tree"],
                &["developer__write", "developer__edit"],
                &["developer__shell"],
            ),
        }
    }
}
