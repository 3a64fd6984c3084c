//! The gate in a running worker, at a socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caretaker::clock::{FixedClock, Millis};
use caretaker::events::{Event, EventSink, SinkError};
use caretaker::hook_gate::service::{Answers, GateService, PlainAnswers};
use caretaker::hook_gate::{Home, Question, Reply, guarded};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Desk, Ran};

/// Events as they come.
#[derive(Default)]
struct Heard(Mutex<Vec<Event>>);

impl EventSink for Heard {
    fn record(&self, event: &Event) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

struct Running {
    socket: PathBuf,
    stop: CancellationToken,
    heard: Arc<Heard>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn serve(desk: &Desk, answers: impl FnOnce(Arc<Heard>) -> Arc<dyn Answers>) -> Running {
    let heard = Arc::new(Heard::default());
    let socket = desk.path("gate.sock");
    let service = GateService::bind(&socket).unwrap();
    let stop = CancellationToken::new();
    let clock = Arc::new(FixedClock::at(Millis(1_800_000_000_000)));
    tokio::spawn(service.serve(answers(heard.clone()), clock, stop.clone()));
    Running {
        socket,
        stop,
        heard,
    }
}

fn plain(desk: &Desk) -> Running {
    let home = Home::new(&desk.home());
    serve(desk, |events| {
        Arc::new(PlainAnswers {
            home,
            events,
            launcher: super::program().into(),
            within: Duration::from_mins(1),
        })
    })
}

async fn asked(desk: &Desk, socket: &Path, event: &str, input: String) -> Ran {
    let command = desk.command(&[
        "hook-gate",
        "check",
        "--session",
        "S1",
        "--event",
        event,
        "--socket",
        socket.to_str().unwrap(),
        "--ttl",
        "2",
    ]);
    tokio::task::spawn_blocking(move || super::ran(command, input.as_bytes()))
        .await
        .unwrap()
}

fn write(path: &str) -> String {
    json!({"tool_name": "Write", "tool_input": {"file_path": path, "content": "not for the stream"}}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_worker_answers_as_the_command_does() {
    let desk = Desk::new();
    let running = plain(&desk);
    asked(&desk, &running.socket, "PreToolUse", write("src/a"))
        .await
        .allowed();
    let refused = asked(&desk, &running.socket, "PreToolUse", write("secrets/a")).await;
    assert!(
        refused
            .blocked()
            .starts_with("out-of-scope write refused: secrets/a")
    );
    asked(&desk, &running.socket, "PreToolUse", "garbage".to_owned())
        .await
        .blocked();
    let large = format!("{}{}", write("src/a"), " ".repeat(9 << 20));
    asked(&desk, &running.socket, "PreToolUse", large)
        .await
        .blocked();
    asked(&desk, &running.socket, "Stop", "{}".to_owned())
        .await
        .allowed();
    let events = running.heard.0.lock().unwrap();
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "{} {} {}",
                event.event,
                event.task_id,
                serde_json::to_string(&event.fields).unwrap()
            )
        })
        .collect();
    assert!(
        !told.join("").contains("not for the stream"),
        "arguments in the stream"
    );
    insta::assert_snapshot!(told.join("\n"), @r#"
    gate_decision task-1 {"advisory":true,"class":"write","code":"nothing-against","decision":"allow","event":"PreToolUse","receipt":true,"session":"S1","stage":"nothing-against","tool":"Write"}
    gate_decision task-1 {"advisory":true,"class":"write","code":"out-of-scope","decision":"deny","event":"PreToolUse","receipt":true,"session":"S1","stage":"path-policy","tool":"Write"}
    gate_decision task-1 {"advisory":true,"class":"unknown","code":"event-unreadable","decision":"deny","event":"PreToolUse","receipt":true,"session":"S1","stage":"session"}
    gate_decision task-1 {"advisory":true,"class":"unknown","code":"event-too-large","decision":"deny","event":"PreToolUse","receipt":true,"session":"S1","stage":"session"}
    gate_decision task-1 {"blocks":0,"decision":"allow","event":"Stop","session":"S1","stage":"completion"}
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_socket_that_does_not_answer_denies() {
    let desk = Desk::new();
    let nowhere = desk.path("nowhere.sock");
    let reason = asked(&desk, &nowhere, "PreToolUse", write("src/a"))
        .await
        .blocked();
    assert!(reason.contains("does not answer"), "{reason}");
    // Reading is refused too: nobody looked.
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": "src/a"}}).to_string();
    asked(&desk, &nowhere, "PreToolUse", read).await.blocked();
    asked(&desk, &nowhere, "Stop", "{}".to_owned())
        .await
        .blocked();
    // Somebody who takes the question and says nothing, something else, or too much.
    let answers = [
        &b""[..],
        b"\0\0\0\x02{}",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x05",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let socket = desk.path(&format!("odd{number}.sock"));
        let listener = UnixListener::bind(&socket).unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 16];
            drop(stream.read(&mut question));
            drop(stream.write_all(answer));
        });
        asked(&desk, &socket, "PreToolUse", write("src/a"))
            .await
            .blocked();
        answering.join().unwrap();
    }
}

