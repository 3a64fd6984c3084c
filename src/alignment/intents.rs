//! What tasks are for, beyond this process: after a restart a task's calls are compared with what it began with, not with whatever is
//! said next.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tasks::LONGEST_INTENT;
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// Files of tasks that nobody ended go after this.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// Longest file: JSON writes a byte with at most six.
const LONGEST_FILE: u64 = 6 * LONGEST_INTENT as u64 + 16 * 1024;

/// Why what a task is for could not be kept, found or forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{action} the intent of a task, file {path}: {reason}; look after the folder and its permissions"
)]
pub struct IntentError {
    /// What was being done.
    pub action: &'static str,
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: String,
}

/// Keeps what tasks are for. All of it is small and synchronous, like recording.
pub trait Intents: Send + Sync {
    /// Keeps the intent of a task and answers what is kept: the first that was ever kept of it, since nothing replaces it.
    ///
    /// # Errors
    /// It cannot be kept.
    fn keep(&self, task: &str, intent: &str) -> Result<String, IntentError>;

    /// What a task is for, if that is kept.
    ///
    /// # Errors
    /// It cannot be told.
    fn kept(&self, task: &str) -> Result<Option<String>, IntentError>;

    /// Forgets it.
    ///
    /// # Errors
    /// It may still be there.
    fn forget(&self, task: &str) -> Result<(), IntentError>;
}

/// A folder with one file a task, which only its owner can read. Several processes may share it.
#[derive(Debug, Clone)]
pub struct FolderIntents {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    task: String,
    intent: String,
}

impl FolderIntents {
    /// Opens the folder, making it where it is missing, and removes what is older than thirty days.
    ///
    /// # Errors
    /// It cannot be made or listed.
    pub fn open(folder: &Path, now: Millis) -> Result<Self, IntentError> {
        use std::os::unix::fs::DirBuilderExt as _;
        let opening = |error: std::io::Error| failed("making room for", folder, &error);
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(opening)?;
        let now = u64::try_from(now.0).unwrap_or(0);
        let oldest = Duration::from_millis(now).saturating_sub(KEPT);
        for entry in fs::read_dir(folder).map_err(opening)? {
            let entry = entry.map_err(opening)?;
            let modified = entry.metadata().and_then(|about| about.modified());
            let since = modified
                .ok()
                .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            if since.is_some_and(|since| since < oldest) {
                remove(&entry.path())?;
            }
        }
        Ok(Self {
            folder: folder.to_path_buf(),
        })
    }

    /// Names of tasks are strangers' words, so files are named by their digests.
    fn file(&self, task: &str) -> PathBuf {
        let digest = Sha256Digest::of(task.as_bytes());
        self.folder.join(format!("{digest}.json"))
    }
}

impl Intents for FolderIntents {
    fn keep(&self, task: &str, intent: &str) -> Result<String, IntentError> {
        let path = self.file(task);
        let keeping = |error: &dyn std::fmt::Display| failed("keeping", &path, error);
        let kept = Kept {
            task: task.to_owned(),
            intent: intent.to_owned(),
        };
        let bytes = serde_json::to_vec(&kept).map_err(|error| keeping(&error))?;
        // Written whole beside its place, for its owner alone, and put there only if nothing is.
        let written = tempfile::NamedTempFile::new_in(&self.folder).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            Ok(file)
        });
        let file = written.map_err(|error| keeping(&error))?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(kept.intent),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                let first = self.kept(task)?;
                first.ok_or_else(|| keeping(&"it was there and is gone"))
            }
            Err(error) => Err(keeping(&error.error)),
        }
    }

    fn kept(&self, task: &str) -> Result<Option<String>, IntentError> {
        let path = self.file(task);
        let finding = |error: &dyn std::fmt::Display| failed("finding", &path, error);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(finding(&error)),
        };
        let mut bytes = Vec::new();
        let read = file.take(LONGEST_FILE).read_to_end(&mut bytes);
        read.map_err(|error| finding(&error))?;
        let kept: Kept =
            serde_json::from_slice(&bytes).map_err(|_| finding(&"it is not what was written"))?;
        if kept.task != task || kept.intent.len() > LONGEST_INTENT {
            return Err(finding(&"it is of another task"));
        }
        Ok(Some(kept.intent))
    }

    fn forget(&self, task: &str) -> Result<(), IntentError> {
        remove(&self.file(task))
    }
}

fn failed(action: &'static str, path: &Path, error: &dyn std::fmt::Display) -> IntentError {
    IntentError {
        action,
        path: path.to_path_buf(),
        reason: error.to_string(),
    }
}

fn remove(path: &Path) -> Result<(), IntentError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("forgetting", path, &error))
        }
        _ => Ok(()),
    }
}
