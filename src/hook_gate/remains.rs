//! What sessions leave behind: sockets of processes that died, and folders whose time is over.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;

use super::home::{Home, SessionId, StateError};

/// Most entries of the state's folder that are looked at in one go.
const MOST_ENTRIES: usize = 100_000;

impl Home {
    /// Removes the sockets of sessions whose process is gone, and says how many. One at which somebody listens stays: another worker
    /// may have it open.
    ///
    /// # Errors
    /// The folder cannot be read. That there is none is no error.
    pub fn clear_sockets(&self) -> Result<u32, StateError> {
        let mut cleared = 0;
        for name in self.names()? {
            let part = name.strip_suffix(".sock");
            if !part.is_some_and(|part| part.starts_with("ask-")) {
                continue;
            }
            let path = self.root().join(&name);
            let socket = fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket());
            let dead = || {
                let asked = UnixStream::connect(&path);
                asked.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            };
            // Break it: leave out the question; `hook_gate::remains::a_socket_at_which_somebody_listens_stays` fails.
            if socket && dead() && fs::remove_file(&path).is_ok() {
                cleared += 1;
            }
        }
        Ok(cleared)
    }

    /// The registered sessions whose folders are here.
    ///
    /// # Errors
    /// The folder cannot be read. That there is none is no error.
    pub fn sessions(&self) -> Result<Vec<SessionId>, StateError> {
        let names = self.names()?.into_iter();
        let sessions = names.filter_map(|name| SessionId::parse(&name).ok());
        Ok(sessions
            .filter(|id| {
                let folder = fs::symlink_metadata(self.session(id));
                folder.is_ok_and(|folder| folder.is_dir())
            })
            .collect())
    }

    /// Removes a session's folder with its receipts; links in it are not followed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&self, id: &SessionId) -> Result<(), StateError> {
        let folder = self.session(id);
        fs::remove_dir_all(&folder).map_err(StateError::file("removing the folder", &folder))
    }

    fn names(&self) -> Result<Vec<String>, StateError> {
        let root = self.root();
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StateError::file("reading the folder", root)(error)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.take(MOST_ENTRIES).collect())
    }
}