#[test]
fn a_decision_that_panics_or_is_late_is_a_refusal() {
    let failed = guarded(Duration::from_mins(1), || panic!("it fails"));
    assert!(
        failed.blocked && failed.reason.contains("gate-panicked"),
        "{failed:?}"
    );
    let late = guarded(Duration::from_millis(20), || {
        std::thread::park_timeout(Duration::from_mins(1));
        Reply::allow()
    });
    assert!(
        late.blocked && late.reason.contains("gate-deadline"),
        "{late:?}"
    );
}

/// A client that never ends its event gets its answer all the same.
#[test]
fn an_event_that_does_not_end_is_a_refusal_in_time() {
    let desk = Desk::new();
    let mut command = desk.command(&[
        "hook-gate",
        "check",
        "--session",
        "S1",
        "--event",
        "PreToolUse",
        "--ttl",
        "1",
    ]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"tool_name\":").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("gate-deadline"));
    drop(input);
}

/// Panics, and then takes for ever.
struct Failing;

impl Answers for Failing {
    fn answer(&self, question: &Question<'_>) -> Reply {
        assert!(
            question.event != caretaker::hook_gate::HookEvent::PreToolUse,
            "it fails"
        );
        std::thread::park_timeout(Duration::from_secs(40));
        Reply::allow()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_that_is_late_or_fails_blocks() {
    let desk = Desk::new();
    let running = serve(&desk, |_| Arc::new(Failing));
    let failed = asked(&desk, &running.socket, "PreToolUse", write("src/a")).await;
    assert!(failed.blocked().contains("failed while it decided"));
    let late = asked(&desk, &running.socket, "Stop", "{}".to_owned()).await;
    assert!(late.blocked().contains("does not answer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_that_are_none_get_no_answer_and_harm_nobody() {
    let desk = Desk::new();
    let running = plain(&desk);
    assert_eq!(super::mode(&running.socket), 0o600);
    let silent = UnixStream::connect(&running.socket).unwrap();
    for bytes in [
        &b"\xff\xff\xff\xff"[..],
        b"\0\0\0\x02[]\0\0\0\0",
        b"\0\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = UnixStream::connect(&running.socket).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let closed = tokio::task::spawn_blocking(move || {
            drop(stream.read_to_end(&mut answer));
            answer
        });
        assert_eq!(closed.await.unwrap(), b"");
    }
    asked(&desk, &running.socket, "PreToolUse", write("src/a"))
        .await
        .allowed();
    drop(silent);
    // Nobody takes the place of a gate that answers.
    assert!(GateService::bind(&running.socket).is_err());
}

/// Only root can become somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_not_answered() {
    if !rustix::process::getuid().is_root() {
        eprintln!("SKIPPED: only root can ask as another user");
        return;
    }
    let desk = Desk::new();
    let running = plain(&desk);
    for place in [desk.folder.path().to_path_buf(), running.socket.clone()] {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut command = std::process::Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c"])
        .arg("import json,socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20); m=lambda b: len(b).to_bytes(4,'big')+b; s.sendall(m(json.dumps({'v':1,'session':'S1','event':'PreToolUse','role':'x','folder':'/'}).encode())+m(b'{}')); print(len(s.recv(10)))")
        .arg(&running.socket);
    let ran = tokio::task::spawn_blocking(move || super::ran(command, b""))
        .await
        .unwrap();
    // Closed before anything was read or said.
    assert!(
        ran.stdout.trim() == "0"
            || ran.stderr.contains("reset")
            || ran.stderr.contains("Broken pipe"),
        "{ran:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_others_may_reach_is_not_asked() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    let running = plain(&desk);
    let link = desk.path("link.sock");
    std::os::unix::fs::symlink(&running.socket, &link).unwrap();
    let reason = asked(&desk, &link, "PreToolUse", write("src/a"))
        .await
        .blocked();
    assert!(reason.contains("no socket, or a link"), "{reason}");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&running.socket, open).unwrap();
    let reason = asked(&desk, &running.socket, "PreToolUse", write("src/a"))
        .await
        .blocked();
    assert!(reason.contains("others may write it"), "{reason}");
}
