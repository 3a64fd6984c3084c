//! Every outcome is on record, in one chain without gaps; what is not on record does not go on.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::Desk;

#[test]
fn every_outcome_is_a_numbered_receipt_that_names_its_stage() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    desk.write("secrets/a").blocked();
    desk.bash("make").blocked();
    desk.check("PreToolUse", b"garbage").blocked();
    desk.check("SessionStart", b"{}").allowed();
    desk.stop().allowed();
    let found: Vec<String> = desk
        .receipts()
        .iter()
        .map(|gate| {
            format!(
                "{} {} {} {} {} {} advisory={}",
                gate["seq"],
                gate["session"],
                gate["door"],
                gate["tool"],
                gate["decision"],
                gate["stage"],
                gate["advisory"]
            )
        })
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r#"
    0 "S1" "hook-gate" null null null advisory=true
    1 "S1" "hook-gate" "Write" "ALLOW" "nothing-against" advisory=true
    2 "S1" "hook-gate" "Write" "DENY" "path-policy" advisory=true
    3 "S1" "hook-gate" "Bash" "DENY" "shell" advisory=true
    4 "S1" "hook-gate" "unreadable" "DENY" "session" advisory=true
    5 "S1" "hook-gate" "session-start" "ALLOW" "session" advisory=true
    6 "S1" "hook-gate" "completion" "ALLOW" "completion" advisory=true
    "#);
}

/// Root can write anywhere, so the file is made one that nobody can append to: a folder.
fn without_receipts(desk: &Desk) {
    std::fs::create_dir(desk.session_folder().join("receipts.jsonl")).unwrap();
}

#[test]
fn without_a_receipt_nothing_consequential_goes_on() {
    let desk = Desk::new();
    without_receipts(&desk);
    for ran in [
        desk.write("src/a"),
        desk.bash("ls"),
        desk.before("WebFetch", &json!({"url": "https://example.com"})),
    ] {
        let reason = ran.blocked();
        assert!(reason.contains("cannot be written"), "{reason}");
    }
    // Reading goes on, with a word to the operator.
    let read = desk.before("Read", &json!({"file_path": "src/a"}));
    read.allowed();
    assert!(read.stderr.contains("cannot be written"));
    // What was refused anyway stays refused for its own reason.
    assert!(desk.write("secrets/a").blocked().contains("out-of-scope"));
    desk.stop().blocked();
}

#[test]
fn a_chain_that_lost_its_end_is_not_continued() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    desk.write("src/b").allowed();
    let file = desk.session_folder().join("receipts.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: String = text.split_inclusive('\n').take(2).collect();
    std::fs::write(&file, kept).unwrap();
    let reason = desk.write("src/c").blocked();
    assert!(
        reason.contains("does not end where its head says"),
        "{reason}"
    );
}

/// A process that died between the line and the head, or in the middle of a line, leaves a chain that goes on.
#[test]
fn what_a_dead_process_left_is_picked_up() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    let head = std::fs::read(desk.session_folder().join("head.json")).unwrap();
    desk.write("src/b").allowed();
    std::fs::write(desk.session_folder().join("head.json"), head).unwrap();
    let file = desk.session_folder().join("receipts.jsonl");
    let mut text = std::fs::read(&file).unwrap();
    text.extend_from_slice(b"{\"receipt_hash\":\"sha256:ab");
    std::fs::write(&file, text).unwrap();
    desk.write("src/c").allowed();
    let numbers: Vec<_> = desk
        .receipts()
        .iter()
        .map(|gate| gate["seq"].clone())
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3].map(|number| json!(number)));
}

#[test]
fn a_key_that_others_can_write_is_not_used() {
    let desk = Desk::new();
    let key = desk.home().join("hook-gate/receipt.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o666)).unwrap();
    desk.write("src/a").blocked();
}

#[test]
fn a_head_that_is_gone_is_not_made_again() {
    let desk = Desk::new();
    desk.write("src/a").allowed();
    std::fs::remove_file(desk.session_folder().join("head.json")).unwrap();
    let reason = desk.write("src/a").blocked();
    assert!(
        reason.contains("it is gone, and with it how far the receipts go"),
        "{reason}"
    );
    // With the receipts away as well nothing shows that there were any, but for the registration.
    std::fs::remove_file(desk.session_folder().join("receipts.jsonl")).unwrap();
    desk.write("src/a").blocked();
    assert!(!desk.session_folder().join("head.json").exists());
}
