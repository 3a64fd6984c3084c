//! Where the gate keeps its state: outside every worktree, for its owner only.
//!
//! `CARETAKER_HOME/hook-gate/receipt.key` signs receipts, `token.key` the tokens of sessions; `…/<session>/` holds what was registered, the policy as it was, the
//! receipts, and what Stop counts. A worktree's own policy file (`--compat`) gets such a folder too, for its receipts.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::attest::keys::FillError;
use crate::audit_stream::open_plain_with;
use crate::change::Sha256Digest;
use crate::receipts::PemKey;

/// Why the gate's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The session's id could not be a file name.
    #[error("the session id is not 1 to 128 letters, digits, `-` and `_`; choose another one")]
    Id,
    /// The state would lie where the agent works.
    #[error(
        "the gate's state {home} lies inside of the worktree {worktree}, where the agent could change it; set CARETAKER_HOME to a folder elsewhere"
    )]
    InsideWorktree {
        /// The state.
        home: PathBuf,
        /// The worktree.
        worktree: PathBuf,
    },
    /// A file or folder.
    #[error("{doing} {path}: {reason}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        reason: String,
    },
    /// It is there, with other contents.
    #[error(
        "the session {0} is registered already, with another policy or worktree; choose a new id"
    )]
    Taken(String),
    /// What is there makes no sense.
    #[error(
        "reading the state of the session in {path}: {reason}; register the session again under a new id"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl StateError {
    pub(super) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| Self::File {
            doing,
            path,
            reason: error.to_string(),
        }
    }

    /// What is there must not be used, and registering again mends nothing.
    pub(super) fn refused(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::File {
            doing: "using the gate's state",
            path: path.to_owned(),
            reason: format!("{reason}"),
        }
    }

    pub(super) fn damaged(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason: format!("{reason}"),
        }
    }
}

/// A session's id: 1 to 128 ASCII letters, digits, `-` and `_`, so that it is a file name and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionId(String);

