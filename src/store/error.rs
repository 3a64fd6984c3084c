//! What can go wrong with the database, in the words that a person needs. No message holds an address's password.

use std::path::PathBuf;

use crate::change::Sha256Digest;
use crate::id::IncidentId;

/// Why the store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Not an address that this program opens.
    #[error(
        "opening the database: {reason}; write sqlite://PATH or postgres://USER@HOST/NAME as database.url"
    )]
    Address {
        /// What is wrong with it; never the address itself.
        reason: &'static str,
    },
    /// There is no such file, and nothing asked for one to be made.
    #[error(
        "opening the database {}: there is no such file; make one with `caretaker project register`, `caretaker serve` or `caretaker demo --keep`, or set database.url to the right one",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be made.
    #[error(
        "making the database {}: {reason}; give the user that runs caretaker a folder it may write, or set database.url to another one",
        path.display()
    )]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        reason: std::io::Error,
    },
    /// The file or its folder cannot be written.
    #[error(
        "{doing} in the database {place}: it cannot be written ({reason}); give the user that runs caretaker write permission to the file and to its folder (SQLite keeps two more files beside it)"
    )]
    ReadOnly {
        /// What was being done.
        doing: &'static str,
        /// The database, without password.
        place: String,
        /// What the database answered.
        reason: String,
    },
    /// Another process holds the write lock for too long.
    #[error(
        "{doing} in the database {place}: another process kept it locked for longer than the waiting time; nothing was written. Try again; when it persists, stop the program that keeps it open (a backup, a database browser), or use PostgreSQL for several workers"
    )]
    Locked {
        /// What was being done.
        doing: &'static str,
        /// The database, without password.
        place: String,
    },
    /// The file is no SQLite database, or a damaged one.
    #[error(
        "{doing} in the database {place}: it is not an SQLite database, or it is damaged ({reason}); set database.url to the right file, or restore it from a backup"
    )]
    Damaged {
        /// What was being done.
        doing: &'static str,
        /// The database, without password.
        place: String,
        /// What the database answered.
        reason: String,
    },
    /// A newer program made the schema.
    #[error(
        "opening the database {place}: its schema is version {found}, this program knows up to {known}; use the newer program that wrote it, or restore a backup from before"
    )]
    Newer {
        /// The database, without password.
        place: String,
        /// Version found.
        found: i64,
        /// Newest version known.
        known: i64,
    },
    /// The server does not answer, or the connection broke.
    #[error(
        "{doing} in the database {place}: the server cannot be reached ({reason}); check that it runs and that database.url names its host, port and database"
    )]
    Unreachable {
        /// What was being done.
        doing: &'static str,
        /// The database, without password.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// The server refuses this user, password or database name.
    #[error(
        "opening the database {place}: the server refuses ({reason}); check user, password and database name in database.url"
    )]
    Denied {
        /// The database, without password.
        place: String,
        /// What the server answered.
        reason: String,
    },
    /// A statement failed in a way that has no better words.
    #[error("{doing} in the database {place}: {reason}")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// The database, without password.
        place: String,
        /// What the database answered.
        reason: String,
    },
    /// What is stored cannot be read back.
    #[error(
        "reading {what} from the database: {reason}; the row was changed by something other than caretaker, or the database is damaged: compare with a backup"
    )]
    Unreadable {
        /// What was read.
        what: &'static str,
        /// Why it cannot be understood.
        reason: String,
    },
    /// Evidence whose bytes are not what its key says.
    #[error(
        "keeping evidence {expected}: its bytes have the digest {found}; nothing was written. Fetch the document again from where it came"
    )]
    EvidenceDigest {
        /// The key it was to be kept under.
        expected: Sha256Digest,
        /// The digest of its bytes.
        found: Sha256Digest,
    },
    /// What a step wants written contradicts what is stored. Nothing was written.
    #[error("writing to {incident}: {reason}; nothing was written")]
    Inconsistent {
        /// The incident.
        incident: IncidentId,
        /// The contradiction.
        reason: String,
    },
    /// A value that the database cannot hold.
    #[error("writing {what}: {reason}; nothing was written")]
    Value {
        /// Which value.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Something that must be there is not, or is not in the state it must be in.
    #[error("{doing}: {reason}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// Why not, with the mend.
        reason: String,
    },
}

/// What the database said, put into our words.
pub(super) fn translated(place: &str, doing: &'static str, error: &sqlx::Error) -> StoreError {
    let place = place.to_owned();
    let reason = reason(error);
    match error {
        sqlx::Error::Database(answer) => match answer.code().as_deref() {
            Some(code) => by_code(place, doing, code, reason),
            None => StoreError::Statement {
                doing,
                place,
                reason,
            },
        },
        sqlx::Error::PoolTimedOut if place.starts_with("sqlite:") => {
            StoreError::Locked { doing, place }
        }
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => StoreError::Unreachable {
            doing,
            place,
            reason,
        },
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Unreadable {
            what: doing,
            reason,
        },
        _ => StoreError::Statement {
            doing,
            place,
            reason,
        },
    }
}

/// The cause in words. A configuration error may repeat the address, so it is not passed on.
fn reason(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Configuration(_) => "the address is not understood".to_owned(),
        sqlx::Error::Database(answer) => answer.message().to_owned(),
        other => other.to_string(),
    }
}

/// SQLite's result codes are numbers whose low byte is the primary code; PostgreSQL's are five characters.
fn by_code(place: String, doing: &'static str, code: &str, reason: String) -> StoreError {
    if place.starts_with("sqlite:") {
        return match code.parse::<u32>().map(|number| number & 0xff) {
            Ok(5 | 6) => StoreError::Locked { doing, place },
            // Permission denied, read-only, cannot open: a file beside the database that cannot be made gives the last.
            Ok(3 | 8 | 14) => StoreError::ReadOnly {
                doing,
                place,
                reason,
            },
            Ok(11 | 26) => StoreError::Damaged {
                doing,
                place,
                reason,
            },
            _ => StoreError::Statement {
                doing,
                place,
                reason,
            },
        };
    }
    match code {
        "25006" => StoreError::ReadOnly {
            doing,
            place,
            reason,
        },
        // No lock in time, a deadlock, a conflict: the transaction is undone and may be tried again.
        "55P03" | "40P01" | "40001" => StoreError::Locked { doing, place },
        // Invalid authorisation, invalid password, no such database, no permission to connect.
        "28000" | "28P01" | "3D000" | "42501" => StoreError::Denied { place, reason },
        // Connection exceptions, too many connections, shutting down.
        code if code.starts_with("08") || code.starts_with("57P") || code == "53300" => {
            StoreError::Unreachable {
                doing,
                place,
                reason,
            }
        }
        _ => StoreError::Statement {
            doing,
            place,
            reason,
        },
    }
}
