//! The command as its users meet it: what it prints, and its exit code.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn caretaker(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A change document with one added file; its stated digest is right only for the path `src/auth/token.rs`.
fn document(path: &str, path_hex: &str, oid: &str, digest: &str) -> String {
    let zero = "0".repeat(40);
    format!(
        r#"{{"object_format":"sha1","count":1,"digest":"{digest}","entries":[{{"path":"{path}","path_hex":"{path_hex}","old_mode":"000000","new_mode":"100644","old_oid":"{zero}","new_oid":"{oid}"}}]}}"#
    )
}

fn check(rules: &str, changes: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("rules.yaml"), rules).unwrap();
    std::fs::write(directory.path().join("changes.json"), changes).unwrap();
    let arguments = [
        "gate",
        "check",
        "--json",
        "--rules",
        "rules.yaml",
        "--changes",
        "changes.json",
    ];
    let output = caretaker(directory.path(), &arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn token_change() -> String {
    use caretaker::change::{ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, Side};
    let new = Side {
        mode: Mode::Regular,
        oid: "a".repeat(40).parse().unwrap(),
    };
    let entry = FileChange {
        path: "src/auth/token.rs".parse().unwrap(),
        old: Side::absent(ObjectFormat::Sha1),
        new,
    };
    let set = ChangeSet::new(ObjectFormat::Sha1, vec![entry]).unwrap();
    serde_json::to_string(&ChangeDocument::from(&set)).unwrap()
}

#[test]
fn a_denied_path_exits_with_one_and_names_path_and_rule() {
    // Break it: let `cli::gate::run` answer Done for a denial.
    let (code, out, error) = check("denied: ['src/auth/**']\n", &token_change());
    assert_eq!((code, error.as_str()), (Some(1), ""));
    let decision: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(decision["verdict"], "deny");
    assert_eq!(decision["denied"][0]["path"], "src/auth/token.rs");
    assert_eq!(decision["denied"][0]["rule"], "src/auth/**");
}

#[test]
fn what_cannot_be_measured_needs_approval_and_exits_with_zero() {
    let (code, out, _) = check("denied: ['other/**']\n", &token_change());
    let decision: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &decision["verdict"]),
        (Some(0), &serde_json::json!("approve"))
    );
}

#[test]
fn bad_documents_get_one_error_that_is_said_once_and_nothing_on_standard_output() {
    let (whole, digest) = ("a".repeat(40), "b".repeat(64));
    for (changes, reason) in [
        (document("a\\u0000b", "610062", &whole, &digest), "NUL"),
        (
            document("../x", "2e2e2f78", &whole, &digest),
            ". or .. component",
        ),
        (document("a", "61", "0123456", &digest), "40 or 64"),
        (document("a", "zz", &whole, &digest), "not hexadecimal"),
        (document("a", "61", &whole, &digest), "its entries give"),
        ("[".repeat(1_000_000), "expected value"),
        (String::new(), "EOF"),
    ] {
        let (code, out, error) = check("denied: ['x']\n", &changes);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{error}");
        assert_eq!(error.matches(reason).count(), 1, "{error}");
    }
}

#[test]
fn wrong_usage_exits_with_two() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["gate", "check"][..],
        &["nothing"],
        &["change", "digest", "only-one"],
    ] {
        assert_eq!(
            caretaker(directory.path(), arguments).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_reader_that_stops_early_is_no_fault_and_the_verdict_stays() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("rules.yaml"),
        "denied: ['src/auth/**']\n",
    )
    .unwrap();
    std::fs::write(directory.path().join("changes.json"), token_change()).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args([
            "gate",
            "check",
            "--rules",
            "rules.yaml",
            "--changes",
            "changes.json",
        ])
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(1), 0));
}

#[test]
fn a_person_reads_why() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("changes.json"), token_change()).unwrap();
    let lines = |rules: &str| {
        std::fs::write(directory.path().join("rules.yaml"), rules).unwrap();
        let output = caretaker(
            directory.path(),
            &[
                "gate",
                "check",
                "--rules",
                "rules.yaml",
                "--changes",
                "changes.json",
            ],
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let denied = lines("denied: [{glob: 'src/auth/**', reason: 'logins are ours'}]\n");
    assert!(
        denied.starts_with("deny (functional)\n")
            && denied.contains("src/auth/**")
            && denied.contains("logins are ours"),
        "{denied}"
    );
    let unmeasured = lines("limits: {lines: 5}\n");
    assert!(
        unmeasured.starts_with("approve (functional)\n") && unmeasured.contains("not-measured"),
        "{unmeasured}"
    );
}
