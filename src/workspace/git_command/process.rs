//! One git process: started in a group of its own, bounded in time and output, killed with all its helpers.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::GitError;
use super::askpass::Answerer;

/// Most bytes kept of each of git's two outputs.
const OUTPUT: usize = 256 << 10;

/// A git process that ended.
pub(super) struct Finished {
    /// Its exit code; `None` when a signal ended it.
    pub(super) code: Option<i32>,
    /// What it printed, as far as it is kept.
    pub(super) stdout: Vec<u8>,
    /// Its messages.
    pub(super) stderr: String,
}

impl Finished {
    pub(super) fn success(&self) -> bool {
        self.code == Some(0)
    }
}

/// Why there is no ended process.
pub(super) enum Failed {
    Deadline,
    System(io::Error),
}

impl From<io::Error> for Failed {
    fn from(reason: io::Error) -> Self {
        Self::System(reason)
    }
}

impl Failed {
    pub(super) fn into_error(
        self,
        doing: &'static str,
        git: &Path,
        deadline: Duration,
    ) -> GitError {
        match self {
            Self::Deadline => GitError::TimedOut { doing, deadline },
            Self::System(source) => GitError::System {
                doing: "running git",
                path: git.to_owned(),
                source,
            },
        }
    }
}

/// Kills the whole group unless the process was collected before.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // There is a number as long as the process was not collected, so it cannot be another one's by now.
        let leader = self
            .0
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        if let Some(leader) = leader {
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// Runs `command` to its end while `answerer` answers its questions.
pub(super) async fn run(
    mut command: Command,
    answerer: Answerer<'_>,
    deadline: Duration,
) -> Result<Finished, Failed> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut group = Group(command.spawn()?);
    let number = group.0.id();
    let streams = (group.0.stdout.take(), group.0.stderr.take());
    let (Some(stdout), Some(stderr)) = streams else {
        return Err(Failed::System(io::Error::other(
            "its output streams are missing",
        )));
    };
    let work = async {
        let ended = async { tokio::join!(collect(stdout), collect(stderr), group.0.wait()) };
        tokio::select! {
            ended = ended => Ok(ended),
            never = answerer.serve(number) => Err(never),
        }
    };
    match tokio::time::timeout(deadline, work).await {
        Err(_) => {
            // Dropping the group kills it; the runtime collects what is left of it.
            Err(Failed::Deadline)
        }
        Ok(Err(reason)) => Err(Failed::System(reason)),
        Ok(Ok((stdout, stderr, status))) => Ok(Finished {
            code: status?.code(),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }),
    }
}

/// Reads to the end, keeping what fits; the rest is read and dropped, so that git does not wait.
async fn collect(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut piece = vec![0; 8 << 10];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let room = OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&piece[..count.min(room)]);
    }
    kept
}
