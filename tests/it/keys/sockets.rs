//! Where `caretaker signer` answers, and where it does not.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use caretaker::attest::Role;
use caretaker::clock::{Clock as _, SystemClock};

use super::command::caretaker;
use super::{Home, mode};
use crate::serve::process::Process;

/// An installation, and the path of a socket.
fn installation() -> (Home, PathBuf) {
    let home = Home::new();
    assert_eq!(caretaker(&home, &["keys", "init"]).status.code(), Some(0));
    let socket = home.folder.path().join("executor.sock");
    (home, socket)
}

fn arguments(socket: &Path) -> [&str; 5] {
    let socket = socket.to_str().unwrap();
    ["signer", "--role", "executor", "--socket", socket]
}

/// Why the signer does not start.
fn refusal(home: &Home, socket: &Path) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_caretaker"))
        .args(arguments(socket))
        .current_dir(home.folder.path())
        .env_clear()
        .envs(home.variables.clone())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that starts says so in a line and stays.
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    if !line.is_empty() {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), line.as_str()), (Some(1), ""));
    let own = rustix::process::geteuid().as_raw().to_string();
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.replace(&format!("is user {own}"), "is user [own]");
    home.tidy(said.trim_end())
}

async fn started(home: &Home, socket: &Path, more: &[&str]) -> Process {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_caretaker"));
    command
        .args(arguments(socket))
        .args(more)
        .current_dir(home.folder.path())
        .env_clear()
        .envs(home.variables.clone());
    let (process, line) = Process::start(command, &home.folder.path().join("log")).await;
    assert!(
        line.starts_with("caretaker: the executor's signer (SHA256:"),
        "{line}"
    );
    assert!(line.ends_with(socket.to_str().unwrap()), "{line}");
    process
}

#[test]
fn a_socket_of_somebody_else_or_in_use_is_left_alone() {
    let (home, socket) = installation();
    std::fs::write(&socket, "mine").unwrap();
    let mut refusals = vec![refusal(&home, &socket)];
    assert_eq!(std::fs::read(&socket).unwrap(), b"mine");
    std::fs::remove_file(&socket).unwrap();

    let listener = UnixListener::bind(&socket).unwrap();
    refusals.push(refusal(&home, &socket));
    drop(listener);
    insta::assert_snapshot!(refusals.join("\n"), @r"
    caretaker: listening at …/executor.sock: there is something that is no socket; name another path
    caretaker: listening at …/executor.sock: another process answers there already
    ");

    // Only root can give a file away, and would be let replace it.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(&socket, Some(12_345), None).unwrap();
        let refused = refusal(&home, &socket);
        assert!(socket.exists());
        insta::assert_snapshot!(refused, @"caretaker: listening at …/executor.sock: the socket there belongs to user 12345, and this is user [own]; see who left it there, or name another path");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_left_behind_is_replaced_and_the_last_one_is_taken_along() {
    let (mut home, socket) = installation();
    let first = started(&home, &socket, &[]).await;
    assert_eq!(mode(&socket), 0o600);
    first.kill().await;
    assert!(socket.exists());
    let own = rustix::process::geteuid().as_raw().to_string();
    let second = started(
        &home,
        &socket,
        &["--allow-uid", "12345", "--allow-uid", &own],
    )
    .await;
    // Whoever is not named is refused in words, not by the file's mode.
    assert_eq!(mode(&socket), 0o666);
    let place = socket.display().to_string();
    home.variables.push((
        "CARETAKER_KEYS__ROLES__EXECUTOR__SIGNER__SOCKET".to_owned(),
        place,
    ));
    for name in ["executor.key", "executor.secret"] {
        std::fs::remove_file(home.file(name)).unwrap();
    }
    let keyring = home.open_at(SystemClock.now()).unwrap();
    let keyid = keyring.signer(Role::Executor).keyid();
    assert!(keyring.trust().role_key(keyid).is_some());
    assert_eq!(second.terminate().await, Some(0));
    assert!(!socket.exists());
}
