//! The demo, as the README's first command runs it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use sqlx::sqlite::SqlitePool;

fn demo(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .arg("demo")
        .args(arguments)
        .env("CARETAKER_HOME", home)
        .output()
        .unwrap()
}

fn document(scenario: &str) -> Value {
    let document = ended(scenario);
    assert_eq!(document["ledger"]["verdict"], "valid");
    document
}

/// How the scenario ended, which was as it should.
fn ended(scenario: &str) -> Value {
    let home = tempfile::tempdir().unwrap();
    let output = demo(home.path(), &["--json", "--scenario", scenario]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["scenario"], scenario);
    document
}

#[test]
fn a_fix_is_merged_and_proven() {
    let document = document("fix");
    assert_eq!(document["stage"], "resolved");
    assert_eq!(document["ledger"]["events"], 4);
    assert_eq!(document["pull_request"], 1);
    assert_eq!(document["merge_commit"].as_str().unwrap().len(), 40);
    assert_eq!(document["change_digest"].as_str().unwrap().len(), 64);
}

#[test]
fn a_changed_pull_request_is_not_merged() {
    let document = document("tampered");
    assert_eq!(document["stage"], "escalated");
    assert!(document["merge_commit"].is_null());
}

#[test]
fn a_test_that_fails_by_chance_is_reported_and_not_fixed() {
    let document = ended("flaky");
    assert_eq!(document["stage"], "closed");
    assert_eq!(document["closed_reason"], "flaky");
    assert_eq!(document["ledger"]["events"], 0);
    assert!(document["pull_request"].is_null());
}

#[test]
fn a_person_sees_a_flaky_test_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let output = demo(home.path(), &["--scenario", "flaky"]);
    assert!(output.status.success(), "{output:?}");
    let told = filtered(&String::from_utf8(output.stdout).unwrap());
    let mut words = Vec::new();
    let mut after_run = false;
    for word in told.split(' ') {
        let number = after_run && word.bytes().all(|byte| byte.is_ascii_digit());
        words.push(if number { "[run]" } else { word });
        after_run = word == "run";
    }
    insta::assert_snapshot!(words.join(" "));
}

/// What differs from run to run.
fn filtered(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        // Which boundary this machine has is not the story's concern.
        let line = match (line.find("the sandbox ("), line.find(") too")) {
            (Some(start), Some(end)) => {
                format!("{}the sandbox{}", &line[..start], &line[end + 1..])
            }
            _ => line.to_owned(),
        };
        let words: Vec<String> = line
            .split(' ')
            .map(|word| {
                let digits = word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
                match word {
                    _ if digits => "[digest]".to_owned(),
                    _ if word.starts_with("http://127.0.0.1:") => {
                        let path = word.splitn(4, '/').nth(3).unwrap_or_default();
                        format!("http://[loopback]/{path}")
                    }
                    _ if word.starts_with("inc-") => "[incident]".to_owned(),
                    _ => word.to_owned(),
                }
            })
            .collect();
        lines.push(words.join(" ").trim_end().to_owned());
    }
    let text = lines.join("\n");
    match text.rsplit_once(" after ") {
        Some((before, _)) => format!("{before} after [time]"),
        None => text,
    }
}

#[test]
fn a_person_sees_a_refusal_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let output = demo(home.path(), &["--scenario", "denied"]);
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(filtered(&String::from_utf8(output.stdout).unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_changed_byte_of_a_kept_ledger_is_named() {
    let home = tempfile::tempdir().unwrap();
    let output = demo(home.path(), &["--json", "--scenario", "denied", "--keep"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let incident = document["incident"].as_str().unwrap();
    let verify = || {
        Command::new(env!("CARGO_BIN_EXE_caretaker"))
            .args(["ledger", "verify", incident, "--json"])
            .env("CARETAKER_HOME", home.path())
            .output()
            .unwrap()
    };
    assert_eq!(verify().status.code(), Some(0));
    let url = format!("sqlite://{}", home.path().join("caretaker.db").display());
    let pool = SqlitePool::connect(&url).await.unwrap();
    sqlx::query("DROP TRIGGER ledger_no_update")
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query("UPDATE ledger SET keyid = 'X' || substr(keyid, 2) WHERE seq = 1")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    let verified = verify();
    assert_eq!(verified.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["verdict"], "invalid");
    assert_eq!(report["failures"][0]["seq"], 1);
    assert_eq!(report["failures"][0]["rule"], "column");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_ledger_is_exported_for_other_programs() {
    let home = tempfile::tempdir().unwrap();
    let output = demo(home.path(), &["--json", "--scenario", "denied", "--keep"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let incident = document["incident"].as_str().unwrap();
    let folder = home.path().join("exports");
    let export = |more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_caretaker"))
            .args(["ledger", "export-statements", incident, "-o"])
            .arg(&folder)
            .args(more)
            .env("CARETAKER_HOME", home.path())
            .output()
            .unwrap()
    };
    let written = export(&["--unsigned", "--json"]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    let told: Value = serde_json::from_slice(&written.stdout).unwrap();
    let name = "1-verification-summary.json";
    assert_eq!(
        told,
        serde_json::json!({"files": [{"file": name, "predicate_type": "https://slsa.dev/verification_summary/v1"}]})
    );
    let statement: Value =
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap();
    assert_eq!(statement["predicate"]["verificationResult"], "FAILED");
    let again = export(&["--unsigned"]);
    assert_eq!(again.status.code(), Some(1), "nothing is overwritten");

    // Evidence that somebody deleted is noticed here, too, and then nothing is exported.
    let url = format!("sqlite://{}", home.path().join("caretaker.db").display());
    let pool = SqlitePool::connect(&url).await.unwrap();
    for statement in ["DROP TRIGGER evidence_no_delete", "DELETE FROM evidence"] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = export(&["--unsigned"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(!folder.exists());
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("cannot-verify"), "{told}");
}

#[test]
fn a_home_that_is_not_empty_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("mine"), "text").unwrap();
    let output = demo(home.path(), &["--keep"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("is not empty"), "{told}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}
