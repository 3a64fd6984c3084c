//! The witness's own key: a file of its own, with nothing to open it but the right to read it.
//!
//! One line, `PRIVATE+KEY+NAME+ID+SEED` (an "skey" of C2SP signed-note). It is not sealed as the organisation's keys are: a
//! witness holds no secret but this one, on a machine where nobody else is.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use zeroize::Zeroizing;

use super::WitnessError;
use crate::attest::keys::Fill;
use crate::log::{
    KeyName, SignatureType, VerifierKey, WitnessSigner, new_signing_key, read_signing_key,
};

/// The file's name in the witness's folder.
pub const KEY_FILE: &str = "witness.key";
/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 1024;

/// A new key: what is written, and what others are given.
pub(super) fn make(
    name: &KeyName,
    fill: Fill<'_>,
) -> Result<(Zeroizing<String>, VerifierKey), WitnessError> {
    let (text, key) =
        new_signing_key(name, SignatureType::Witness, fill).map_err(WitnessError::Randomness)?;
    Ok((Zeroizing::new(format!("{}\n", text.as_str())), key))
}

/// Writes a key that nobody but its owner may read; there must be none.
pub(super) fn write(folder: &Path, text: &str) -> Result<(), WitnessError> {
    let path = folder.join(KEY_FILE);
    let failed = WitnessError::file("making the key", &path);
    let mut options = OpenOptions::new();
    // Break it: leave `mode` out; every user of the machine can then cosign
    // (`witness::folder::nobody_else_may_read_the_key`).
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(&failed)?;
    file.write_all(text.as_bytes()).map_err(&failed)?;
    file.sync_all().map_err(&failed)
}

/// Opens the key that is there.
pub(super) fn open(folder: &Path) -> Result<WitnessSigner, WitnessError> {
    let path = folder.join(KEY_FILE);
    let failed = WitnessError::file("opening the key", &path);
    let file = File::open(&path).map_err(&failed)?;
    let mode = file.metadata().map_err(&failed)?.permissions().mode();
    // Break it: leave this out and `witness::folder::nobody_else_may_read_the_key` fails.
    if mode & 0o077 != 0 {
        return Err(WitnessError::Readable { path });
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(&failed)?;
    let unusable = |reason: String| WitnessError::Key {
        path: path.clone(),
        reason,
    };
    let (secret, key) = read_signing_key(text.trim_end_matches('\n'))
        .map_err(|error| unusable(error.to_string()))?;
    if key.signature_type() != SignatureType::Witness {
        return Err(unusable("it is a log's".to_owned()));
    }
    Ok(WitnessSigner::new(key.name().clone(), secret))
}
