//! A Unix socket at which this user alone is heard.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{UnixListener, UnixStream};

use super::ProxyError;

/// Longest path of a Unix socket, in bytes (`sun_path` in unix(7), with the NUL at its end).
pub const LONGEST_SOCKET_PATH: usize = 107;

/// How long to wait when a connection cannot be taken, for want of descriptors, say.
const AGAIN_IN: Duration = Duration::from_millis(50);

/// Why a path is too long for a socket.
pub(in crate::agent::client) fn check_length(path: &Path) -> Result<(), String> {
    let bytes = path.as_os_str().len();
    if bytes > LONGEST_SOCKET_PATH {
        return Err(format!(
            "a socket's path has at most {LONGEST_SOCKET_PATH} bytes, and {} has {bytes}; set CARETAKER_HOME to a shorter path",
            path.display()
        ));
    }
    Ok(())
}

/// A listener for this user's processes; its socket goes with it.
pub(super) struct OwnUser {
    listener: UnixListener,
    path: PathBuf,
}

impl OwnUser {
    /// Listens at a path that does not exist yet.
    pub(super) fn bind(path: &Path) -> Result<Self, ProxyError> {
        let failed = |reason: String| ProxyError::Listen {
            path: path.display().to_string(),
            reason,
        };
        check_length(path).map_err(failed)?;
        let listener = UnixListener::bind(path).map_err(|error| failed(error.to_string()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }
}

impl Listener for OwnUser {
    type Io = UnixStream;
    type Addr = ();

    async fn accept(&mut self) -> (UnixStream, ()) {
        let own = rustix::process::getuid().as_raw();
        loop {
            match self.listener.accept().await {
                // Break it: take everybody; `agent::client::proxy::another_user_is_not_heard` fails.
                Ok((stream, _)) if stream.peer_cred().is_ok_and(|peer| peer.uid() == own) => {
                    return (stream, ());
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(AGAIN_IN).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OwnUser {
    fn drop(&mut self) {
        // The folder that it lies in goes, too.
        drop(std::fs::remove_file(&self.path));
    }
}
