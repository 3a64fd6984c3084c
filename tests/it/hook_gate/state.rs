//! The gate's state: out of the agent's reach, for its owner alone, and refused when it was changed.

use serde_json::json;

use super::{Desk, mode, policy};

#[test]
fn state_lies_outside_of_the_worktree_and_is_the_owners() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    assert_eq!(mode(&desk.session_folder()), 0o700);
    for file in ["policy.json", "session.json", "receipts.jsonl", "head.json"] {
        assert_eq!(mode(&desk.session_folder().join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&desk.home().join("hook-gate/receipt.key")), 0o600);
    assert!(
        std::fs::read_dir(desk.work()).unwrap().count() == 2,
        "nothing in the worktree"
    );
}

#[test]
fn a_home_inside_of_the_worktree_is_refused() {
    let desk = Desk::empty();
    let file = desk.path("policy.json");
    std::fs::write(&file, policy().to_string()).unwrap();
    let mut command = desk.command(&["hook-gate", "register", "--session", "S1", "--policy"]);
    command
        .arg(&file)
        .arg("--workdir")
        .arg(desk.work())
        .env("CARETAKER_HOME", desk.work().join("src/home"));
    let ran = super::ran(command, b"");
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr
            .contains("set CARETAKER_HOME to a folder elsewhere"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_policy_that_was_exchanged_is_refused() {
    let desk = Desk::new();
    let file = desk.session_folder().join("policy.json");
    let mut wider = policy();
    wider["path_allowlist"] = json!(["*"]);
    std::fs::write(&file, wider.to_string()).unwrap();
    let reason = desk.write("src/a").blocked();
    assert!(
        reason.contains("not the policy that the session was registered with"),
        "{reason}"
    );
    for broken in ["", "{", "{\"v\":99}", "[]"] {
        std::fs::write(&file, broken).unwrap();
        desk.write("src/a").blocked();
        desk.stop().blocked();
    }
    std::fs::remove_file(&file).unwrap();
    assert!(
        desk.write("src/a")
            .blocked()
            .contains("its policy is missing")
    );
}

#[test]
fn a_damaged_registration_is_refused() {
    let desk = Desk::new();
    std::fs::write(desk.session_folder().join("session.json"), "{}").unwrap();
    desk.write("src/a").blocked();
}

#[test]
fn registering_twice_is_the_same_or_refused() {
    let desk = Desk::new();
    desk.register("S1", &policy(), &[]).allowed_to_register();
    let mut other = policy();
    other["task_id"] = json!("task-2");
    let ran = desk.register("S1", &other, &[]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("registered already"), "{}", ran.stderr);
    desk.write("src/a").allowed();
}

/// `security.failure_posture: open` is the neighbour's stance; it is pinned with the session.
#[test]
fn an_open_posture_lets_through_what_cannot_be_checked() {
    let desk = Desk::empty();
    let config = desk.path("caretaker.yaml");
    std::fs::write(&config, "security: {failure_posture: open}\n").unwrap();
    let ran = desk.register("S1", &policy(), &["--config", config.to_str().unwrap()]);
    ran.allowed_to_register();
    desk.check("PreToolUse", b"garbage").allowed();
    desk.write("secrets/x").blocked();
    std::fs::remove_file(desk.session_folder().join("policy.json")).unwrap();
    let ran = desk.write("secrets/x");
    ran.allowed();
    assert!(ran.stderr.contains("its policy is missing"));
}
