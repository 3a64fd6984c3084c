//! The credential goes to the remote's host and is seen nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use base64::Engine as _;
use secrecy::SecretString;

use super::*;

const TOKEN: &str = "ghs_canary0123456789abcdef";

/// A server for one test: it hands each request's head out and answers what the test says.
struct Server {
    address: String,
    requests: Receiver<(String, TcpStream)>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        std::thread::spawn(move || accept(&listener, &sender));
        Self { address, requests }
    }

    fn remote(&self, token: Option<&str>) -> Remote {
        Remote::new(
            &format!("{}/o/n.git", self.address),
            token.map(SecretString::from),
        )
        .unwrap()
    }

    /// The next request; blocks, so that it is called from a thread of its own.
    fn next(&self) -> (String, TcpStream) {
        self.requests.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

fn accept(listener: &TcpListener, sender: &Sender<(String, TcpStream)>) {
    for stream in listener.incoming() {
        let mut stream = BufReader::new(stream.unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
        if sender.send((head, stream.into_inner())).is_err() {
            return;
        }
    }
}

fn answer(mut stream: TcpStream, status: &str, header: &str) {
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
}

fn challenge(stream: TcpStream) {
    answer(
        stream,
        "401 Unauthorized",
        "WWW-Authenticate: Basic realm=\"r\"\r\n",
    );
}

fn refspec() -> Refspec {
    Refspec::Ref {
        from: reference("refs/heads/main"),
        to: reference("refs/remote/main"),
    }
}

/// Everything that another process can read about every process: arguments, and with the same user the environment.
fn all_processes() -> Vec<(String, Vec<u8>)> {
    let pids = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    pids.flat_map(|path| {
        ["cmdline", "environ"].map(|file| {
            let content = std::fs::read(path.join(file)).unwrap_or_default();
            (path.join(file).display().to_string(), content)
        })
    })
    .collect()
}

fn contains(content: &[u8], wanted: &str) -> bool {
    content
        .windows(wanted.len())
        .any(|window| window == wanted.as_bytes())
}

// Break: hand the token over in the address, in `-c http.extraHeader` or in an environment variable.
// Break: the `is_of` of `Answerer::serve`, for the last part.
#[tokio::test]
async fn the_token_reaches_the_remote_and_no_process_shows_it() {
    let (pair, server) = (Pair::new(), Server::start());
    let (git, remote) = (pair.git(), server.remote(Some(TOKEN)));
    let repository = pair.ours();
    let watcher = std::thread::spawn(move || {
        let (head, stream) = server.next();
        assert!(
            !head.contains("Authorization"),
            "nothing is sent before it is asked for"
        );
        challenge(stream);
        let (head, stream) = server.next();
        // Git and its helper run now, waiting for the answer, and hold the token.
        let seen = all_processes();
        let ours =
            |content: &[u8]| contains(content, "ours.git") || contains(content, &server.address);
        assert!(
            seen.iter().any(|(_, content)| ours(content)),
            "git is running"
        );
        let encoded =
            base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{TOKEN}"));
        for (file, content) in &seen {
            assert!(
                !contains(content, TOKEN) && !contains(content, &encoded),
                "{file}"
            );
        }
        for file in ["config", "FETCH_HEAD", "packed-refs"] {
            let content = std::fs::read(repository.join(file)).unwrap_or_default();
            assert!(!contains(&content, TOKEN), "{file}");
        }
        // This process is no part of git's group and asks for nothing it may know.
        let environment = seen.iter().find(|(file, content)| {
            file.ends_with("environ")
                && contains(content, "GIT_ASKPASS=")
                && contains(content, &git_directory(&seen, &server.address))
        });
        let program = variable(&environment.unwrap().1, "GIT_ASKPASS");
        let mut socket = UnixStream::connect(Path::new(&program).with_file_name("socket")).unwrap();
        let question = format!(
            "Password for '{}': ",
            server.address.replace("//", "//x-access-token@")
        );
        let mut told = String::new();
        // The other side may hang up before it was asked.
        drop(socket.write_all(question.as_bytes()));
        drop(socket.shutdown(std::net::Shutdown::Write));
        drop(socket.read_to_string(&mut told));
        assert_eq!(told, "", "a stranger was told");
        answer(stream, "403 Forbidden", "");
        (head, encoded)
    });
    let failed = git.fetch(&remote, &[refspec()]).await.unwrap_err();
    let (head, encoded) = watcher.join().unwrap();
    assert!(
        head.contains(&format!("Authorization: Basic {encoded}")),
        "{head}"
    );
    assert!(
        matches!(failed, GitError::AuthenticationOrAbsent { .. }),
        "{failed}"
    );
    assert!(!format!("{failed} {failed:?} {remote:?}").contains(TOKEN));
}

/// The home directory of the git process that talks to `address`; tells it from those of other tests.
fn git_directory(seen: &[(String, Vec<u8>)], address: &str) -> String {
    let (file, _) = seen
        .iter()
        .find(|(file, content)| file.ends_with("cmdline") && contains(content, address))
        .unwrap();
    let environ = file.replace("cmdline", "environ");
    let (_, content) = seen.iter().find(|(file, _)| *file == environ).unwrap();
    format!("HOME={}", variable(content, "HOME"))
}

fn variable(environment: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(environment);
    let found = text
        .split('\0')
        .find_map(|entry| entry.strip_prefix(&format!("{name}=")));
    found.unwrap().to_owned()
}

#[tokio::test]
async fn without_a_token_there_is_nothing_to_send() {
    let (pair, server) = (Pair::new(), Server::start());
    let remote = server.remote(None);
    let watcher = std::thread::spawn(move || {
        let (head, stream) = server.next();
        challenge(stream);
        head
    });
    let failed = pair.git().fetch(&remote, &[refspec()]).await.unwrap_err();
    assert!(
        matches!(failed, GitError::AuthenticationOrAbsent { .. }),
        "{failed}"
    );
    assert!(!watcher.join().unwrap().contains("Authorization"));
}

// Break: `http.followRedirects` in `SETTINGS`.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (pair, server, other) = (Pair::new(), Server::start(), Server::start());
    let remote = server.remote(Some(TOKEN));
    let location = format!(
        "Location: {}/o/n.git/info/refs?service=git-upload-pack\r\n",
        other.address
    );
    let watcher = std::thread::spawn(move || {
        let (_, stream) = server.next();
        answer(stream, "302 Found", &location);
    });
    let failed = pair.git().fetch(&remote, &[refspec()]).await.unwrap_err();
    watcher.join().unwrap();
    assert!(matches!(failed, GitError::Moved { .. }), "{failed}");
    assert!(
        other.requests.try_recv().is_err(),
        "the other server was asked"
    );
}

#[tokio::test]
async fn a_server_that_is_down_is_told_from_one_that_refuses() {
    let pair = Pair::new();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let remote = Remote::new(&format!("http://{closed}/o/n.git"), None).unwrap();
    let failed = pair.git().fetch(&remote, &[refspec()]).await.unwrap_err();
    assert!(matches!(failed, GitError::Unreachable { .. }), "{failed}");
    let server = Server::start();
    let remote = server.remote(None);
    let watcher =
        std::thread::spawn(move || answer(server.next().1, "503 Service Unavailable", ""));
    let failed = pair.git().fetch(&remote, &[refspec()]).await.unwrap_err();
    watcher.join().unwrap();
    assert!(matches!(failed, GitError::Unreachable { .. }), "{failed}");
}

// Break: the `Drop` of `process::Group`.
#[tokio::test]
async fn git_and_its_helpers_are_killed_at_the_deadline_and_when_dropped() {
    let (pair, server) = (Pair::new(), Server::start());
    let remote = server.remote(Some(TOKEN));
    let git = pair.git().with_deadline(Duration::from_millis(500));
    let failed = git.fetch(&remote, &[refspec()]).await.unwrap_err();
    assert!(matches!(failed, GitError::TimedOut { .. }), "{failed}");
    // The helper that holds the connection is git's child, not ours: its end is seen as the end of the connection.
    let closed = |stream: &mut TcpStream| {
        let mut rest = Vec::new();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        matches!(stream.read_to_end(&mut rest), Ok(0))
    };
    assert!(closed(&mut server.next().1));

    let git = pair.git();
    let task = tokio::spawn(async move { git.fetch(&remote, &[refspec()]).await });
    let (mut stream, server) = tokio::task::spawn_blocking(move || (server.next().1, server))
        .await
        .unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(closed(&mut stream));
    drop(server);
}
