//! Nothing outlives its run.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use super::*;

/// A program that leaves a grandchild in a session of its own. Both hold the pipe `alive` open, whose reader sees its
/// end when, and only when, the last of them is gone.
const FAMILY: &str =
    "exec 3>alive; echo up >&3; setsid sh -c 'trap \"\" TERM HUP; sleep 600; :' & sleep 600; :";

fn pipe_in(tree: &Path) -> PathBuf {
    let pipe = tree.join("alive");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    pipe
}

/// Waits until the family is up; the reader then waits for its end.
fn await_up(pipe: &Path) -> BufReader<File> {
    let mut reader = BufReader::new(File::open(pipe).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    reader
}

fn await_gone(mut reader: BufReader<File>) {
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

// Break: the `kill_everything` of `supervise::run`.
#[tokio::test]
async fn the_end_of_the_wall_time_ends_grandchildren_too() {
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let tree = place();
        let pipe = pipe_in(tree.path());
        let mut command = script(FAMILY, tree.path());
        command.limits.wall = Duration::from_secs(2);
        let watcher = tokio::task::spawn_blocking(move || await_up(&pipe));
        let outcome = run(mode, &command).await.unwrap();
        assert_eq!(outcome.status, Status::TimedOut, "{mode}");
        assert!(
            outcome.elapsed < Duration::from_secs(10),
            "{mode}: {:?}",
            outcome.elapsed
        );
        await_gone(watcher.await.unwrap());
    }
}

// Break: the same line; here the program itself ends in time.
#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let tree = place();
        let pipe = pipe_in(tree.path());
        let text =
            "exec 3>alive; echo up >&3; setsid sh -c 'trap \"\" TERM HUP; sleep 600; :' & exit 7";
        let watcher = tokio::task::spawn_blocking(move || await_up(&pipe));
        let outcome = run(mode, &script(text, tree.path())).await.unwrap();
        assert_eq!(outcome.status, Status::Exited(7), "{mode}");
        await_gone(watcher.await.unwrap());
    }
}

// Break: `watch_socket` in `supervise::run`.
#[tokio::test]
async fn dropping_the_run_kills_it() {
    for mode in [Mode::Bubblewrap, Mode::Landlock, Mode::None] {
        let tree = place();
        let pipe = pipe_in(tree.path());
        let sandbox = sandbox(mode).await;
        let command = script(FAMILY, tree.path());
        let task = tokio::spawn(async move { sandbox.run(&command).await });
        let reader = tokio::task::spawn_blocking(move || await_up(&pipe))
            .await
            .unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        tokio::task::spawn_blocking(move || await_gone(reader))
            .await
            .unwrap();
    }
}

/// Not a test of its own: the story below starts it as a process that it can kill.
#[tokio::test]
#[ignore = "a part of another test"]
async fn hold_a_run() {
    let Ok(directory) = std::env::var("CARETAKER_TEST_DIRECTORY") else {
        return;
    };
    let mode: Mode = std::env::var("CARETAKER_TEST_MODE")
        .unwrap()
        .parse()
        .unwrap();
    let outcome = match Sandbox::detect(mode, launcher()).await {
        Ok(sandbox) => sandbox.run(&script(FAMILY, Path::new(&directory))).await,
        Err(reason) => Err(reason),
    };
    if let Err(reason) = outcome {
        std::fs::write(Path::new(&directory).join("refused"), reason.to_string()).unwrap();
    }
}

fn holder(mode: Mode, tree: &Path) -> std::process::Command {
    let mut holder = std::process::Command::new("sh");
    // Descriptor 8 is open when the variable asks for it, as if whoever started caretaker had left it open.
    let line = "[ -z \"$LEAK\" ] || exec 8<\"$LEAK\"; exec \"$0\" --exact --ignored sandbox::lifetime::hold_a_run";
    holder
        .args(["-c", line])
        .arg(std::env::current_exe().unwrap());
    holder
        .env("CARETAKER_TEST_DIRECTORY", tree)
        .env("CARETAKER_TEST_MODE", mode.as_str());
    holder
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    holder
}

// Break: `watch_socket` in `supervise::run`, and `--die-with-parent`.
#[tokio::test]
async fn the_death_of_caretaker_kills_the_run() {
    for mode in CONFINED {
        let tree = place();
        let pipe = pipe_in(tree.path());
        let mut holder = holder(mode, tree.path()).spawn().unwrap();
        let reader = tokio::task::spawn_blocking(move || await_up(&pipe))
            .await
            .unwrap();
        holder.kill().unwrap();
        assert_eq!(holder.wait().unwrap().signal(), Some(9));
        tokio::task::spawn_blocking(move || await_gone(reader))
            .await
            .unwrap();
    }
}

// Break: the `inherited::leaking()` of `supervise::supervise`.
#[tokio::test]
async fn an_open_directory_inherited_by_caretaker_is_not_passed_on() {
    let secret = place();
    for mode in CONFINED {
        let tree = place();
        assert!(
            holder(mode, tree.path())
                .env("LEAK", secret.path())
                .status()
                .unwrap()
                .success()
        );
        let refused = std::fs::read_to_string(tree.path().join("refused")).unwrap();
        assert!(refused.contains("descriptor 8"), "{mode}: {refused}");
    }
}

#[tokio::test]
async fn nothing_is_left_in_the_temporary_directory() {
    let parent = place();
    let ours = |entry: &std::io::Result<std::fs::DirEntry>| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("caretaker-sandbox-")
    };
    let count = || {
        std::fs::read_dir(parent.path())
            .unwrap()
            .filter(|entry| ours(entry))
            .count()
    };
    for mode in CONFINED {
        let mut holder = std::process::Command::new(std::env::current_exe().unwrap());
        holder.args([
            "--exact",
            "sandbox::work::a_program_runs_and_says_how_it_ended",
        ]);
        holder
            .env("TMPDIR", parent.path())
            .stdout(std::process::Stdio::null());
        assert!(holder.status().unwrap().success(), "{mode}");
        assert_eq!(count(), 0, "{mode}");
    }
}
