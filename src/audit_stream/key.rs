//! The stream's own key: a file beside the stream that only its owner may read.
//!
//! It is not sealed as the organisation's keys are, since every process that decides about a call writes events, many times a
//! second; so the stream is proof against whoever cannot read that file, and the ledger is what is proof against more.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use super::writer::HEAD_FILE;
use super::{StreamError, open_plain_with};
use crate::attest::SecretKey;
use crate::attest::keys::Fill;
use crate::log::{KeyName, SignatureType, VerifierKey, new_signing_key, read_signing_key};

/// The secret key, `PRIVATE+KEY+NAME+ID+SEED` (C2SP signed-note).
pub const KEY_FILE: &str = "stream.key";
/// Its public half, `NAME+ID+KEY`: what those who verify are given.
pub const PUBLIC_FILE: &str = "stream.pub";
/// The name in both.
const NAME: &str = "caretaker/audit-stream";
/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 1024;

/// The key that is there, or a new one where there is none. Nobody else makes one meanwhile.
pub(super) fn open_or_make(
    folder: &Path,
    fill: Fill<'_>,
) -> Result<(SecretKey, VerifierKey), StreamError> {
    let path = folder.join(KEY_FILE);
    match open_plain_with(&path, OpenOptions::new().read(true), OFlags::NOFOLLOW) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Break it: make another one; `audit_stream::writer::a_lost_key_is_not_replaced` fails.
            if folder.join(HEAD_FILE).exists() || !super::files(folder)?.is_empty() {
                return Err(StreamError::Key {
                    path,
                    reason: "it is gone, while there are events that it signed; put it back, or keep the folder as evidence under \
                             another name and let a new stream begin"
                        .to_owned(),
                });
            }
            make(folder, fill)
        }
        Err(error) => Err(StreamError::file("opening the audit stream's key", &path)(
            error,
        )),
        Ok(file) => read(&path, file),
    }
}

fn read(path: &Path, file: File) -> Result<(SecretKey, VerifierKey), StreamError> {
    let failed = StreamError::file("reading the audit stream's key", path);
    let refused = |reason: String| StreamError::Key {
        path: path.to_owned(),
        reason,
    };
    let status = file.metadata().map_err(&failed)?;
    let mode = status.permissions().mode();
    if status.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused(
            "it belongs to another user; keep the folder as it is under another name and let a new stream begin".to_owned(),
        ));
    }
    // Break it: leave this out and `audit_stream::writer::a_key_that_others_may_read_is_not_used` fails.
    if mode & 0o077 != 0 {
        return Err(refused(
            "other users may read it, so anybody could have signed; keep the folder as it is under another name and let a new \
             stream begin, or, where nobody else ever had access, `chmod 600` it"
                .to_owned(),
        ));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(&failed)?;
    read_signing_key(text.trim_end_matches('\n')).map_err(|error| refused(error.to_string()))
}

fn make(folder: &Path, fill: Fill<'_>) -> Result<(SecretKey, VerifierKey), StreamError> {
    let refused = |reason: String| StreamError::Key {
        path: folder.join(KEY_FILE),
        reason,
    };
    let name = KeyName::new(NAME).map_err(|error| refused(error.to_string()))?;
    let (text, key) = new_signing_key(&name, SignatureType::Log, fill)
        .map_err(|error| refused(error.to_string()))?;
    // First what everybody may know: a stream whose key exists can be verified.
    write(&folder.join(PUBLIC_FILE), &format!("{key}\n"), 0o644)?;
    write(
        &folder.join(KEY_FILE),
        &format!("{}\n", text.as_str()),
        0o600,
    )?;
    read_signing_key(&text).map_err(|error| refused(error.to_string()))
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), StreamError> {
    let failed = StreamError::file("writing the audit stream's key", path);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(mode);
    let mut file = options.open(path).map_err(&failed)?;
    file.write_all(text.as_bytes()).map_err(&failed)?;
    file.sync_all().map_err(&failed)
}
