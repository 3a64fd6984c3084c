//! Any program behind the port: what it is told, what it may touch, and every way in which its answer can be unusable.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::{Coder as _, CoderError, CommandCoder, Diagnosis, ProgramError};
use caretaker::sandbox::{Limits, Mode, Sandbox};

use super::task;

const DIAGNOSIS: &str = r#"{"cause":"off by one","files":["src/lib.rs","tests/new.rs"],"confidence":800,"summary":"It adds one."}"#;
const FIX: &str = r#"{"summary":"Removed the one.","title":"Add up"}"#;

/// A configuration folder with `coder.sh` in it, and a scratch tree with `src/lib.rs`.
struct Place {
    folder: tempfile::TempDir,
    tree: tempfile::TempDir,
}

impl Place {
    fn new(script: &str) -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            tree: tempfile::tempdir().unwrap(),
        };
        let program = place.folder.path().join("coder.sh");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(place.tree.path().join("src")).unwrap();
        fs::write(place.tree.path().join("src/lib.rs"), "a + b + 1\n").unwrap();
        place
    }

    async fn coder(&self, argv: &[&str]) -> CommandCoder {
        self.limited(argv, Limits::default()).await
    }

    async fn limited(&self, argv: &[&str], limits: Limits) -> CommandCoder {
        let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
        let sandbox = Sandbox::detect(Mode::Auto, launcher).await.unwrap();
        CommandCoder::new(&words(argv), self.folder.path(), Arc::new(sandbox), limits).unwrap()
    }

    async fn diagnose(&self) -> Result<Diagnosis, CoderError> {
        let coder = self.coder(&["sh", "coder.sh"]).await;
        coder.diagnose(&task(), self.tree.path(), None).await
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

fn printing(answer: &str) -> String {
    format!("cat > /dev/null\ncat <<'END'\n{answer}\nEND")
}

#[tokio::test]
async fn the_program_is_told_the_task_and_its_answer_is_read() {
    let script = format!(
        "cat > task.json || exit 9\npwd > where\necho \"$1\" > word\necho 'a + b' > src/lib.rs\necho '{FIX}'"
    );
    let place = Place::new(&script);
    let mut task = task();
    let coder = place.coder(&["./coder.sh"]).await;
    assert_eq!(coder.describe().model.as_deref(), Some("coder.sh"));
    task.diagnosis = Some(serde_json::from_str(DIAGNOSIS).unwrap());
    let fix = coder.fix(&task, place.tree.path(), None).await.unwrap();
    assert_eq!(
        (fix.title.as_str(), fix.summary.as_str()),
        ("Add up", "Removed the one.")
    );
    let read = |name: &str| fs::read_to_string(place.tree.path().join(name)).unwrap();
    assert_eq!(read("src/lib.rs"), "a + b\n");
    assert_eq!(read("word"), "fix\n");
    assert_eq!(Path::new(read("where").trim()), place.tree.path());
    let told: serde_json::Value = serde_json::from_str(&read("task.json")).unwrap();
    assert_eq!(
        told,
        serde_json::json!({
            "incident": task.incident.as_str(),
            "failure": {"kind": "code", "workflow": "CI", "job": null, "commit": "a".repeat(40), "url": "http://127.0.0.1/runs/1"},
            "extraction": [{"tool": "cargo-test", "kind": "panic", "test_name": "tests::eq", "file": "src/lib.rs", "line": 2}],
            "intent": "A small crate.",
            "files": ["src/lib.rs"],
            "diagnosis": {"cause": "off by one", "files": ["src/lib.rs", "tests/new.rs"], "confidence": 800, "summary": "It adds one."},
        })
    );
}

// Break it: let `CommandCoder::diagnose` call the program with `Access::Write`.
#[tokio::test]
async fn a_diagnosis_may_read_the_tree_but_not_change_it() {
    let script = format!(
        "cat > /dev/null\ngrep -q 'a + b' src/lib.rs || exit 7\necho x >> src/lib.rs\necho x > new\necho x >> \"$0\"\necho '{DIAGNOSIS}'"
    );
    let place = Place::new(&script);
    let before = fs::read(place.folder.path().join("coder.sh")).unwrap();
    let diagnosis = place.diagnose().await.unwrap();
    assert_eq!((diagnosis.files.len(), diagnosis.confidence), (2, 800));
    let text = fs::read_to_string(place.tree.path().join("src/lib.rs")).unwrap();
    assert_eq!(text, "a + b + 1\n");
    assert!(!place.tree.path().join("new").exists());
    assert_eq!(
        fs::read(place.folder.path().join("coder.sh")).unwrap(),
        before
    );
}

#[tokio::test]
async fn every_unusable_answer_is_named() {
    let with = |member: &str, value: &str| {
        let mut answer: serde_json::Value = serde_json::from_str(DIAGNOSIS).unwrap();
        answer[member] = serde_json::from_str(value).unwrap();
        answer.to_string()
    };
    let many = serde_json::to_string(&(0..101).map(|n| format!("f{n}")).collect::<Vec<_>>());
    let cases = [
        (String::new(), "printed nothing"),
        (
            "I think it is the sum.".to_owned(),
            "not the one JSON document",
        ),
        (format!("{DIAGNOSIS}\nDone!"), "not the one JSON document"),
        (
            format!("Thinking\n{DIAGNOSIS}"),
            "not the one JSON document",
        ),
        (with("note", "1"), "unknown field"),
        (r#"{"cause":"x"}"#.to_owned(), "missing field"),
        (with("files", "[]"), "files is empty"),
        (with("files", r#"["/etc/passwd"]"#), "slash"),
        (with("files", r#"["src/../../x"]"#), ".."),
        (with("files", r#"["sub/.git/hooks/x"]"#), ".git"),
        (with("files", &many.unwrap()), "101 paths"),
        (with("confidence", "1001"), "0 to 1000"),
        (with("confidence", "0.9"), "0.9"),
        (with("cause", r#""""#), "cause is empty"),
        (with("cause", r#""\u202eesrever""#), "invisible"),
        (
            with("summary", &format!("{:?}", "x".repeat(501))),
            "more than 500",
        ),
        (
            with("summary", &format!("{:?}", "x".repeat(70_000))),
            "more than 65536",
        ),
    ];
    for (answer, expected) in cases {
        let place = Place::new(&printing(&answer));
        match place.diagnose().await {
            Err(CoderError::Answer {
                task: "diagnose",
                reason,
                ..
            }) => {
                assert!(reason.contains(expected), "{reason} lacks {expected}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_title_is_one_plain_line_of_at_most_72_characters() {
    for (title, expected) in [
        ("x".repeat(73), "72"),
        ("two\nlines".to_owned(), "line break"),
        ("  ".to_owned(), "empty"),
    ] {
        let answer = serde_json::json!({"title": title, "summary": "s"}).to_string();
        let place = Place::new(&printing(&answer));
        let coder = place.coder(&["sh", "coder.sh"]).await;
        match coder.fix(&task(), place.tree.path(), None).await {
            Err(CoderError::Answer {
                task: "fix",
                reason,
                ..
            }) => {
                assert!(reason.contains(expected), "{reason} lacks {expected}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn failure_silence_and_a_flood_are_named() {
    let limits = Limits {
        wall: Duration::from_secs(2),
        output: 4096,
        ..Limits::default()
    };
    for (script, expected_status, expected_stderr) in [
        (
            "printf 'no \\033[31mkey' >&2; exit 3",
            "exit code 3",
            "no  [31mkey",
        ),
        ("kill -9 $$", "signal 9", ""),
        ("while :; do :; done", "2 seconds", ""),
        ("while :; do echo flood; done", "4096 bytes", ""),
    ] {
        let place = Place::new(script);
        let coder = place.limited(&["sh", "coder.sh"], limits).await;
        match coder.diagnose(&task(), place.tree.path(), None).await {
            Err(CoderError::Failed { status, stderr, .. }) => {
                assert!(
                    status.contains(expected_status),
                    "{status} lacks {expected_status}"
                );
                assert_eq!(stderr, expected_stderr);
            }
            other => panic!("{expected_status}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_unavailable() {
    let place = Place::new("");
    let coder = place.coder(&["no-such-coder-anywhere"]).await;
    let ended = coder.diagnose(&task(), place.tree.path(), None).await;
    let Err(CoderError::Unavailable { reason, .. }) = ended else {
        panic!("{ended:?}")
    };
    assert!(reason.contains("no-such-coder-anywhere"), "{reason}");
}

#[tokio::test]
async fn links_and_absolute_paths_lead_to_the_same_program() {
    let place = Place::new(&printing(DIAGNOSIS));
    let program = place.folder.path().join("coder.sh");
    let link = place.folder.path().join("link.sh");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let (program, link) = (program.to_str().unwrap(), link.to_str().unwrap());
    for argv in [
        &["link.sh"][..],
        &[link],
        &[program],
        &["/bin/sh", link],
        &["/usr/bin/env", "sh", program],
    ] {
        let coder = place.coder(argv).await;
        let ended = coder.diagnose(&task(), place.tree.path(), None).await;
        assert!(ended.is_ok(), "{argv:?}: {ended:?}");
    }
}

// Break it: leave `check_tree` out of `agent::command::CommandCoder::command`.
#[tokio::test]
async fn a_file_of_the_repository_never_becomes_part_of_the_coder() {
    let place = Place::new("");
    fs::write(
        place.tree.path().join("tool.sh"),
        format!("echo '{DIAGNOSIS}'"),
    )
    .unwrap();
    let coder = place.coder(&["sh", "tool.sh"]).await;
    let ended = coder.diagnose(&task(), place.tree.path(), None).await;
    let Err(CoderError::Unavailable { reason, .. }) = ended else {
        panic!("{ended:?}")
    };
    assert!(
        reason.contains("names a file of the repository"),
        "{reason}"
    );
}

#[tokio::test]
async fn words_that_name_no_program_are_refused_at_the_start() {
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
    let sandbox = Arc::new(Sandbox::detect(Mode::None, launcher).await.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let new = |argv: &[&str]| {
        CommandCoder::new(
            &words(argv),
            folder.path(),
            sandbox.clone(),
            Limits::default(),
        )
        .err()
    };
    assert!(matches!(new(&[]), Some(ProgramError::Empty)));
    assert!(matches!(new(&[""]), Some(ProgramError::Empty)));
    assert!(matches!(
        new(&["./coder.sh"]),
        Some(ProgramError::Missing { .. })
    ));
    assert!(matches!(
        new(&["/no/such/coder"]),
        Some(ProgramError::Missing { .. })
    ));
}
