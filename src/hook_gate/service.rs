//! The gate in a running worker: hooks ask it over a Unix socket, the only thing of the worker's that a sandbox mounts.
//!
//! One question a connection, one answer. Each message has its length in four bytes before it. A question is two messages, what is
//! asked (JSON) and what the client wrote to the hook (bytes as they came); the answer is one, JSON. The peer must be this user.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::gate::{HookGate, Question};
use super::reply::{HookEvent, Reply};
use crate::clock::Clock;
use crate::receipts::Door;
use crate::tool_gate::MAXIMUM_EVENT_BYTES;

/// The socket's name in `CARETAKER_HOME`.
pub const SOCKET: &str = "hook-gate.sock";

/// Longest message that is no event, in bytes.
const LONGEST: u32 = 64 << 10;
/// Most questions that are answered at once; others wait.
const AT_ONCE: usize = 64;
/// How long a client may take to write its question.
const WRITE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    v: u32,
    session: String,
    event: String,
    role: String,
    folder: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    v: u32,
    blocked: bool,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Asks the gate at a socket.
///
/// # Errors
/// It is not there, does not answer within `within`, or answers something else. Whoever asks refuses the call then.
pub fn ask(socket: &Path, question: &Question<'_>, within: Duration) -> Result<Reply, String> {
    let failed = |error: io::Error| {
        format!(
            "the gate at {} does not answer: {error}; is the worker running?",
            socket.display()
        )
    };
    own_socket(socket).map_err(failed)?;
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream
        .set_read_timeout(Some(within))
        .and_then(|()| stream.set_write_timeout(Some(WRITE_WITHIN)))
        .map_err(failed)?;
    let asked = Asked {
        v: 1,
        session: question.session.to_owned(),
        event: question.event.name().to_owned(),
        role: question.role.to_owned(),
        folder: question.folder.to_owned(),
    };
    let asked = serde_json::to_vec(&asked).map_err(|error| failed(error.into()))?;
    write_message(&mut stream, &asked)
        .and_then(|()| write_message(&mut stream, question.input))
        .map_err(failed)?;
    let answer = read_message(&mut stream).map_err(failed)?;
    let answer: Answered = serde_json::from_slice(&answer)
        .map_err(|error| failed(io::Error::other(format!("its answer is not one ({error})"))))?;
    if answer.v != 1 {
        return Err(failed(io::Error::other("its answer is of another version")));
    }
    Ok(Reply {
        warning: answer
            .warning
            .and_then(|warning| Reply::allow_with(warning).warning),
        ..if answer.blocked {
            Reply::block(answer.reason)
        } else {
            Reply::allow()
        }
    })
}

/// Refuses a place where another user may answer.
fn own_socket(socket: &Path) -> io::Result<()> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let status = std::fs::symlink_metadata(socket)?;
    // Break it: leave this out; `hook_gate::service::a_socket_that_others_may_reach_is_not_asked` fails.
    if !status.file_type().is_socket() {
        return Err(io::Error::other("it is no socket, or a link"));
    }
    if status.uid() != rustix::process::geteuid().as_raw() || status.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "it belongs to another user, or others may write it",
        ));
    }
    Ok(())
}

fn write_message(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(bytes)
}

fn read_message(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("its answer is too long"));
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Who answers questions: builds the gate of one session and asks it. Called on a thread that may wait.
pub trait Answers: Send + Sync + 'static {
    /// Answers one question.
    fn answer(&self, question: &Question<'_>) -> Reply;
}

/// Answers with our own checks alone; ends of turns run producers.
pub struct PlainAnswers {
    /// The gate's state.
    pub home: super::Home,
    /// Where events go.
    pub events: Arc<dyn crate::events::EventSink>,
    /// Our own binary.
    pub launcher: PathBuf,
    /// How long the producers of one end of a turn may take.
    pub within: Duration,
}

impl std::fmt::Debug for PlainAnswers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PlainAnswers")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Answers for PlainAnswers {
    fn answer(&self, question: &Question<'_>) -> Reply {
        let gate = HookGate::plain(&self.home, self.events.as_ref());
        gate.reply(question, &self.launcher, self.within)
    }
}

/// A gate that listens.
#[derive(Debug)]
pub struct GateService {
    listener: UnixListener,
    path: PathBuf,
}

impl GateService {
    /// Listens at a socket that only this user can reach. A socket that a dead process left is taken over.
    ///
    /// # Errors
    /// Somebody answers there already, or the place cannot be used.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::other(format!(
                "another gate answers at {}; stop it, or name another socket",
                path.display()
            )));
        }
        // It gets its name when somebody listens there: whoever clears dead sockets away must not find it before.
        let fresh = path.with_extension("new");
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&fresh)?;
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&fresh, path)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Answers until it is told to stop.
    pub async fn serve(
        self,
        answers: Arc<dyn Answers>,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, say: what asks meanwhile is refused by its own timeout.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let own = rustix::process::getuid().as_raw();
            // Break it: answer everybody; `hook_gate::service::another_user_is_not_answered` fails.
            if !stream.peer_cred().is_ok_and(|peer| peer.uid() == own) {
                continue;
            }
            let Ok(place) = places.clone().acquire_owned().await else {
                break;
            };
            let (answers, clock) = (answers.clone(), clock.clone());
            tokio::spawn(async move {
                // One that breaks off gets no answer, which it takes for a refusal.
                drop(converse(stream, answers, clock).await);
                drop(place);
            });
        }
        drop(std::fs::remove_file(&self.path));
    }
}

async fn converse(
    mut stream: tokio::net::UnixStream,
    answers: Arc<dyn Answers>,
    clock: Arc<dyn Clock>,
) -> io::Result<()> {
    let longest_event = u32::try_from(MAXIMUM_EVENT_BYTES).unwrap_or(u32::MAX);
    let question = async {
        let asked = message(&mut stream, LONGEST).await?;
        let input = message(&mut stream, longest_event.saturating_add(1)).await?;
        Ok::<_, io::Error>((asked, input))
    };
    let (asked, input) = tokio::time::timeout(WRITE_WITHIN, question)
        .await
        .map_err(io::Error::other)??;
    let asked: Asked = serde_json::from_slice(&asked)?;
    let event = HookEvent::parse(&asked.event)
        .filter(|_| asked.v == 1)
        .ok_or_else(|| io::Error::other("a question of another version"))?;
    let answering = tokio::task::spawn_blocking(move || {
        answers.answer(&Question {
            session: &asked.session,
            event,
            input: &input,
            folder: &asked.folder,
            compatible: false,
            role: &asked.role,
            door: Door::HookGate,
            now: clock.now(),
        })
    });
    // A panic is a refusal here as everywhere.
    let reply = answering
        .await
        .unwrap_or_else(|_| Reply::block("the gate failed while it decided; nothing goes on"));
    let answer = Answered {
        v: 1,
        blocked: reply.blocked,
        reason: reply.reason,
        warning: reply.warning,
    };
    let bytes = serde_json::to_vec(&answer)?;
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&bytes).await?;
    stream.shutdown().await
}

async fn message(stream: &mut tokio::net::UnixStream, longest: u32) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await?;
    if length > longest {
        return Err(io::Error::other("a message that is too long"));
    }
    let mut bytes = Vec::new();
    let read = stream
        .take(u64::from(length))
        .read_to_end(&mut bytes)
        .await?;
    if read == usize::try_from(length).unwrap_or(usize::MAX) {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
