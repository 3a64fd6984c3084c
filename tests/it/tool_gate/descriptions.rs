//! What calls are described by when they are scored.

use caretaker::tool_gate::{tool_class, tool_description};

/// What a description says is never more harmless than what the gate takes the tool for.
#[test]
fn known_tools_are_described_in_our_words() {
    for (tool, words) in [
        ("Write", "Writes a whole file, replacing what was there."),
        (
            "write_file",
            "Writes a whole file, replacing what was there.",
        ),
        (
            "apply_patch",
            "Adds, changes, moves and deletes files as a patch says.",
        ),
        ("Bash", "Runs a shell command."),
        ("WebFetch", "Fetches a page from the web."),
    ] {
        assert!(tool_class(tool).is_consequential());
        assert_eq!(tool_description(tool), Some(words), "{tool}");
    }
    for reader in ["Read", "Glob", "grep_search", "list_directory"] {
        assert!(!tool_class(reader).is_consequential());
        let words = tool_description(reader).unwrap();
        let verb = words.split(' ').next().unwrap();
        assert!(
            ["Reads", "Finds", "Searches", "Lists"].contains(&verb),
            "{words}"
        );
    }
}

#[test]
fn a_tool_that_is_not_in_the_table_has_no_description() {
    for tool in ["mcp__mail__send", "Reads a file", ""] {
        assert_eq!(tool_description(tool), None);
    }
}