impl SessionId {
    /// Takes an id.
    ///
    /// # Errors
    /// Anything else than such a name.
    pub fn parse(id: &str) -> Result<Self, StateError> {
        // Break it: let dots and slashes through; `hook_gate::bad_input::an_unsafe_session_id_reaches_no_file` fails.
        let sound = (1..=128).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        if sound {
            Ok(Self(id.to_owned()))
        } else {
            Err(StateError::Id)
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The folder of the gate's state.
#[derive(Debug, Clone)]
pub struct Home {
    whole: PathBuf,
    root: PathBuf,
}

impl Home {
    /// The state below `CARETAKER_HOME`. Nothing is made yet.
    pub fn new(home: &Path) -> Self {
        Self {
            whole: home.to_owned(),
            root: home.join("hook-gate"),
        }
    }

    /// All of caretaker's state, which no gated session may read.
    pub fn whole(&self) -> PathBuf {
        std::fs::canonicalize(&self.whole).unwrap_or_else(|_| self.whole.clone())
    }

    /// The folder of all sessions.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Refuses a state that others could have changed.
    ///
    /// # Errors
    /// It is a link, another user's, or others may write it.
    pub(super) fn kept_safe(&self, session: &Path) -> Result<(), StateError> {
        // The folder that a person names may be a link of theirs; what lies in it is ours.
        let named =
            std::fs::metadata(&self.whole).map_err(StateError::file("looking at", &self.whole))?;
        safe_home(&self.whole, &named)?;
        for folder in [self.root.as_path(), session] {
            match std::fs::symlink_metadata(folder) {
                Ok(status) => safe(folder, &status)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(StateError::file("looking at", folder)(error)),
            }
        }
        Ok(())
    }

    /// The folder of a registered session.
    pub fn session(&self, id: &SessionId) -> PathBuf {
        self.root.join(id.as_str())
    }

    /// The socket of a session, by a part of its name that nothing else has: the path of a socket has at most 108 bytes.
    pub fn socket(&self, part: &str) -> PathBuf {
        self.root.join(format!("ask-{part}.sock"))
    }

    /// The folder of a session that a worktree's own policy gates.
    pub fn compatible_session(&self, id: &SessionId, worktree: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt as _;
        let place = Sha256Digest::of(worktree.as_os_str().as_bytes()).to_string();
        let place = place.get(..16).unwrap_or_default();
        self.root.join("worktrees").join(place).join(id.as_str())
    }

    /// Refuses a state that lies in a worktree.
    ///
    /// # Errors
    /// It does.
    pub fn keep_apart(&self, worktree: &Path) -> Result<(), StateError> {
        let home = deepest(&self.whole);
        if home.starts_with(worktree) {
            return Err(StateError::InsideWorktree {
                home,
                worktree: worktree.to_owned(),
            });
        }
        Ok(())
    }

    /// The key that signs receipts; made by whoever needs it first.
    ///
    /// # Errors
    /// It cannot be read or made, or others can read it.
    pub fn receipt_key(&self) -> Result<Arc<PemKey>, StateError> {
        self.own_key(&self.key_file(), "receipts")
    }

    /// The key that signs the capability tokens of sessions; made by whoever needs it first.
    ///
    /// # Errors
    /// It cannot be read or made, or others can read it.
    pub fn token_key(&self) -> Result<Arc<PemKey>, StateError> {
        self.own_key(&self.root.join("token.key"), "tokens")
    }

    /// The list of tokens that count no longer.
    pub(super) fn revocation_file(&self) -> PathBuf {
        self.root.join("revoked-tokens")
    }

    fn own_key(&self, file: &Path, what: &str) -> Result<Arc<PemKey>, StateError> {
        if !file.exists() {
            // Break it: make another one; `hook_gate::state::a_lost_key_is_not_replaced` fails.
            if let Some(signed) = self.signed_before(what) {
                return Err(StateError::refused(
                    file,
                    format!(
                        "it is gone, while it signed {}; put it back, or keep the folder as evidence and set CARETAKER_HOME to another one",
                        signed.display()
                    ),
                ));
            }
            self.make_key(file, what)?;
        }
        read_key(file)
    }

    /// Something that the key of that kind signed.
    fn signed_before(&self, what: &str) -> Option<PathBuf> {
        let name = if what == "tokens" {
            "tokens.json"
        } else {
            "receipts.jsonl"
        };
        let below = |folder: &Path| {
            std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect::<Vec<_>>()
        };
        let worktrees = below(&self.root.join("worktrees"));
        let mut sessions = below(&self.root);
        sessions.extend(worktrees.iter().flat_map(|worktree| below(worktree)));
        sessions
            .into_iter()
            .map(|session| session.join(name))
            .find(|file| file.exists())
    }

    /// The key that signs receipts, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or others can write it.
    pub fn present_key(&self) -> Result<Option<Arc<PemKey>>, StateError> {
        let file = self.key_file();
        if file.exists() {
            read_key(&file).map(Some)
        } else {
            Ok(None)
        }
    }

    fn key_file(&self) -> PathBuf {
        self.root.join("receipt.key")
    }

    fn make_key(&self, file: &Path, what: &str) -> Result<(), StateError> {
        let doing = if what == "tokens" {
            "making the tokens' key"
        } else {
            "making the receipts' key"
        };
        private_folder(&self.root)?;
        let mut fill = |buffer: &mut [u8]| {
            getrandom::fill(buffer).map_err(|error| FillError {
                reason: error.to_string(),
            })
        };
        let (_, text) =
            PemKey::generate(&mut fill).map_err(|error| StateError::damaged(file, error))?;
        let made = tempfile::Builder::new()
            .permissions(std::fs::Permissions::from_mode(0o600))
            .tempfile_in(&self.root)
            .and_then(|mut made| {
                made.write_all(text.as_bytes())?;
                made.as_file().sync_all()?;
                Ok(made)
            })
            .map_err(StateError::file(doing, file))?;
        // Of several that make one at once the first one's counts.
        match made.persist_noclobber(file) {
            Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                Err(StateError::file(doing, file)(error.error))
            }
            _ => Ok(()),
        }
    }
}

fn read_key(file: &Path) -> Result<Arc<PemKey>, StateError> {
    let text = read_private(file, 4096)?;
    let text = String::from_utf8(text).map_err(|_| StateError::damaged(file, "not text"))?;
    let key = PemKey::from_pem(&text).map_err(|error| StateError::damaged(file, error))?;
    Ok(Arc::new(key))
}

/// A path with the links of its deepest existing ancestor resolved.
pub(super) fn deepest(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = std::fs::canonicalize(at) {
            return rest.iter().rev().fold(real, |real, name| real.join(name));
        }
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                at = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

/// Makes a folder, and those above it, that only its owner can enter.
pub(super) fn private_folder(folder: &Path) -> Result<(), StateError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(StateError::file("making the folder", folder))
}

/// Reads a file of ours that others must not be able to write, of at most `limit` bytes.
pub(super) fn read_private(file: &Path, limit: u64) -> Result<Vec<u8>, StateError> {
    use std::os::unix::fs::MetadataExt as _;
    let failed = StateError::file("reading", file);
    let mut bytes = Vec::new();
    let read = || -> io::Result<(u32, u64)> {
        let opened = open_own(file, OpenOptions::new().read(true))?;
        let status = opened.metadata()?;
        if status.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to another user"));
        }
        opened.take(limit + 1).read_to_end(&mut bytes)?;
        Ok((status.mode(), bytes.len() as u64))
    };
    let (mode, length) = { read }().map_err(failed)?;
    if mode & 0o022 != 0 {
        return Err(StateError::damaged(
            file,
            "others can write it (chmod go-w)",
        ));
    }
    if length > limit {
        return Err(StateError::damaged(
            file,
            format!("it has more than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Opens an ordinary file of ours, which is no link.
pub(super) fn open_own(file: &Path, options: &mut OpenOptions) -> io::Result<File> {
    open_plain_with(file, options, rustix::fs::OFlags::NOFOLLOW)
}

/// The same of the folder that a person names: their own group may write it, as many systems have it.
fn safe_home(folder: &Path, status: &std::fs::Metadata) -> Result<(), StateError> {
    use std::os::unix::fs::MetadataExt as _;
    let own_group = status.gid() == rustix::process::getegid().as_raw();
    let others = if own_group { 0o002 } else { 0o022 };
    let own = status.uid() == rustix::process::geteuid().as_raw();
    if status.is_dir() && own && status.mode() & others == 0 {
        return Ok(());
    }
    Err(StateError::refused(
        folder,
        "it is no folder, belongs to another user, or others can write it (chmod go-w)",
    ))
}

/// Refuses a folder that is none, another user's, or that others may write.
fn safe(folder: &Path, status: &std::fs::Metadata) -> Result<(), StateError> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |reason: &str| Err(StateError::refused(folder, reason));
    // Break it: leave this out; `hook_gate::state::a_state_that_others_may_write_is_not_used` fails.
    if !status.is_dir() {
        refused("it is no folder, or a link")
    } else if status.uid() != rustix::process::geteuid().as_raw() {
        refused("it belongs to another user")
    } else if status.mode() & 0o022 != 0 {
        refused("others can write it (chmod go-w)")
    } else {
        Ok(())
    }
}

/// Puts a file for its owner in the place of what is there, whole or not at all.
pub(super) fn write_private(file: &Path, bytes: &[u8]) -> Result<(), StateError> {
    let failed = || StateError::file("writing", file);
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut made = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(failed())?;
    made.write_all(bytes).map_err(failed())?;
    made.persist(file).map_err(|error| failed()(error.error))?;
    Ok(())
}

/// The session's lock: held while a receipt is added.
pub(super) fn lock(folder: &Path) -> Result<File, StateError> {
    let file = folder.join("lock");
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let opened =
        open_own(&file, options.mode(0o600)).map_err(StateError::file("opening", &file))?;
    rustix::fs::flock(&opened, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| StateError::file("locking", &file)(error.into()))?;
    Ok(opened)
}
