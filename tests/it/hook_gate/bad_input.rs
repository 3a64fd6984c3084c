//! What nobody should send, and what becomes of it.

use serde_json::json;

use super::Desk;

#[test]
fn an_event_that_is_none_is_refused_for_a_registered_session() {
    let desk = Desk::new();
    for input in [
        &b""[..],
        b"%%% not json {",
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"{}",
        b"{\"tool_name\":",
    ] {
        let reason = desk.check("PreToolUse", input).blocked();
        assert!(reason.contains("the hook event"), "{reason}");
    }
    let deep = format!(
        "{{\"tool_name\":\"Write\",\"tool_input\":{}",
        "[".repeat(1 << 20)
    );
    desk.check("PreToolUse", deep.as_bytes()).blocked();
    // Stop needs nothing of the event.
    desk.check("Stop", b"garbage").allowed();
}

/// A hundred megabytes are refused, and never held.
#[test]
fn an_event_of_a_hundred_megabytes_is_refused_without_being_held() {
    let desk = Desk::new();
    let mut event =
        b"{\"tool_name\":\"Write\",\"tool_input\":{\"file_path\":\"src/a\",\"content\":\"".to_vec();
    event.resize(100 << 20, b'x');
    let mut command = std::process::Command::new("/bin/sh");
    let line = format!(
        "ulimit -v 200000; exec {} hook-gate check --session S1 --event PreToolUse",
        super::program()
    );
    command
        .args(["-c", &line])
        .env_clear()
        .env("CARETAKER_HOME", desk.home())
        .current_dir(desk.work());
    let reason = super::ran(command, &event).blocked();
    assert!(reason.contains("more than 8388608 bytes"), "{reason}");
}

#[test]
fn an_unsafe_session_id_reaches_no_file() {
    let desk = Desk::new();
    let event = json!({"tool_name": "Write", "tool_input": {"file_path": "secrets/x"}}).to_string();
    let long = "a".repeat(129);
    for id in [
        "../S1",
        "S1/../S1",
        "S1/",
        "",
        ".",
        "S 1",
        "S1\n",
        "ä",
        long.as_str(),
        "-x/",
        "~",
    ] {
        let ran = desk.run(
            &[
                "hook-gate",
                "check",
                "--session",
                id,
                "--event",
                "PreToolUse",
            ],
            event.as_bytes(),
        );
        ran.allowed();
        assert!(
            ran.stderr.contains("not one that the gate hands out"),
            "{id} {}",
            ran.stderr
        );
    }
    assert!(desk.receipts().is_empty());
    assert_eq!(desk.register("../S2", &super::policy(), &[]).code, 1);
}

#[test]
fn a_session_that_nobody_registered_passes_with_a_warning() {
    let desk = Desk::new();
    let ran = desk.run(
        &[
            "hook-gate",
            "check",
            "--session",
            "other",
            "--event",
            "PreToolUse",
        ],
        br#"{"tool_name":"Write","tool_input":{"file_path":"/etc/passwd"}}"#,
    );
    ran.allowed();
    assert!(ran.stderr.contains("never registered"));
}

#[test]
fn usage_errors_are_a_two_with_words() {
    let desk = Desk::new();
    for arguments in [
        &[
            "hook-gate",
            "check",
            "--session",
            "S1",
            "--event",
            "PostToolUse",
        ][..],
        &["hook-gate", "check", "--session", "S1"],
        &["hook-gate", "check", "--event", "Stop"],
        &[
            "hook-gate",
            "check",
            "--session",
            "S1",
            "--event",
            "Stop",
            "--nonsense",
        ],
        &[
            "hook-gate",
            "check",
            "--session",
            "S1",
            "--event",
            "Stop",
            "--timestamp",
            "soon",
        ],
    ] {
        let ran = desk.run(arguments, b"");
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains("error:"), "{ran:?}");
    }
}

/// Time that runs backwards changes neither numbers nor order.
#[test]
fn clock_jumps_leave_the_chain_whole() {
    let desk = Desk::new();
    for at in [
        "2000000000",
        "1000000000",
        "-5",
        "0",
        "9007199254740991",
        "-9223372036854775808",
    ] {
        let ran = desk.run(
            &[
                "hook-gate",
                "check",
                "--session",
                "S1",
                "--event",
                "PreToolUse",
                "--timestamp",
                at,
            ],
            br#"{"tool_name":"Write","tool_input":{"file_path":"src/a"}}"#,
        );
        ran.allowed();
    }
    let numbers: Vec<_> = desk
        .receipts()
        .iter()
        .map(|gate| gate["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_bad_policy_is_not_registered() {
    let desk = Desk::empty();
    for (policy, words) in [
        (json!({"v": 2, "task_id": "t"}), "version 2 is not known"),
        (json!({"v": 1}), "task_id"),
        (
            json!({"v": 1, "task_id": "t", "producers": [{"name": "x", "kind": "y", "command": ["z"]}]}),
            "unknown variant",
        ),
    ] {
        let ran = desk.register("S1", &policy, &[]);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(!desk.session_folder().join("session.json").exists());
    }
}
