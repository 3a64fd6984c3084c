//! How git gets the credential: it starts our own binary to ask for it, and that asks us over a private socket.
//!
//! `GIT_ASKPASS` names a program and can give it no argument of ours, so the program is a link to our binary under a name of
//! its own, in a directory that only this user can enter and that lasts as long as the git process.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Pid, getpgid, getuid};
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::remote::USER;
use super::{GitError, Remote};

/// The name under which our binary is the asking program.
const PROGRAM: &str = "caretaker-askpass";
/// The socket beside it.
const SOCKET: &str = "socket";
/// Longest question and answer, in bytes.
const LONGEST: u64 = 16 << 10;
/// How long one side waits for the other.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers git's question when this process was started under the asking program's name, with `arguments` (its own name
/// first). Returns the process's exit code, or `None` when the arguments are for the rest of the command line.
pub fn answer_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let program = PathBuf::from(arguments.next()?);
    if program.file_name()? != PROGRAM {
        return None;
    }
    let question = arguments.next().unwrap_or_default();
    match ask(
        &program.with_file_name(SOCKET),
        question.to_string_lossy().as_bytes(),
    ) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) | Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Passes the question on and the answer back; `false` when there was none.
fn ask(socket: &Path, question: &[u8]) -> io::Result<bool> {
    let mut stream = BlockingStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = zeroize::Zeroizing::new(Vec::new());
    stream.take(LONGEST).read_to_end(&mut answer)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&answer)?;
    stdout.flush()?;
    Ok(!answer.is_empty())
}

/// The private directory of one git process, and its socket when there is a credential to hand out.
pub(super) struct Answerer<'a> {
    directory: TempDir,
    listening: Option<(UnixListener, &'a Remote)>,
}

impl<'a> Answerer<'a> {
    /// Prepares to answer for `remote`; without a credential there is nothing to answer and git gives up by itself.
    pub(super) fn create(launcher: &Path, remote: Option<&'a Remote>) -> Result<Self, GitError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| GitError::System {
                doing: "preparing to answer git",
                path,
                source,
            }
        };
        let parent = std::env::temp_dir();
        let prefix = tempfile::Builder::new()
            .prefix("caretaker-git-")
            .tempdir_in(&parent);
        let directory = prefix.map_err(failed(&parent))?;
        let Some(remote) = remote.filter(|remote| remote.token().is_some()) else {
            return Ok(Self {
                directory,
                listening: None,
            });
        };
        let launcher = std::fs::canonicalize(launcher).map_err(failed(launcher))?;
        std::os::unix::fs::symlink(launcher, directory.path().join(PROGRAM))
            .map_err(failed(directory.path()))?;
        let socket = directory.path().join(SOCKET);
        let listener = UnixListener::bind(&socket).map_err(failed(&socket))?;
        Ok(Self {
            directory,
            listening: Some((listener, remote)),
        })
    }

    /// An empty directory that can stand for git's home.
    pub(super) fn home(&self) -> &Path {
        self.directory.path()
    }

    /// The asking program, if there is anything to ask for.
    pub(super) fn program(&self) -> Option<PathBuf> {
        self.listening
            .as_ref()
            .map(|_| self.directory.path().join(PROGRAM))
    }

    /// Answers questions of the process group `group`; only returns when it cannot go on.
    pub(super) async fn serve(&self, group: Option<u32>) -> io::Error {
        let Some((listener, remote)) = &self.listening else {
            return std::future::pending().await;
        };
        loop {
            match listener.accept().await {
                Ok((mut stream, _)) if is_of(&stream, group) => {
                    // One that says nothing must not keep git from its deadline, and its failure is git's to report.
                    drop(tokio::time::timeout(PATIENCE, answer(&mut stream, remote)).await);
                }
                Ok(_) => {}
                Err(reason) => return reason,
            }
        }
    }
}

/// Whether the other end is this user's and belongs to git's own process group.
fn is_of(stream: &UnixStream, group: Option<u32>) -> bool {
    let Ok(peer) = stream.peer_cred() else {
        return false;
    };
    let peer_group = peer
        .pid()
        .and_then(Pid::from_raw)
        .and_then(|pid| getpgid(Some(pid)).ok());
    let same = peer_group.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()) == group;
    same && group.is_some() && peer.uid() == getuid().as_raw()
}

async fn answer(stream: &mut UnixStream, remote: &Remote) -> io::Result<()> {
    let mut question = String::new();
    (&mut *stream)
        .take(LONGEST)
        .read_to_string(&mut question)
        .await?;
    match (asked_for(&question, remote), remote.token()) {
        (Some(Asked::User), Some(_)) => stream.write_all(USER.as_bytes()).await?,
        (Some(Asked::Password), Some(token)) => {
            stream.write_all(token.expose_secret().as_bytes()).await?;
        }
        _ => {}
    }
    stream.shutdown().await
}

/// What git wants to know.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    User,
    Password,
}

/// Reads a question such as `Password for 'https://x-access-token@github.com': `; `None` when it is not about `remote`.
fn asked_for(question: &str, remote: &Remote) -> Option<Asked> {
    let (what, rest) = question.split_once(" for '")?;
    let (address, _) = rest.rsplit_once('\'')?;
    let asked = match what {
        "Username" => Asked::User,
        "Password" => Asked::Password,
        _ => return None,
    };
    remote.is_same_host(address).then_some(asked)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::{Asked, asked_for};
    use crate::workspace::git_command::Remote;

    // Break it: answer whatever host the question names; this then fails.
    #[test]
    fn only_questions_about_the_remotes_own_host_are_answered() {
        let token = Some(SecretString::from("secret"));
        let remote = Remote::new("https://github.com/owner/name.git", token).unwrap();
        let ask = |question: &str| asked_for(question, &remote);
        assert_eq!(
            ask("Username for 'https://github.com': "),
            Some(Asked::User)
        );
        assert_eq!(
            ask("Password for 'https://x-access-token@github.com': "),
            Some(Asked::Password)
        );
        for other in [
            "Password for 'https://github.com.evil.example': ",
            "Password for 'https://github.com@evil.example': ",
            "Password for 'http://github.com': ",
            "Password for 'https://github.com:444': ",
            "Enter passphrase for 'https://github.com': ",
            "Password for 'https://evil.example/' or 'https://github.com': ",
            "Password for https://github.com",
            "",
        ] {
            assert_eq!(ask(other), None, "{other}");
        }
    }
}
