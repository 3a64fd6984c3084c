//! The bridge from a private loopback to one Unix socket.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use caretaker::sandbox::bridge;

use super::*;

const PORT: u16 = 8137;

/// A program beside a bridge, with a listener at the other end that answers in capitals.
struct Crossing {
    folder: TempDir,
}

impl Crossing {
    fn new() -> Self {
        let folder = place();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        Self { folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("m.sock")
    }

    fn listen(&self) {
        let listener = UnixListener::bind(self.socket()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut said = String::new();
                    drop(stream.read_to_string(&mut said));
                    drop(stream.write_all(said.to_uppercase().as_bytes()));
                });
            }
        });
    }

    fn command(&self, argv: &[&str]) -> Command {
        let words = argv.iter().map(OsString::from);
        let line = bridge::command_line(&launcher(), PORT, &self.socket(), words);
        let mut command = Command::new(line, self.folder.path().join("tree"));
        command.readable = vec![launcher()];
        if self.socket().exists() {
            command.readable.push(self.socket());
        }
        command.private_loopback = true;
        command
    }

    async fn run(&self, argv: &[&str]) -> Outcome {
        run(Mode::Bubblewrap, &self.command(argv)).await.unwrap()
    }
}

#[tokio::test]
async fn what_a_program_says_to_its_loopback_reaches_the_socket_and_comes_back() {
    let crossing = Crossing::new();
    crossing.listen();
    let said = "import socket,sys\n\
        for i in range(3):\n\
        \x20s=socket.create_connection(('127.0.0.1',8137)); s.sendall(b'hello %d '%i*100000); s.shutdown(1)\n\
        \x20got=b''\n\
        \x20while True:\n\
        \x20\x20b=s.recv(65536)\n\
        \x20\x20if not b: break\n\
        \x20\x20got+=b\n\
        \x20assert got==b'HELLO %d '%i*100000, len(got)\n\
        print(sys.stdin.read()); sys.stderr.write('err'); sys.exit(7)";
    let mut command = crossing.command(&["python3", "-c", said]);
    command.stdin = b"in".to_vec();
    let outcome = run(Mode::Bubblewrap, &command).await.unwrap();
    // Its streams and its exit code are the program's own.
    assert_eq!(
        (
            outcome.stdout.text().trim(),
            outcome.stderr.text().as_ref(),
            outcome.status
        ),
        ("in", "err", Status::Exited(7))
    );
}

#[tokio::test]
async fn a_program_that_is_killed_or_not_there_is_told_apart() {
    let crossing = Crossing::new();
    crossing.listen();
    let killed = crossing.run(&["sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.status, Status::Signalled(9));
    let missing = crossing.run(&["no-such-client"]).await;
    assert_eq!(missing.status, Status::Exited(125));
    assert!(
        missing.stderr.text().contains("is it installed"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn nothing_else_is_reached_and_a_socket_that_is_gone_closes() {
    let crossing = Crossing::new();
    let tried = "import socket\n\
        s=socket.create_connection(('127.0.0.1',8137)); s.settimeout(20); print(repr(s.recv(10)))\n\
        try: socket.create_connection(('127.0.0.1',8138),5); print('SUCCEEDED')\n\
        except OSError: pass\n\
        try: socket.create_connection(('192.0.2.1',80),5); print('SUCCEEDED')\n\
        except OSError: pass";
    let outcome = crossing.run(&["python3", "-c", tried]).await;
    assert_eq!(outcome.stdout.text(), "b''\n", "{outcome:?}");
}

#[tokio::test]
async fn connections_are_bounded() {
    let crossing = Crossing::new();
    crossing.listen();
    // Sixty-four stay open; the one after them is closed at once.
    let many = "import socket,select\n\
        held=[socket.create_connection(('127.0.0.1',8137)) for _ in range(64)]\n\
        for s in held: s.sendall(b'x')\n\
        more=[socket.create_connection(('127.0.0.1',8137)) for _ in range(8)]\n\
        closed=0\n\
        for s in more:\n\
        \x20s.settimeout(5)\n\
        \x20try: closed += s.recv(1)==b''\n\
        \x20except ConnectionResetError: closed += 1\n\
        \x20except TimeoutError: pass\n\
        print(closed)";
    let outcome = crossing.run(&["python3", "-c", many]).await;
    assert_eq!(outcome.stdout.text(), "8\n", "{outcome:?}");
}

#[test]
fn it_listens_on_loopback_alone() {
    for line in [
        &["--listen", "0.0.0.0:1", "--to", "x", "--", "true"][..],
        &["--listen", "127.0.0.1", "--to", "x", "--", "true"],
        &["--listen", "127.0.0.1:1", "--to", "x", "--"],
        &["--to", "x"],
        &[],
    ] {
        let ran = std::process::Command::new(launcher())
            .arg("sandbox-bridge")
            .args(line)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(125));
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains("usage"), "{line:?}: {said}");
    }
}

#[tokio::test]
async fn landlock_alone_gives_it_no_loopback() {
    let crossing = Crossing::new();
    crossing.listen();
    let outcome = run(Mode::Landlock, &crossing.command(&["true"]))
        .await
        .unwrap();
    assert_eq!(outcome.status, Status::Exited(125));
    assert!(
        outcome.stderr.text().contains("private loopback"),
        "{outcome:?}"
    );
}
