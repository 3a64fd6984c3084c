//! An untrusted program in the sandbox: what it can do, and everything it cannot.

use std::path::PathBuf;

use caretaker::sandbox::{Command, Mode, Outcome, Sandbox, Status};

fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_caretaker"))
}

async fn sandbox(mode: Mode) -> Sandbox {
    Sandbox::detect(mode, launcher()).await.unwrap()
}

/// Runs a shell script in a fresh writable directory.
async fn shell(mode: Mode, script: &str) -> Outcome {
    let tree = tempfile::tempdir().unwrap();
    let command = Command::new(["sh", "-c", script], tree.path());
    sandbox(mode).await.run(&command).await.unwrap()
}

#[tokio::test]
async fn a_program_runs_and_says_how_it_ended() {
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let outcome = shell(mode, "echo out; echo err >&2; exit 3").await;
        assert_eq!(outcome.status, Status::Exited(3), "{mode}: {outcome:?}");
        assert_eq!(outcome.stdout.text(), "out\n");
        assert_eq!(outcome.stderr.text(), "err\n");
    }
}
