//! Many hooks at once.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use super::Desk;

#[test]
fn thirty_two_processes_at_once_make_one_chain_without_gaps() {
    let desk = Desk::new();
    let event =
        json!({"tool_name": "Write", "cwd": desk.work(), "tool_input": {"file_path": "src/a"}})
            .to_string();
    let mut children: Vec<_> = (0..32)
        .map(|_| {
            let mut command = desk.command(&[
                "hook-gate",
                "check",
                "--session",
                "S1",
                "--event",
                "PreToolUse",
            ]);
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    // All of them wait for their event until every one runs.
    for child in &mut children {
        child
            .stdin
            .take()
            .unwrap()
            .write_all(event.as_bytes())
            .unwrap();
    }
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let numbers: Vec<_> = desk
        .receipts()
        .iter()
        .map(|gate| gate["seq"].as_i64().unwrap())
        .collect();
    // Break it: leave out the lock of `hook_gate::record`; this fails.
    assert_eq!(numbers, (0..=32).collect::<Vec<_>>());
}
