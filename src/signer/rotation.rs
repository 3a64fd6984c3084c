//! Another key in the place of `credential.key`, so that at every moment everything that is sealed opens.
//!
//! 1. The new key is written beside the old one, as `credential.key.next`. From here on both are tried, and what is sealed new
//!    is sealed with it.
//! 2. Every credential is sealed anew, in one transaction of the database.
//! 3. The new key is renamed onto the old one, which is gone then.
//!
//! A rotation that ended in between is taken up again with the key that lies there: it may be what the database is sealed under.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::credential::read_key;
use super::{CredentialSeal, KeyringError, files, places};
use crate::attest::keys::{Fill, FillError};
use crate::config::Configuration;

/// Why the key cannot be rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The keys that are there cannot be read.
    #[error(transparent)]
    Keys(#[from] KeyringError),
    /// Two at once.
    #[error(
        "rotating {path}: another command is at it; wait until it has ended, then see with `caretaker doctor` whether anything is left to do"
    )]
    Busy {
        /// The key.
        path: String,
    },
    /// The system refuses.
    #[error(
        "rotating the key of credentials: {doing} {path}: {cause}; what is sealed still opens. Mend that, then run `caretaker keys rotate-deployment` again"
    )]
    System {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// What the system answered.
        cause: io::Error,
    },
    /// No randomness.
    #[error(transparent)]
    Fill(#[from] FillError),
}

/// A rotation under way. One at a time: the folder of keys is locked until this is dropped.
#[derive(Debug)]
pub struct Rotation {
    folder: PathBuf,
    seal: CredentialSeal,
    resumed: bool,
    _lock: File,
}

fn system<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> RotationError + 'a {
    move |cause| RotationError::System {
        doing,
        path: path.display().to_string(),
        cause,
    }
}

impl Rotation {
    /// Writes a new key beside the present one, or takes up the one that an interrupted rotation left.
    ///
    /// # Errors
    /// There is no key, another command rotates it, or the system refuses.
    pub fn begin(configuration: &Configuration, fill: Fill<'_>) -> Result<Self, RotationError> {
        let folder = configuration.keys.dir.clone();
        let present = places::credential_file(&folder);
        drop(read_key(&present)?);
        let lock = File::open(&folder).map_err(system("opening", &folder))?;
        if lock.try_lock().is_err() {
            let path = present.display().to_string();
            return Err(RotationError::Busy { path });
        }
        let next = places::next_credential_file(&folder);
        let resumed = next.exists();
        if !resumed {
            write_whole(&folder, &next, fill)?;
        }
        Ok(Self {
            seal: CredentialSeal::new(*read_key(&next)?),
            folder,
            resumed,
            _lock: lock,
        })
    }

    /// Seals with the new key alone.
    pub const fn seal(&self) -> &CredentialSeal {
        &self.seal
    }

    /// Whether an interrupted rotation was taken up.
    pub const fn resumed(&self) -> bool {
        self.resumed
    }

    /// Puts the new key in the place of the old one. Everything must be sealed with it by now.
    ///
    /// # Errors
    /// The system refuses; both keys are still there then.
    pub fn finish(&self) -> Result<(), RotationError> {
        let next = places::next_credential_file(&self.folder);
        let present = places::credential_file(&self.folder);
        std::fs::rename(&next, &present).map_err(system("putting in place", &present))?;
        files::sync_folder(&self.folder).map_err(system("writing", &self.folder))
    }
}

/// Writes a key under its name once it is whole and on the disk: half a key would keep everything from opening.
fn write_whole(folder: &Path, path: &Path, fill: Fill<'_>) -> Result<(), RotationError> {
    let mut key = zeroize::Zeroizing::new([0; 32]);
    fill(key.as_mut_slice())?;
    // Only this user may read it, which is how such files are made.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(system("writing in", folder))?;
    let written = file.write_all(key.as_slice());
    written.map_err(system("writing", path))?;
    file.as_file().sync_all().map_err(system("writing", path))?;
    let kept = file.persist_noclobber(path);
    kept.map_err(|error| system("writing", path)(error.error))?;
    files::sync_folder(folder).map_err(system("writing", folder))
}
