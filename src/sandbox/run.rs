//! One run, as seen from caretaker's own process: start the supervisor, tell it what to do, collect what comes back.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::wire::{Boundary, Ending, Launch, Program};
use super::{Captured, Command, Outcome, Sandbox, SandboxError, Status, paths, reexec, wire};

/// How long the supervisor may take to kill a run and say so.
const END_WITHIN: Duration = Duration::from_secs(15);
/// How long output may still arrive once every process of the run is gone.
const DRAIN_WITHIN: Duration = Duration::from_secs(5);
/// Largest answer of a supervisor, in bytes.
const LARGEST_ANSWER: u64 = 64 << 10;

impl Sandbox {
    /// Runs one program to its end, or to the end of its limits.
    ///
    /// Dropping the returned future kills everything the program started; so does the death of this process. When this
    /// returns, no process of the run is left.
    pub async fn run(&self, command: &Command) -> Result<Outcome, SandboxError> {
        let started = Instant::now();
        let message = self.message(command)?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()
            .map_err(|source| self.supervisor("reach", source))?;
        let mut child = self
            .start(theirs.into())
            .map_err(|source| self.supervisor("start", source))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(SandboxError::Lost {
                reason: "its output streams are missing".to_owned(),
            });
        };
        let control = ours
            .set_nonblocking(true)
            .and_then(|()| UnixStream::from_std(ours));
        let control = control.map_err(|source| self.supervisor("reach", source))?;
        let (overflow, gone) = (Notify::new(), CancellationToken::new());
        let conversation = async {
            let ended = self
                .converse(
                    &mut child,
                    control,
                    &message,
                    command.limits.wall,
                    &overflow,
                )
                .await;
            gone.cancel();
            ended
        };
        let most = usize::try_from(command.limits.output).unwrap_or(usize::MAX);
        let (ended, stdout, stderr) = tokio::join!(
            biased;
            conversation,
            collect(stdout, most, &overflow, &gone),
            collect(stderr, most, &overflow, &gone),
        );
        let status = ended?.status(command, &stdout, &stderr)?;
        Ok(Outcome {
            status,
            stdout,
            stderr,
            elapsed: started.elapsed(),
        })
    }

    /// What the supervisor is told: the launch, then the program's input.
    fn message(&self, command: &Command) -> Result<Vec<u8>, SandboxError> {
        command.check_words()?;
        let layered = matches!(self.boundary, Boundary::Bubblewrap { .. });
        let launch = Launch {
            boundary: self.boundary.clone(),
            launcher: self.launcher.clone(),
            grants: paths::grants(command, self.home.as_deref(), &self.launcher, layered)?,
            program: Program {
                argv: command.argv.clone(),
                directory: command.directory.clone(),
                environment: command.environment.clone(),
                private_loopback: command.private_loopback,
                limits: (&command.limits).into(),
            },
            stdin_length: command.stdin.len() as u64,
            temporary_directory: self.temporary_directory.clone(),
        };
        let encoded = wire::encode(&launch).map_err(|reason| SandboxError::BadCommand {
            reason: reason.to_string(),
        });
        let mut message = encoded?;
        message.extend(&command.stdin);
        Ok(message)
    }

    fn start(&self, control: OwnedFd) -> io::Result<Child> {
        tokio::process::Command::new(&self.launcher)
            .arg(reexec::SUPERVISE)
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(control))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Tells the supervisor what to run and waits for its answer, calling the run off when a limit is reached.
    async fn converse(
        &self,
        child: &mut Child,
        mut control: UnixStream,
        message: &[u8],
        wall: Duration,
        overflow: &Notify,
    ) -> Result<Ended, SandboxError> {
        let (from, mut to) = control.split();
        let mut answer = Vec::new();
        let mut from = from.take(LARGEST_ANSWER);
        let called_off = {
            let exchange = async {
                to.write_all(message).await?;
                from.read_to_end(&mut answer).await
            };
            tokio::select! {
                answered = exchange => answered.map(|_| None).map_err(|source| self.supervisor("talk to", source))?,
                () = tokio::time::sleep(wall) => Some(Status::TimedOut),
                () = overflow.notified() => Some(Status::OutputLimit),
            }
        };
        if called_off.is_some() {
            // The supervisor may have ended at this very moment; then there is nothing to call off.
            drop(to.shutdown().await);
            if timeout(END_WITHIN, from.read_to_end(&mut answer))
                .await
                .is_err()
            {
                drop(child.start_kill());
                return Err(SandboxError::Lost {
                    reason: "a process of the run could not be killed".to_owned(),
                });
            }
        }
        let exit = timeout(END_WITHIN, child.wait()).await;
        let ending =
            wire::read_document(&mut answer.as_slice()).map_err(|reason| SandboxError::Lost {
                reason: match exit {
                    Ok(Ok(status)) => format!("it ended with {status}, answer: {reason}"),
                    Ok(Err(_)) | Err(_) => reason.to_string(),
                },
            })?;
        Ok(Ended { called_off, ending })
    }

    pub(super) fn supervisor(&self, action: &'static str, source: io::Error) -> SandboxError {
        SandboxError::Supervisor {
            action,
            launcher: self.launcher.clone(),
            source,
        }
    }
}

/// How a run ended, as seen from here and from the supervisor.
struct Ended {
    called_off: Option<Status>,
    ending: Ending,
}

impl Ended {
    fn status(
        self,
        command: &Command,
        stdout: &Captured,
        stderr: &Captured,
    ) -> Result<Status, SandboxError> {
        if let Some(status) = self.called_off {
            return Ok(status);
        }
        match self.ending {
            // It printed too much and ended before it could be killed; the answer must not depend on who was faster.
            Ending::Exited(_) | Ending::Signalled(_) if stdout.cut || stderr.cut => {
                Ok(Status::OutputLimit)
            }
            Ending::Exited(code) => Ok(Status::Exited(code)),
            Ending::Signalled(signal) => Ok(Status::Signalled(signal)),
            Ending::ProcessLimit => Ok(Status::ProcessLimit),
            Ending::NotStarted(reason) => {
                let program = command
                    .argv
                    .first()
                    .map(|name| name.to_string_lossy().into_owned());
                Err(SandboxError::NotStarted {
                    program: program.unwrap_or_default(),
                    reason,
                })
            }
            // Bubblewrap says what failed on standard error, and the program never got to write there.
            Ending::SetupFailed(reason) => Err(SandboxError::Setup {
                reason: reason.unwrap_or_else(|| match stderr.text().trim() {
                    "" => "the boundary ended without a word".to_owned(),
                    said => said.to_owned(),
                }),
            }),
        }
    }
}

/// Reads a stream to its end, keeping the first `most` bytes; the rest is read and dropped, so that nothing blocks.
async fn collect(
    mut from: impl AsyncRead + Unpin,
    most: usize,
    overflow: &Notify,
    gone: &CancellationToken,
) -> Captured {
    let mut captured = Captured::default();
    let mut piece = vec![0; 16 << 10];
    let drained = async {
        gone.cancelled().await;
        tokio::time::sleep(DRAIN_WITHIN).await;
    };
    tokio::pin!(drained);
    loop {
        let read = tokio::select! {
            read = from.read(&mut piece) => read,
            () = &mut drained => Ok(0),
        };
        let Ok(count @ 1..) = read else {
            return captured;
        };
        let room = most.saturating_sub(captured.bytes.len());
        captured.bytes.extend_from_slice(&piece[..count.min(room)]);
        if count > room && !captured.cut {
            captured.cut = true;
            overflow.notify_one();
        }
    }
}
