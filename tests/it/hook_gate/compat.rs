//! The neighbour's own policy files, with its words.

use serde_json::{Value, json};

use super::{Desk, Ran};

fn desk(policy: &Value) -> Desk {
    let desk = Desk::empty();
    let folder = desk.work().join(".sdd/runtime/hook_gate");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("S1.json"), policy.to_string()).unwrap();
    desk
}

fn check(desk: &Desk, event: &str, input: &Value) -> Ran {
    desk.run(
        &[
            "hook-gate",
            "check",
            "--session",
            "S1",
            "--event",
            event,
            "--workdir",
            ".",
            "--compat",
        ],
        input.to_string().as_bytes(),
    )
}

fn write(path: &str) -> Value {
    json!({"tool_name": "Write", "tool_input": {"file_path": path}})
}

#[test]
fn its_policy_gates_its_session() {
    let desk = desk(&super::policy());
    check(&desk, "PreToolUse", &write("src/a")).allowed();
    assert_eq!(
        check(&desk, "PreToolUse", &write("secrets/x")).blocked(),
        "out-of-scope write refused: secrets/x not under allowlist ['docs/*.md', 'src/']"
    );
    // Its own file is the gate's state here.
    check(
        &desk,
        "PreToolUse",
        &write(".sdd/runtime/hook_gate/S1.json"),
    )
    .blocked();
    check(&desk, "Stop", &json!({})).allowed();
}

#[test]
fn its_producers_decide_about_the_end_of_a_turn() {
    let mut policy = super::policy();
    policy["producers"] = json!([
        {"name": "tests", "kind": "test", "command": ["false"], "required": true},
        {"name": "lint", "kind": "lint", "command": ["false"], "required": true},
        {"name": "wish", "kind": "generic", "command": ["false"], "required": false},
    ]);
    let desk = desk(&policy);
    assert_eq!(
        check(&desk, "Stop", &json!({})).blocked(),
        "completion blocked: required verification failed (tests, lint)"
    );
}

/// Where the neighbour drops a policy that it cannot read and allows everything, this one refuses.
#[test]
fn a_policy_that_cannot_be_read_is_a_refusal_and_none_at_all_is_not() {
    let mut unknown = super::policy();
    unknown["producers"][0]["kind"] = json!("wishes");
    for policy in [unknown, json!({"v": 99}), json!("x")] {
        check(&desk(&policy), "PreToolUse", &write("src/a")).blocked();
    }
    let ran = check(&Desk::empty(), "PreToolUse", &write("secrets/x"));
    ran.allowed();
    assert!(ran.stderr.contains("never registered"));
}

#[test]
fn its_receipts_lie_outside_of_the_worktree_too() {
    let desk = desk(&super::policy());
    check(&desk, "PreToolUse", &write("src/a")).allowed();
    let places: Vec<_> = std::fs::read_dir(desk.home().join("hook-gate/worktrees"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("S1"))
        .collect();
    assert_eq!(caretaker::hook_gate::gates(&places[0]).unwrap().len(), 2);
}
