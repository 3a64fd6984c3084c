//! The decisions that were measured of the neighbour, row by row, with ours. Where ours differs, the row says why.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{Answer, ToolClass, tool_class};
use serde_json::json;

use super::{Tree, USUAL, assert_allowed, assert_denied, bash, call, decided, write};

#[test]
fn what_lies_below_an_allowed_folder_or_fits_a_pattern_may_be_written() {
    let tree = Tree::new();
    for path in [
        "src/a.txt",
        "/work/src/a.txt",
        "secrets/../src/x",
        "docs/a.md",
        // `*` crosses `/`.
        "docs/a/b.md",
        // The folder's own name equals the pattern.
        "src",
    ] {
        assert_allowed(&decided(&write(path), &USUAL, &tree));
    }
}

#[test]
fn what_lies_elsewhere_may_not_and_the_neighbours_words_say_so() {
    let tree = Tree::new();
    for path in [
        "secrets/x",
        "src/../secrets/x",
        "srcx/a",
        "/etc/passwd",
        "docs/a.txt",
        "../work/../x",
    ] {
        let decision = decided(&write(path), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
        assert_eq!(
            decision.reason.unwrap(),
            format!("out-of-scope write refused: {path} not under allowlist ['docs/*.md', 'src/']")
        );
    }
}

#[test]
fn links_are_followed_before_a_path_is_judged() {
    let tree = Tree::new()
        .link("src/link_out", "/elsewhere")
        .link("src/link_in", "../docs");
    let out = decided(&write("src/link_out/x"), &USUAL, &tree);
    assert_denied(&out, GateStage::PathPolicy);
    let text = decided(&write("src/link_in/x.txt"), &USUAL, &tree);
    assert_denied(&text, GateStage::PathPolicy);
    assert_allowed(&decided(&write("src/link_in/x.md"), &USUAL, &tree));
}

#[test]
fn a_notebook_is_a_file_too() {
    let notebook = call(
        "NotebookEdit",
        json!({"notebook_path": "secrets/n", "new_source": "1"}),
    );
    let decision = decided(&notebook, &USUAL, &Tree::new());
    assert_denied(&decision, GateStage::PathPolicy);
}

/// The neighbour took the first key it found and let this through.
#[test]
fn a_decoy_path_hides_nothing() {
    let tree = Tree::new();
    for arguments in [
        json!({"file_path": "src/ok", "notebook_path": "secrets/n"}),
        json!({"file_path": "src/ok", "edits": [{"file_path": "secrets/n"}]}),
        json!({"path": ["src/ok", "secrets/n"]}),
        json!({"file_path": "src/ok", "File-Path": "secrets/n"}),
        json!({"file_path": "src/ok", "target_file": "secrets/n"}),
        json!({"filePath": "secrets/n", "file_path": "src/ok"}),
    ] {
        let decision = decided(&call("NotebookEdit", arguments), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
    }
}

/// The neighbour compares four names exactly and let `write` through.
#[test]
fn a_tool_is_known_by_every_clients_name_in_any_case() {
    let tree = Tree::new();
    for tool in [
        "write",
        "WRITE",
        "write_file",
        "create",
        "replace",
        "edit",
        "developer__write",
    ] {
        let arguments = json!({"path": "secrets/x", "content": "x"});
        let decision = decided(&call(tool, arguments), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
    }
}

/// The neighbour allows all of these. A write without a file, or with a file that is no text, cannot be judged.
#[test]
fn a_write_that_names_no_file_is_refused() {
    let tree = Tree::new();
    for arguments in [
        json!({}),
        json!({"content": "x"}),
        json!({"file_path": 7}),
        json!(null),
        json!([1]),
        json!({"file_path": ""}),
        json!({"file_path": "src/a\u{0}b"}),
        json!({"file_path": "~/.bashrc"}),
    ] {
        let decision = decided(&call("Write", arguments.clone()), &USUAL, &tree);
        assert_eq!(decision.answer, Answer::Deny, "{arguments} {decision:?}");
    }
}

/// The neighbour never sees shell commands.
#[test]
fn a_redirection_is_a_write() {
    let tree = Tree::new();
    let decision = decided(&bash("echo x > secrets/a"), &USUAL, &tree);
    assert_denied(&decision, GateStage::Shell);
    let reason = decision.reason.unwrap();
    assert!(
        reason.starts_with("out-of-scope write refused: secrets/a not"),
        "{reason}"
    );
    let removed = decided(&bash("rm -rf secrets"), &USUAL, &tree);
    assert_denied(&removed, GateStage::Shell);
    assert_allowed(&decided(&bash("echo x > src/a"), &USUAL, &tree));
}

#[test]
fn reading_is_free_but_for_the_gates_own_state() {
    let tree = Tree::new();
    let read = |path: &str| call("Read", json!({"file_path": path}));
    assert_allowed(&decided(&read("/etc/passwd"), &USUAL, &tree));
    let own = decided(&read("/state/hook-gate/S1/policy.json"), &USUAL, &tree);
    assert_denied(&own, GateStage::SelfProtection);
    let own = decided(&bash("cat /state/hook-gate/receipt.key"), &USUAL, &tree);
    assert_denied(&own, GateStage::SelfProtection);
}

#[test]
fn an_unknown_tool_is_refused_outside_the_sandbox() {
    let tree = Tree::new();
    for tool in ["mcp__fs__write_file", "frobnicate", "Write ", "Writе"] {
        assert_eq!(tool_class(tool), ToolClass::Unknown, "{tool}");
        let decision = decided(&call(tool, json!({"path": "src/x"})), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
    }
    let sandboxed = super::session(&USUAL, true);
    let ask = |path: &str| {
        caretaker::tool_gate::decide(
            &call("mcp__fs__write_file", json!({"path": path})),
            caretaker::tool_gate::Standing::Gated(&sandboxed),
            caretaker::tool_gate::Posture::Closed,
            &tree,
            &caretaker::tool_gate::NoStages,
        )
    };
    // Inside the sandbox its paths count all the same.
    assert_allowed(&ask("src/x"));
    assert_denied(&ask("secrets/x"), GateStage::PathPolicy);
}

/// Claude Code's sub-agents run its hooks for every call of theirs; of the others that is not known.
#[test]
fn sub_agents_whose_calls_are_not_known_to_be_hooked_are_refused() {
    let tree = Tree::new();
    for tool in ["Task", "Agent"] {
        assert_allowed(&decided(&call(tool, json!({"prompt": "x"})), &USUAL, &tree));
    }
    for tool in ["task", "agent", "AGENT"] {
        let decision = decided(&call(tool, json!({"prompt": "x"})), &USUAL, &tree);
        assert_denied(&decision, GateStage::PathPolicy);
    }
}

#[test]
fn a_policy_that_enforces_nothing_lets_everything_pass() {
    let document = json!({"v": 1, "task_id": "t", "path_allowlist": ["", "  "], "producers": []});
    let policy = caretaker::tool_gate::Policy::parse(document.to_string().as_bytes()).unwrap();
    assert!(policy.enforces_nothing());
    let session = caretaker::tool_gate::Session {
        policy,
        sandboxed: false,
        profile: None,
    };
    for call in [
        write("secrets/x"),
        bash("python3 x.py"),
        call("frobnicate", json!({})),
    ] {
        let decision = caretaker::tool_gate::decide(
            &call,
            caretaker::tool_gate::Standing::Gated(&session),
            caretaker::tool_gate::Posture::Closed,
            &Tree::new(),
            &caretaker::tool_gate::NoStages,
        );
        assert_allowed(&decision);
    }
}
