//! What is found among a call's arguments: everything that a client may act on, and not only the first of it.

use std::time::{Duration, Instant};

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{Answer, Call, MAXIMUM_PATHS};
use serde_json::{Value, json};

use super::{Tree, USUAL, assert_allowed, assert_denied, call, decided};

#[test]
fn every_command_of_a_call_is_judged() {
    let tree = Tree::new();
    for arguments in [
        json!({"command": "ls", "cmd": "echo x > secrets/x"}),
        json!({"command": "ls", "script": "echo x > secrets/x"}),
        json!({"command": "ls", "Command": "echo x > secrets/x"}),
        json!({"Cmd": "echo x > secrets/x"}),
        json!({"command": "ls", "command_line": "echo x > secrets/x"}),
        json!({"command": "ls", "args": {"command": "echo x > secrets/x"}}),
        json!({"commands": ["ls", "echo x > secrets/x"]}),
        json!({"commands": [{"command": "ls"}, {"command": "echo x > secrets/x"}]}),
        json!({"command": ["ls"], "cmd": ["touch", "secrets/x"]}),
        json!({"command": "ls", "commands": [["touch", "secrets/x"]]}),
    ] {
        let decision = decided(&call("Bash", arguments.clone()), &USUAL, &tree);
        assert_denied(&decision, GateStage::Shell);
        let allowed: Value =
            serde_json::from_str(&arguments.to_string().replace("secrets/x", "src/x")).unwrap();
        assert_allowed(&decided(&call("Bash", allowed), &USUAL, &tree));
    }
}

#[test]
fn a_command_that_is_no_text_is_refused_beside_one_that_is() {
    for arguments in [
        json!({"command": "ls", "cmd": 7}),
        json!({"command": "ls", "cmd": ["ls", 7]}),
        json!({"commands": 7}),
        json!({"description": "nothing"}),
    ] {
        let decision = decided(&call("Bash", arguments), &USUAL, &Tree::new());
        assert_denied(&decision, GateStage::Shell);
    }
}

#[test]
fn what_surrounds_a_command_is_judged_too() {
    let tree = Tree::new();
    for arguments in [
        json!({"cmd": "ls", "shell": "src/evil"}),
        json!({"cmd": "ls", "shell": "/tmp/bash"}),
        json!({"cmd": "ls", "env": {"LD_PRELOAD": "src/x.so"}}),
        json!({"cmd": "ls", "Environment": {"PATH": "src"}}),
        json!({"cmd": "ls", "stdin": "x"}),
        json!({"cmd": "ls", "WorkDir": "/elsewhere", "command": "echo x > a"}),
    ] {
        let decision = decided(&call("exec_command", arguments), &["*"], &tree);
        assert_denied(&decision, GateStage::Shell);
    }
    let usual = json!({"cmd": "ls", "shell": "/bin/bash", "env": {"LANG": "C"}, "workdir": "src", "timeout": 5});
    assert_allowed(&decided(&call("exec_command", usual), &["*"], &tree));
}

#[test]
fn a_call_that_names_too_much_is_refused_fast() {
    let many = |count: usize| -> Vec<String> { (0..count).map(|n| format!("src/{n}")).collect() };
    let begun = Instant::now();
    for call in [
        call("read_many_files", json!({"paths": many(500_000)})),
        call("Write", json!({"file_path": many(500_000)})),
        call(
            "Bash",
            json!({"command": format!("touch {}", many(90_000).join(" "))}),
        ),
        call(
            "Bash",
            json!({"command": format!("cat {}", many(90_000).join(" "))}),
        ),
        call("Bash", json!({"commands": vec!["ls"; 100_000]})),
        call(
            "apply_patch",
            json!({"input": format!(
                "*** Begin Patch\n{}*** End Patch",
                many(100_000).iter().map(|file| format!("*** Delete File: {file}\n")).collect::<String>()
            )}),
        ),
    ] {
        let decision = decided(&call, &USUAL, &Tree::new());
        assert_denied(&decision, GateStage::PathPolicy);
        assert_eq!(decision.code, "too-much-at-once");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "slow");
    let enough = call("Write", json!({"file_path": many(MAXIMUM_PATHS)}));
    assert_allowed(&decided(&enough, &USUAL, &Tree::new()));
}

/// The sandbox lets through what cannot be told, but not what was not looked at.
#[test]
fn too_much_is_refused_in_the_sandbox_too() {
    let session = super::session(&USUAL, true);
    let arguments = json!({"commands": vec!["ls"; 1000]});
    let decision = caretaker::tool_gate::decide(
        &call("Bash", arguments),
        caretaker::tool_gate::Standing::Gated(&session),
        caretaker::tool_gate::Posture::Closed,
        &Tree::new(),
        &caretaker::tool_gate::NoStages,
    );
    assert_denied(&decision, GateStage::PathPolicy);
}

#[test]
fn a_view_is_one_only_when_nothing_else_is_asked_for() {
    let decoy = json!({"command": "view", "Command": "create", "path": "secrets/x"});
    let decision = decided(&call("str_replace_editor", decoy), &USUAL, &Tree::new());
    assert_eq!(decision.answer, Answer::Deny);
}

#[test]
fn an_event_that_says_something_twice_is_none() {
    for event in [
        r#"{"tool_name":"Read","tool_name":"Write","tool_input":{"file_path":"secrets/x"}}"#,
        r#"{"tool_name":"Write","tool_input":{"file_path":"src/a","file_path":"secrets/x"}}"#,
        r#"{"tool_name":"Write","tool_input":{"file_path":"secrets/x"},"tool_input":{"file_path":"src/a"}}"#,
        r#"{"tool_name":"Write","tool_input":{"edits":[{"file_path":"src/a","file\u005fpath":"secrets/x"}]}}"#,
        r#"{"tool_name":"Write","tool_input":"{\"file_path\":\"src/a\",\"file_path\":\"secrets/x\"}"}"#,
        r#"{"tool_name":"Write","tool_input":{"file_path":"src/a"},"args":{"file_path":"secrets/x"}}"#,
        r#"{"tool_name":"Read","toolName":"Write","tool_input":{"file_path":"secrets/x"}}"#,
    ] {
        assert!(Call::read(event.as_bytes()).is_err(), "{event}");
    }
    // Said twice in the same words it is clear.
    let event = r#"{"tool_name":"Write","toolName":"Write","tool_input":{"file_path":"src/a"},"toolArgs":"{\"file_path\":\"src/a\"}"}"#;
    assert!(Call::read(event.as_bytes()).is_ok());
}
