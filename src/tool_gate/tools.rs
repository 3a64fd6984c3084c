//! What each client's tools do, as far as it can be told from their names.
//!
//! The table holds what the clients' own tool lists held when they were looked at. A name that several clients use for different
//! things takes the most consequential meaning; a name that is in no list is [`ToolClass::Unknown`], which is never taken for a
//! read.

use std::fmt;

/// What a tool can do, least consequential first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolClass {
    /// Reads, or keeps the client's own books (plans, to-do lists, questions). Sub-agents count here where every call of theirs is
    /// an event of its own.
    Read,
    /// Sends something to another machine or asks one.
    Send,
    /// Writes files that its arguments name.
    Write,
    /// Runs a shell command.
    Execute,
    /// In no list.
    Unknown,
}

impl ToolClass {
    /// Whether a call of such a tool writes, executes or sends. What is unknown may.
    pub const fn is_consequential(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// The name in receipts and events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ToolClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One client's tools of one class.
struct Row {
    /// The client, as `hook-gate render` names it.
    #[allow(
        dead_code,
        reason = "says where a name comes from, for whoever reads the table"
    )]
    client: &'static str,
    class: ToolClass,
    tools: &'static [&'static str],
}

const fn row(client: &'static str, class: ToolClass, tools: &'static [&'static str]) -> Row {
    Row {
        client,
        class,
        tools,
    }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("builtin", ToolClass::Read, &["list_files", "read_file", "search_text", "submit_diagnosis", "submit_fix"]),
    row("builtin", ToolClass::Write, &["replace_text", "write_file", "delete_file"]),
    row("builtin", ToolClass::Execute, &["run_command"]),
    row("claude", ToolClass::Read, &[
        "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoRead", "TodoWrite", "BashOutput", "KillShell", "KillBash", "Task",
        "Agent", "TaskOutput", "TaskStop", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "AskUserQuestion", "EnterPlanMode",
        "ExitPlanMode", "ListMcpResources", "ReadMcpResource", "ToolSearch",
    ]),
    row("claude", ToolClass::Send, &["WebFetch", "WebSearch", "SendMessage"]),
    row("claude", ToolClass::Write, &["Write", "Edit", "MultiEdit", "NotebookEdit"]),
    row("claude", ToolClass::Execute, &["Bash"]),
    row("codex", ToolClass::Read, &["update_plan", "view_image", "list_dir", "read_file", "grep_files"]),
    row("codex", ToolClass::Send, &["web_search"]),
    row("codex", ToolClass::Write, &["apply_patch"]),
    row("codex", ToolClass::Execute, &["Bash", "shell", "shell_command", "local_shell", "exec_command"]),
    row("gemini", ToolClass::Read, &[
        "read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "write_todos",
        "ask_user", "enter_plan_mode", "exit_plan_mode", "get_internal_docs",
    ]),
    row("gemini", ToolClass::Send, &["web_fetch", "google_web_search"]),
    row("gemini", ToolClass::Write, &["write_file", "replace"]),
    row("gemini", ToolClass::Execute, &["run_shell_command"]),
    row("qwen", ToolClass::Read, &[
        "read_file", "list_directory", "glob", "grep_search", "todo_write", "ask_user_question", "exit_plan_mode", "tool_search",
        "task_stop",
    ]),
    row("qwen", ToolClass::Send, &["web_fetch", "web_search", "send_message"]),
    row("qwen", ToolClass::Write, &["write_file", "edit"]),
    row("qwen", ToolClass::Execute, &["run_shell_command"]),
    row("copilot", ToolClass::Read, &[
        "view", "glob", "grep", "read_bash", "stop_bash", "list_bash", "report_intent", "update_todo", "ask_user",
        "task_complete", "fetch_copilot_cli_documentation",
    ]),
    row("copilot", ToolClass::Send, &["web_fetch", "web_search"]),
    row("copilot", ToolClass::Write, &["create", "edit", "str_replace", "str_replace_editor", "apply_patch"]),
    row("copilot", ToolClass::Execute, &["bash"]),
    row("opencode", ToolClass::Read, &["read", "glob", "grep", "list", "todoread", "todowrite", "question"]),
    row("opencode", ToolClass::Send, &["webfetch", "websearch", "codesearch"]),
    row("opencode", ToolClass::Write, &["write", "edit", "multiedit", "patch", "apply_patch"]),
    row("opencode", ToolClass::Execute, &["bash"]),
    row("goose", ToolClass::Read, &["developer__tree", "developer__analyze", "todo__todo_write"]),
    row("goose", ToolClass::Write, &["developer__write", "developer__edit", "developer__text_editor"]),
    row("goose", ToolClass::Execute, &["developer__shell"]),
];

/// What a tool of this name can do. Names are compared without regard to case, so that `write` is no way around `Write`; except for
/// those that start sub-agents, whose calls are known to be events of their own in one client only.
pub fn tool_class(tool: &str) -> ToolClass {
    // Break it: leave this out; `tool_gate::table::sub_agents_whose_calls_are_not_known_to_be_hooked_are_refused` fails.
    let unhooked = ["task", "agent"]
        .iter()
        .any(|name| name.eq_ignore_ascii_case(tool))
        && !matches!(tool, "Task" | "Agent");
    if unhooked {
        return ToolClass::Unknown;
    }
    TABLE
        .iter()
        .filter(|row| row.tools.iter().any(|name| name.eq_ignore_ascii_case(tool)))
        .map(|row| row.class)
        .max()
        .unwrap_or(ToolClass::Unknown)
}
