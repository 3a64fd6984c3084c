//! Processes that end with their test, and are waited for only so long.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How long anything here may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(4);
/// How long a process may take to end when asked to.
const FAREWELL: Duration = Duration::from_secs(20);

/// Waits, but not for ever; `what` is waited for.
pub(crate) async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("{what}: not within {} seconds", PATIENCE.as_secs()))
}

/// A command that ran to its end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Ended {
    pub(crate) async fn of(mut command: Command) -> Self {
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = bounded("a command", command.output()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code(),
            out: text(output.stdout),
            error: text(output.stderr),
        }
    }

    /// The JSON document that it printed.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{}", self.error);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }

    /// It failed with exit code 1, printed nothing, and said each of these pieces in one line.
    pub(crate) fn refuses(&self, pieces: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{self:?}");
        assert!(self.error.starts_with("caretaker: "), "{}", self.error);
        assert_eq!(self.error.lines().count(), 1, "{}", self.error);
        for piece in pieces {
            assert!(self.error.contains(piece), "no {piece:?}: {}", self.error);
        }
    }
}

/// A running process whose standard error goes into a file.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Process {
    /// Starts it and reads the first line that it prints.
    pub(crate) async fn start(mut command: Command, log: &Path) -> (Self, String) {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut process = Self {
            child,
            lines,
            log: log.to_owned(),
        };
        let line = bounded("the first line", process.lines.next_line()).await;
        let Some(line) = line.unwrap() else {
            panic!("it printed nothing: {}", process.log());
        };
        (process, line)
    }

    /// What it and its predecessors wrote to standard error.
    pub(crate) fn log(&self) -> String {
        String::from_utf8(std::fs::read(&self.log).unwrap()).unwrap()
    }

    /// Asks it to end; it must do so in time.
    pub(crate) async fn terminate(mut self) -> Option<i32> {
        kill_process(self.id(), Signal::TERM).unwrap();
        let ended = tokio::time::timeout(FAREWELL, self.child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("it goes on after SIGTERM: {}", self.log()));
        ended.unwrap().code()
    }

    /// Ends it as a power cut would.
    pub(crate) async fn kill(mut self) {
        kill_process(self.id(), Signal::KILL).unwrap();
        bounded("a killed process", self.child.wait())
            .await
            .unwrap();
    }

    fn id(&self) -> Pid {
        let id = self.child.id().expect("it has ended");
        Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
    }
}
