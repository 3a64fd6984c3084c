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

fn pipe(path: &std::path::Path) {
    drop(std::fs::remove_file(path));
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn a_pipe_in_a_files_place_is_not_waited_for() {
    for name in [
        "policy.json",
        "session.json",
        "head.json",
        "receipts.jsonl",
        "lock",
        "../receipt.key",
    ] {
        let desk = Desk::new();
        desk.write("src/a").allowed();
        pipe(&desk.session_folder().join(name));
        desk.write("src/a").blocked();
    }
    let desk = Desk::empty();
    let policy = desk.path("pipe.json");
    pipe(&policy);
    let work = desk.work();
    let ran = desk.run(
        &[
            "hook-gate",
            "register",
            "--session",
            "S1",
            "--policy",
            policy.to_str().unwrap(),
            "--workdir",
            work.to_str().unwrap(),
        ],
        b"",
    );
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("no ordinary file"), "{}", ran.stderr);
    // A worktree's own policy is the agent's to replace.
    let folder = desk.work().join(".sdd/runtime/hook_gate");
    std::fs::create_dir_all(&folder).unwrap();
    pipe(&folder.join("S1.json"));
    let event = br#"{"tool_name":"Write","tool_input":{"file_path":"src/a"}}"#;
    desk.run(
        &[
            "hook-gate",
            "check",
            "--compat",
            "--session",
            "S1",
            "--event",
            "PreToolUse",
        ],
        event,
    )
    .blocked();
}

#[test]
fn a_state_that_others_may_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    };
    for folder in ["home", "home/hook-gate", "home/hook-gate/S1"] {
        let desk = Desk::new();
        desk.write("src/a").allowed();
        open(&desk.path(folder));
        let reason = desk.write("src/a").blocked();
        assert!(reason.contains("others can write it"), "{folder}: {reason}");
        desk.stop().blocked();
    }
    let desk = Desk::empty();
    open(&desk.home());
    assert_eq!(desk.register("S1", &policy(), &[]).code, 1);
    for folder in ["hook-gate", "hook-gate/S1"] {
        let desk = Desk::new();
        let place = desk.home().join(folder);
        std::fs::rename(&place, desk.path("moved")).unwrap();
        std::os::unix::fs::symlink(desk.path("moved"), &place).unwrap();
        desk.write("src/a").blocked();
    }
}

#[test]
fn a_lost_key_is_not_replaced() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    let key = desk.home().join("hook-gate/receipt.key");
    std::fs::remove_file(&key).unwrap();
    let reason = desk.write("src/a").blocked();
    assert!(reason.contains("it is gone, while it signed"), "{reason}");
    assert!(!key.exists());
    // Nor for another session, nor for one that begins.
    assert_eq!(desk.register("S2", &policy(), &[]).code, 1);
    assert!(!key.exists());
}

#[test]
fn many_receipts_twice_are_not_read_to_the_end() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    let file = desk.session_folder().join("receipts.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let last = text.lines().last().unwrap();
    let mut many = text.clone();
    for _ in 0..1_000_000 / text.lines().count() {
        many.push_str(last);
        many.push('\n');
    }
    std::fs::write(&file, many).unwrap();
    let begun = std::time::Instant::now();
    let home = caretaker::hook_gate::Home::new(&desk.home());
    let report = caretaker::hook_gate::verify_session(&home, &desk.session_folder()).unwrap();
    assert_eq!(
        report.verdict,
        caretaker::hook_gate::EvidenceVerdict::Invalid
    );
    assert!(
        report
            .failures
            .iter()
            .any(|failure| failure.contains("was not read")),
        "{:?}",
        report.failures.last()
    );
    assert!(begun.elapsed() < std::time::Duration::from_mins(1), "slow");
}
