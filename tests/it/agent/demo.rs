//! The demo's scripts against the repositories that the demo plants: from the CI log to a fix that a real `cargo test` accepts.

use std::path::{Path, PathBuf};
use std::process::Command;

use caretaker::agent::reader::read;
use caretaker::agent::{Coder as _, CoderTask, ScriptedCoder};

use super::task;

const PERCENT: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../../../src/forge/plants/percent/manifest.toml"),
    ),
    (
        "Cargo.lock",
        include_str!("../../../src/forge/plants/percent/lock.toml"),
    ),
    (
        "src/lib.rs",
        include_str!("../../../src/forge/plants/percent/lib.rs"),
    ),
    (
        "src/percent.rs",
        include_str!("../../../src/forge/plants/percent/percent.rs"),
    ),
    (
        "src/query.rs",
        include_str!("../../../src/forge/plants/percent/query.rs"),
    ),
];
const SESSION: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../../../src/forge/plants/session/manifest.toml"),
    ),
    (
        "Cargo.lock",
        include_str!("../../../src/forge/plants/session/lock.toml"),
    ),
    (
        "src/lib.rs",
        include_str!("../../../src/forge/plants/session/lib.rs"),
    ),
    (
        "src/greeting.rs",
        include_str!("../../../src/forge/plants/session/greeting.rs"),
    ),
    (
        "src/auth/mod.rs",
        include_str!("../../../src/forge/plants/session/auth_mod.rs"),
    ),
    (
        "src/auth/token.rs",
        include_str!("../../../src/forge/plants/session/token.rs"),
    ),
];

fn write(tree: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let place = tree.join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }
}

/// Whether one test target of the crate passes.
fn passes(tree: &Path, target: &[&str]) -> bool {
    let cargo = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let run = Command::new(cargo)
        .args(["test", "--locked", "--offline"])
        .args(target)
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", tree.join("target"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(
        said.contains("running"),
        "it compiles and runs: {}",
        String::from_utf8_lossy(&run.stderr)
    );
    run.status.success()
}

async fn follow(files: &[(&str, &str)], log: &str, test: &str) -> Vec<String> {
    let tracked = |path: &str| files.iter().any(|(known, _)| *known == path);
    let stamped: String = log
        .lines()
        .map(|line| format!("2026-07-16T08:12:33.1234567Z {line}\n"))
        .collect();
    let task = CoderTask {
        extraction: read(stamped.as_bytes(), 0, &tracked).0.facts,
        ..task()
    };
    let tree = tempfile::tempdir().unwrap();
    write(tree.path(), files);
    let coder = ScriptedCoder::for_demo().unwrap();
    let diagnosis = coder.diagnose(&task, tree.path(), None).await.unwrap();
    assert!(diagnosis.cause.len() <= 500 && diagnosis.summary.len() <= 500);
    assert!(!passes(tree.path(), &["--lib"]), "the plant is red");
    let fix = coder.fix(&task, tree.path(), None).await.unwrap();
    assert!(fix.title.len() <= 72 && fix.summary.len() <= 2000);
    assert!(
        passes(tree.path(), &["--lib"]) && passes(tree.path(), &["--test", test]),
        "the fix is green"
    );
    // The new test alone, on the code as it was.
    write(tree.path(), files);
    assert!(
        !passes(tree.path(), &["--test", test]),
        "the new test proves the fix"
    );
    diagnosis.files.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_percent_plant_is_fixed_with_a_test_that_fails_without_the_fix() {
    let log = include_str!("../../../src/forge/plants/percent/log.txt");
    let files = follow(PERCENT, log, "hex_digits").await;
    assert_eq!(files, ["src/percent.rs", "tests/hex_digits.rs"]);
}

#[tokio::test]
async fn the_session_plant_is_diagnosed_in_the_file_that_is_denied() {
    let log = include_str!("../../../src/forge/plants/session/log.txt");
    let files = follow(SESSION, log, "expiry").await;
    assert_eq!(files, ["src/auth/token.rs", "tests/expiry.rs"]);
}
