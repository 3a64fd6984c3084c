//! Reading configuration and rules files, with a bound on their size.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Largest configuration, rules or secret file, in bytes.
pub const MAXIMUM_FILE_BYTES: u64 = 1024 * 1024;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The system refuses.
    #[error("reading the {what} file {path}: {cause}; check the path and its permissions")]
    Unreadable {
        /// What the file is.
        what: &'static str,
        /// Its path.
        path: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// Not an ordinary file.
    #[error(
        "reading the {what} file {path}: it is a folder, a pipe or a device; name an ordinary file"
    )]
    NotAFile {
        /// What the file is.
        what: &'static str,
        /// Its path.
        path: String,
    },
    /// Larger than [`MAXIMUM_FILE_BYTES`].
    #[error(
        "reading the {what} file {path}: it is larger than {MAXIMUM_FILE_BYTES} bytes; is it the right file?"
    )]
    Large {
        /// What the file is.
        what: &'static str,
        /// Its path.
        path: String,
    },
}

/// Reads a file that must be there; `what` names it in messages.
///
/// # Errors
/// It cannot be read, is no ordinary file (which is asked before it is opened), or is larger than [`MAXIMUM_FILE_BYTES`].
pub fn read(path: &Path, what: &'static str) -> Result<Vec<u8>, SourceError> {
    let shown = || path.display().to_string();
    let unreadable = |cause| SourceError::Unreadable {
        what,
        path: shown(),
        cause,
    };
    // Asked before opening: opening a pipe would wait for a writer.
    // Break it: leave this out (`onboard::command::wrong_words_are_told_apart_from_what_cannot_be_done`).
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(SourceError::NotAFile {
            what,
            path: shown(),
        });
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAXIMUM_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAXIMUM_FILE_BYTES) {
        Ok(bytes)
    } else {
        Err(SourceError::Large {
            what,
            path: shown(),
        })
    }
}

/// Reads a file that may be absent; one that is there and cannot be read is an error.
pub(super) fn read_if_there(
    path: &Path,
    what: &'static str,
) -> Result<Option<Vec<u8>>, SourceError> {
    match read(path, what) {
        Err(SourceError::Unreadable { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        other => other.map(Some),
    }
}
