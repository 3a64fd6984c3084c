//! The audit stream: a folder of NDJSON files with one event a line, each line signed and chained to the one before it.
//!
//! The chain goes on over restarts and from file to file, and any number of processes write to it in turn. What a line says and
//! how it is verified: `docs/audit-stream.md`.

mod head;
mod key;
mod line;
mod plain;
mod verify;
mod writer;

pub use head::Head;
pub use key::{KEY_FILE, PUBLIC_FILE};
pub use line::MAX_LINE;
pub use plain::{open_plain, open_plain_with, write_over};
pub use verify::{StreamFailure, StreamReport, files, verify, verify_folder};
pub use writer::AuditStream;

use std::io;
use std::path::{Path, PathBuf};

/// The folder's name in `CARETAKER_HOME`.
pub const FOLDER: &str = "audit";

/// Why the stream cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The machine refused.
    #[error("{doing} {path}: {error}", path = path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// Another process writes and does not come to an end.
    #[error(
        "writing to the audit stream in {folder}: another process has held its lock for {waited_millis} ms; find it with `fuser {folder}/lock`",
        folder = folder.display()
    )]
    Busy {
        /// The stream's folder.
        folder: PathBuf,
        /// How long was waited.
        waited_millis: u64,
    },
    /// The end of the stream is not what was written last.
    #[error(
        "writing to the audit stream in {folder}: {found}; somebody changed it. Keep the folder as evidence under another name \
         (`caretaker audit verify` says what is wrong with it); a new stream then begins",
        folder = folder.display()
    )]
    Changed {
        /// The stream's folder.
        folder: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// The key is none, or is not kept safe.
    #[error("opening the audit stream's key {path}: {reason}", path = path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why, and the mend.
        reason: String,
    },
    /// An event that has no place in a line.
    #[error("writing the event {event}: {reason}")]
    Event {
        /// Its name.
        event: String,
        /// Why.
        reason: String,
    },
}

impl StreamError {
    fn file<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Self + 'a {
        move |error| Self::File {
            doing,
            path: path.to_owned(),
            error,
        }
    }
}
