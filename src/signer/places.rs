//! The names of the files in the folder of keys.

use std::path::{Path, PathBuf};

use crate::attest::{KeyUse, Role};

const TRUST_ROOT: &str = "trust-root-";
const TRUST_ROOT_END: &str = ".json";

/// The sealed key of one use: `<use>.key`.
pub fn key_file(directory: &Path, used: KeyUse) -> PathBuf {
    directory.join(format!("{used}.key"))
}

/// The key that takes its place, until the trust root lists it: `<use>.key.next`.
pub fn next_key_file(directory: &Path, used: KeyUse) -> PathBuf {
    directory.join(format!("{used}.key.next"))
}

/// The role's key before, for statements that name the version before: `<use>.key.previous`.
pub fn previous_key_file(directory: &Path, used: KeyUse) -> PathBuf {
    directory.join(format!("{used}.key.previous"))
}

/// What a role's signer has signed: `signed/<role>` in the installation's folder.
pub(super) fn memory_file(home: &Path, role: Role) -> PathBuf {
    home.join("signed").join(role.name())
}

/// A version of the trust root: `trust-root-<version>.json`.
pub fn trust_root_file(directory: &Path, version: u64) -> PathBuf {
    directory.join(format!("{TRUST_ROOT}{version}{TRUST_ROOT_END}"))
}

/// The key that seals credentials: `credential.key`.
pub fn credential_file(directory: &Path) -> PathBuf {
    directory.join("credential.key")
}

/// The key that takes its place, while it is rotated: `credential.key.next`.
pub fn next_credential_file(directory: &Path) -> PathBuf {
    directory.join("credential.key.next")
}

/// The version in the name of a trust root's file, if it is one.
pub(super) fn trust_root_version(name: &str) -> Option<u64> {
    let number = name
        .strip_prefix(TRUST_ROOT)?
        .strip_suffix(TRUST_ROOT_END)?;
    // One spelling a number: `trust-root-01.json` is nobody's.
    number
        .parse()
        .ok()
        .filter(|version: &u64| version.to_string() == number)
}

/// Whether a file of this name says that keys were made here.
pub(super) fn belongs_to_keys(name: &str) -> bool {
    name.starts_with(TRUST_ROOT)
        || Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "key")
}
