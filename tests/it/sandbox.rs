//! An untrusted program in the sandbox: what it can do, and everything it cannot.
//!
//! Most stories are told twice, once for each boundary, because where bubblewrap is missing Landlock must hold alone.

mod boundary;
mod bridge;
mod lifetime;
mod limits;
mod paths;
mod work;

use std::path::{Path, PathBuf};

use caretaker::sandbox::{Command, Mode, Outcome, Sandbox, SandboxError, Status};
use tempfile::TempDir;

const CONFINED: [Mode; 2] = [Mode::Bubblewrap, Mode::Landlock];

fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_caretaker"))
}

async fn sandbox(mode: Mode) -> Sandbox {
    Sandbox::detect(mode, launcher())
        .await
        .expect("these tests need bubblewrap and Linux 6.2")
}

/// A directory of the test's own, outside of every sandbox unless a command names it.
fn place() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn script(text: &str, directory: &Path) -> Command {
    Command::new(["sh", "-c", text], directory)
}

async fn run(mode: Mode, command: &Command) -> Result<Outcome, SandboxError> {
    sandbox(mode).await.run(command).await
}

/// Runs a shell script in a fresh writable directory.
async fn shell(mode: Mode, text: &str) -> Outcome {
    let tree = place();
    run(mode, &script(text, tree.path())).await.unwrap()
}

/// Asserts that every line of `attempts` fails inside, and that the shell itself lives to say so.
async fn all_fail(mode: Mode, attempts: &[String]) {
    let text: String = attempts
        .iter()
        .map(|attempt| {
            format!("if ( {attempt} ) >/dev/null 2>&1; then echo 'SUCCEEDED: {attempt}'; fi\n")
        })
        .collect();
    let outcome = shell(mode, &format!("{text}echo done")).await;
    assert_eq!(
        outcome.stdout.text(),
        "done\n",
        "{mode}: {}",
        outcome.stderr.text()
    );
    assert_eq!(outcome.status, Status::Exited(0));
}
