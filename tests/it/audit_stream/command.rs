//! `caretaker audit verify`, as people see it.

use std::path::Path;
use std::process::Command;

use super::written;

fn audit(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .env_clear()
        .env("CARETAKER_HOME", home)
        .args(["audit", "verify"])
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (
        output.status.code(),
        text.replace(&home.display().to_string(), "HOME"),
    )
}

#[test]
fn a_person_verifies_the_stream_of_this_installation() {
    let home = tempfile::tempdir().unwrap();
    let stream = written(&home.path().join("audit"), 3, 1 << 20);
    let (code, text) = audit(home.path(), &[]);
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(text);
    let (code, text) = audit(home.path(), &["--key", &stream.key().to_string(), "--json"]);
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(text);
}

#[test]
fn what_was_changed_is_named_with_its_place() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("audit");
    written(&folder, 3, 1 << 20);
    let file = folder.join("00000000000000000000.ndjson");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"number\":1", "\"number\":7")).unwrap();
    let (code, text) = audit(home.path(), &[file.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(text);
}

#[test]
fn what_is_not_there_is_said() {
    let home = tempfile::tempdir().unwrap();
    let (code, text) = audit(home.path(), &[]);
    assert_eq!(code, Some(3));
    insta::assert_snapshot!(text);
    let (code, text) = audit(home.path(), &["--key", "nonsense", "somewhere.ndjson"]);
    assert_eq!(code, Some(3));
    insta::assert_snapshot!(text);
}
