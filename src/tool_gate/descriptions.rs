//! What each known tool does, in our words, for scoring calls against an intent.
//!
//! A description that comes inside a call is written by whoever calls, so it is never used; a tool that is not in the table is scored by
//! its name.

/// One description, and the tools of all clients that do this.
type Row = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("Reads the contents of a file.", &["Read", "read_file", "view", "read", "NotebookRead", "view_image"]),
    ("Reads the contents of several files.", &["read_many_files"]),
    ("Lists the files in a folder.", &["LS", "list_dir", "list_directory", "list", "list_files", "developer__tree"]),
    ("Finds files whose names match a pattern.", &["Glob"]),
    ("Searches the contents of files for a text or pattern.", &["Grep", "grep_files", "search_file_content", "grep_search", "search_text", "codesearch"]),
    ("Analyses the structure of source files.", &["developer__analyze"]),
    ("Writes a whole file, replacing what was there.", &["Write", "write_file", "create", "developer__write"]),
    ("Replaces a part of a file with another text.", &[
        "Edit", "MultiEdit", "replace", "str_replace", "str_replace_editor", "replace_text", "developer__edit", "developer__text_editor",
    ]),
    ("Changes a cell of a notebook.", &["NotebookEdit"]),
    ("Adds, changes, moves and deletes files as a patch says.", &["apply_patch", "patch"]),
    ("Deletes a file.", &["delete_file"]),
    ("Runs a shell command.", &[
        "Bash", "shell", "shell_command", "local_shell", "exec_command", "run_shell_command", "run_command", "developer__shell",
    ]),
    ("Reads the output of a command that runs in the background.", &["BashOutput", "read_bash", "list_bash"]),
    ("Stops a command that runs in the background.", &["KillShell", "KillBash", "stop_bash"]),
    ("Fetches a page from the web.", &["WebFetch", "web_fetch"]),
    ("Searches the web.", &["WebSearch", "web_search", "google_web_search"]),
    ("Sends a message to somebody.", &["SendMessage", "send_message"]),
    ("Starts a sub-agent that works on a task of its own.", &["Task", "Agent"]),
    ("Keeps the list of what is to be done.", &[
        "TodoRead", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "update_plan", "write_todos", "todo_write", "update_todo",
        "todo__todo_write",
    ]),
    ("Asks the user a question.", &["AskUserQuestion", "ask_user", "ask_user_question", "question"]),
    ("Hands in the diagnosis and ends the task.", &["submit_diagnosis"]),
    ("Hands in the fix and ends the task.", &["submit_fix"]),
];

/// What a tool of this name does, if it is known; names are compared without regard to case, as [`tool_class`](super::tool_class) does.
pub fn tool_description(tool: &str) -> Option<&'static str> {
    let named = |row: &&Row| row.1.iter().any(|name| name.eq_ignore_ascii_case(tool));
    TABLE.iter().find(named).map(|row| row.0)
}
