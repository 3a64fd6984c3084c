//! The end of a turn.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Desk, policy, ran};

fn with_producers(producers: &Value) -> Value {
    let mut policy = policy();
    policy["producers"] = producers.clone();
    policy
}

fn shell(name: &str, script: &str) -> Value {
    json!({"name": name, "kind": "test", "command": ["sh", "-c", script], "required": true})
}

#[test]
fn a_turn_ends_when_every_required_producer_passes() {
    let desk = Desk::with(
        &with_producers(&json!([
            shell("tests", "test -f ready"),
            {"name": "wish", "kind": "generic", "command": ["false"], "required": false},
        ])),
        &[],
    );
    assert_eq!(
        desk.stop().blocked(),
        "completion blocked: required verification failed (tests)"
    );
    // The worktree is where they run.
    std::fs::write(desk.work().join("ready"), "").unwrap();
    desk.stop().allowed();
    let decisions: Vec<_> = desk
        .receipts()
        .iter()
        .map(|gate| gate["decision"].clone())
        .collect();
    assert_eq!(decisions, [Value::Null, json!("DENY"), json!("ALLOW")]);
}

#[test]
fn a_producer_that_cannot_start_hangs_or_floods_has_not_passed() {
    let desk = Desk::with(
        &with_producers(&json!([
            {"name": "none", "kind": "lint", "command": ["/no/such/program"], "required": true},
            shell("killed", "kill -9 $$"),
            shell("flood", "yes"),
        ])),
        &[],
    );
    assert_eq!(
        desk.stop().blocked(),
        "completion blocked: required verification failed (none, killed, flood)"
    );
    let hanging = Desk::with(&with_producers(&json!([shell("slow", "sleep 60")])), &[]);
    let started = std::time::Instant::now();
    let late = hanging.run(
        &[
            "hook-gate",
            "check",
            "--session",
            "S1",
            "--event",
            "Stop",
            "--ttl",
            "1",
        ],
        b"{}",
    );
    late.blocked();
    assert!(started.elapsed().as_secs() < 30);
}

/// No shell reads a producer's words.
#[test]
fn producers_are_programs_and_words() {
    let desk = Desk::with(
        &with_producers(
            &json!([{"name": "t", "kind": "test", "command": ["test", "a;b", "=", "a;b"], "required": true}]),
        ),
        &[],
    );
    desk.stop().allowed();
}

#[test]
fn producers_see_no_secrets() {
    let desk = Desk::with(
        &with_producers(&json!([shell(
            "leak",
            "test -z \"$MODEL_API_KEY$CARETAKER_HOME\""
        )])),
        &[],
    );
    let mut command = desk.command(&["hook-gate", "check", "--session", "S1", "--event", "Stop"]);
    command.env("MODEL_API_KEY", "secret");
    ran(command, b"{}").allowed();
}

/// `stop_hook_active` is true in some clients from the first time on, so it is never believed.
#[test]
fn a_turn_that_is_refused_too_often_may_end() {
    let desk = Desk::with(
        &with_producers(&json!([shell("red", "false")])),
        &["--blocks", "2"],
    );
    desk.stop().blocked();
    desk.stop().blocked();
    let last = desk.stop();
    last.allowed();
    assert!(
        last.stderr.contains("completion_refused"),
        "{}",
        last.stderr
    );
    assert!(caretaker::hook_gate::stop_count(&desk.session_folder()).refused);
    let reasons: Vec<_> = desk
        .receipts()
        .iter()
        .filter_map(|gate| gate["reason"].as_str().map(str::to_owned))
        .collect();
    assert!(
        reasons.last().unwrap().starts_with("completion_refused"),
        "{reasons:?}"
    );
}

fn git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// A repository with a file that was changed before the session began.
fn repository() -> Desk {
    let desk = Desk::empty();
    git(&desk.work(), &["init", "-q"]);
    for file in ["src/a", "docs/a.md", "secrets", "dirty"] {
        std::fs::write(desk.work().join(file), "1\n").unwrap();
    }
    std::fs::write(desk.work().join(".gitignore"), "target\n").unwrap();
    git(&desk.work(), &["add", "-A"]);
    git(&desk.work(), &["commit", "-qm", "x"]);
    std::fs::write(desk.work().join("dirty"), "changed by its owner\n").unwrap();
    std::fs::write(desk.work().join("untracked"), "its owner's\n").unwrap();
    desk.register("S1", &policy(), &[]).allowed_to_register();
    desk
}

