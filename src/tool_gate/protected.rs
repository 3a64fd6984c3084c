//! What a gated session may never write, whatever its allowlist says: what decides about it.

use crate::gate::folded;

/// Names that protect everything below them, at any depth: repositories' own state, and what configures coding clients and
/// their hooks.
const FOLDERS: [&str; 12] = [
    ".agents",
    ".claude",
    ".codex",
    ".copilot",
    ".crush",
    ".cursor",
    ".gemini",
    ".git",
    ".opencode",
    ".qwen",
    // Bernstein's state: with `--compat` the policy lies there.
    ".sdd",
    ".caretaker",
];

/// Files that configure coding clients, or make a repository of any folder, at any depth.
const FILES: [&str; 6] = [
    ".crush.json",
    // What makes a folder a repository, with a configuration that names programs to run.
    "head",
    ".mcp.json",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
];

/// Whether a path relative to the worktree is one of them. Compared as a file system compares that ignores case, composition,
/// invisible characters and dots and spaces at the end of names: such a spelling is never what a session needs.
pub(super) fn is_protected(path: &[u8]) -> bool {
    let folded = folded(path);
    let names: Vec<&[u8]> = folded
        .split(|byte| matches!(byte, b'/' | b'\\'))
        .map(trimmed)
        .filter(|name| !name.is_empty())
        .collect();
    // The worktree's top directory itself.
    if names.is_empty() {
        return true;
    }
    let protected = names.iter().any(|name| {
        // NTFS's short name for `.git`; a stream behind a colon is the same file.
        let name = name.split(|byte| *byte == b':').next().unwrap_or_default();
        // Break it: compare the raw path; `tool_gate::protected::no_spelling_of_a_protected_path_is_writable` fails.
        name == b"git~1"
            || FOLDERS
                .iter()
                .chain(&FILES)
                .any(|found| found.as_bytes() == name)
    });
    protected
        || names
            .windows(2)
            .any(|pair| pair == [b".github".as_slice(), b"hooks".as_slice()])
        // A folder or link put in its place may bring hooks along.
        || names.last() == Some(&b".github".as_slice())
}

fn trimmed(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| *byte != b'.' && !byte.is_ascii_whitespace());
    let name = end.and_then(|end| name.get(..=end)).unwrap_or_default();
    name.trim_ascii_start()
}
