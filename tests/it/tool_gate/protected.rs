//! What no session may write, whatever its policy allows.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{Answer, is_protected};
use serde_json::json;

use super::{Tree, assert_allowed, assert_denied, bash, call, decided, write};

const EVERYTHING: [&str; 1] = ["*"];

#[test]
fn no_spelling_of_a_protected_path_is_writable() {
    for path in [
        ".git/config",
        ".git",
        ".GIT/config",
        ".Git/hooks/pre-commit",
        "sub/.git/config",
        ".git./config",
        ".git /config",
        ".g\u{200c}it/config",
        "git~1/config",
        ".git::$INDEX_ALLOCATION/config",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".CLAUDE/settings.json",
        ".codex/hooks.json",
        ".gemini/settings.json",
        ".qwen/settings.json",
        ".github/hooks/gate.json",
        ".GitHub/Hooks/gate.json",
        // A folder or link put in its place may bring hooks along.
        ".github",
        ".agents/plugins/x/hooks/hooks.json",
        ".opencode/plugin/gate.js",
        "opencode.json",
        "OpenCode.JSON",
        ".sdd/runtime/hook_gate/S1.json",
        "src/evil/HEAD",
        "",
    ] {
        assert!(is_protected(path.as_bytes()), "{path}");
    }
    for path in [
        ".gitignore",
        ".github/workflows/ci.yml",
        "src/git/config",
        "claude/x",
        "hooks/.github/x",
        "docs/opencode.json.md",
    ] {
        assert!(!is_protected(path.as_bytes()), "{path}");
    }
}

#[test]
fn an_allowlist_of_everything_does_not_open_it() {
    let tree = Tree::new();
    for path in [
        ".git/config",
        "a/../.git/config",
        "/work/.claude/settings.json",
        "./.codex/hooks.json",
    ] {
        let decision = decided(&write(path), &EVERYTHING, &tree);
        assert_denied(&decision, GateStage::SelfProtection);
        let shell = decided(&bash(&format!("echo x > {path}")), &EVERYTHING, &tree);
        assert_denied(&shell, GateStage::SelfProtection);
    }
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** Move to: .codex/hooks.json\n*** End Patch";
    let decision = decided(
        &call("apply_patch", json!({"command": patch})),
        &EVERYTHING,
        &tree,
    );
    assert_denied(&decision, GateStage::SelfProtection);
}

#[test]
fn a_link_to_it_is_no_way_in() {
    let tree = Tree::new().link("src/hooks", "../.git/hooks");
    let decision = decided(&write("src/hooks/pre-commit"), &EVERYTHING, &tree);
    assert_denied(&decision, GateStage::SelfProtection);
}

/// The agent makes `.claude` a link to a folder it may write, and then writes "into that folder".
#[test]
fn a_link_in_place_of_a_protected_folder_protects_it_too() {
    let tree = Tree::new().link(".claude", "src/elsewhere");
    let decision = decided(&write(".claude/settings.json"), &EVERYTHING, &tree);
    assert_denied(&decision, GateStage::SelfProtection);
}

#[test]
fn git_commands_that_write_the_repository_are_refused_and_those_that_read_are_not() {
    let tree = Tree::new();
    for command in [
        "git config core.hooksPath /tmp/x",
        "git commit -m x",
        "git add -A",
        "git branch -D main",
        "git -C . checkout x",
        "git tag v1",
        "git remote add x y",
        "git stash",
    ] {
        let decision = decided(&bash(command), &EVERYTHING, &tree);
        assert_denied(&decision, GateStage::SelfProtection);
    }
    for command in [
        "git status --short",
        "git diff HEAD~1 -- src",
        "git --no-pager log -n 5",
        "git branch --show-current",
        "git config --get user.name",
        "git stash list",
    ] {
        assert_allowed(&decided(&bash(command), &EVERYTHING, &tree));
    }
}

#[test]
fn reading_protected_files_is_free() {
    let read = call("Read", json!({"file_path": ".git/config"}));
    let decision = decided(&read, &EVERYTHING, &Tree::new());
    assert_eq!(decision.answer, Answer::Allow);
}