#[test]
fn a_changed_file_outside_the_allowlist_blocks() {
    let desk = repository();
    desk.stop().allowed();
    std::fs::write(desk.work().join("src/b"), "new\n").unwrap();
    std::fs::create_dir(desk.work().join("target")).unwrap();
    std::fs::write(desk.work().join("target/x"), "ignored\n").unwrap();
    desk.stop().allowed();
    std::fs::write(desk.work().join("secrets"), "2\n").unwrap();
    std::fs::create_dir(desk.work().join("new")).unwrap();
    std::fs::write(desk.work().join("new/file"), "x\n").unwrap();
    assert_eq!(
        desk.stop().blocked(),
        "completion blocked: files outside the allowlist are changed (new/file, secrets); put them back"
    );
    std::fs::write(desk.work().join("secrets"), "1\n").unwrap();
    std::fs::remove_dir_all(desk.work().join("new")).unwrap();
    desk.stop().allowed();
}

#[test]
fn what_its_owner_had_changed_counts_once_the_session_changes_it_again() {
    let desk = repository();
    std::fs::write(desk.work().join("dirty"), "1\n").unwrap();
    assert!(desk.stop().blocked().contains("(dirty)"));
    std::fs::write(desk.work().join("dirty"), "changed by its owner\n").unwrap();
    desk.stop().allowed();
    std::fs::remove_file(desk.work().join("untracked")).unwrap();
    assert!(desk.stop().blocked().contains("(untracked)"));
}

/// Nothing that a repository's configuration can say makes this run a program or look away.
#[test]
fn a_repository_that_points_elsewhere_hides_nothing() {
    let desk = repository();
    std::fs::write(desk.work().join("secrets"), "2\n").unwrap();
    let marker = desk.path("ran");
    let evil = desk.path("evil.sh");
    std::fs::write(
        &evil,
        format!("#!/bin/sh\ntouch {}\ncat\n", marker.display()),
    )
    .unwrap();
    let evil = format!("sh {}", evil.display());
    for (key, value) in [
        ("core.fsmonitor", evil.as_str()),
        ("filter.evil.clean", &evil),
        ("filter.evil.process", &evil),
        ("core.pager", &evil),
        ("diff.external", &evil),
    ] {
        git(&desk.work(), &["config", key, value]);
    }
    std::fs::write(desk.work().join(".git/info/attributes"), "* filter=evil\n").unwrap();
    assert!(desk.stop().blocked().contains("secrets"));
    assert!(!marker.exists(), "a program of the repository's was run");
    git(
        &desk.work(),
        &[
            "config",
            "core.worktree",
            desk.path("home").to_str().unwrap(),
        ],
    );
    assert!(
        desk.stop().blocked().contains("cannot be told"),
        "another worktree"
    );
}

#[test]
fn entries_that_are_marked_as_unchanged_are_not_believed() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let desk = repository();
        std::fs::write(desk.work().join("secrets"), "2\n").unwrap();
        git(&desk.work(), &["update-index", flag, "secrets"]);
        assert!(
            desk.stop().blocked().contains("secrets is marked"),
            "{flag}"
        );
    }
}

#[test]
fn a_repository_that_is_gone_is_a_refusal() {
    let desk = repository();
    std::fs::rename(desk.work().join(".git"), desk.path("git")).unwrap();
    assert!(desk.stop().blocked().contains("cannot be told"));
}

// The line to break is named in `hook_gate::producers`.
#[test]
fn a_producer_runs_in_its_folder_and_not_behind_a_link() {
    let mut below = shell("below", "test -f here");
    below["folder"] = json!("src/below");
    let desk = Desk::with(&with_producers(&json!([below])), &[]);
    let refused = "completion blocked: required verification failed (below)";
    assert_eq!(desk.stop().blocked(), refused, "there is no such folder");
    std::fs::create_dir(desk.work().join("src/below")).unwrap();
    assert_eq!(desk.stop().blocked(), refused);
    std::fs::write(desk.work().join("src/below/here"), "").unwrap();
    desk.stop().allowed();
    // The same words in the top folder are another command, and are judged as any other.
    desk.bash("sh -c 'test -f here > README'").blocked();

    std::fs::remove_dir_all(desk.work().join("src/below")).unwrap();
    let outside = desk.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("here"), "").unwrap();
    std::os::unix::fs::symlink(&outside, desk.work().join("src/below")).unwrap();
    assert_eq!(desk.stop().blocked(), refused);
}
