//! The keys of an installation: made once by [`create()`], opened by [`Keyring`] for whoever signs.
//!
//! Everything lies in one folder (`keys.dir`, mode 0700):
//!
//! - `<use>.key`: a sealed key file each for proposer, policy, approver, executor, log and root; `<use>.key.next` takes its place
//!   once a trust root lists it, and a role's `<use>.key.previous` still signs what was drafted under the version before;
//! - `<use>.secret`: what opens it, unless the configuration names another place for the secret;
//! - `trust-root-<version>.json`: whose keys count, from version 1 without gaps;
//! - `credential.key`: 32 random bytes that seal the projects' credentials in the database, and from which approval links
//!   follow; `credential.key.next` takes its place while it is rotated.
//!
//! `signed/<role>` in the installation's folder is what each signer remembers to have signed.
//!
//! Signing needs the four role keys and the log's, and never the root key, which may lie elsewhere.

mod agent;
mod checkpoint;
mod create;
mod credential;
mod error;
mod exchange;
mod files;
mod fresh;
mod keyring;
mod memory;
mod places;
mod role_keys;
mod role_signer;
mod roles;
mod rotation;
mod sealed;
mod secret;
mod service;
mod socket;
mod succession;
mod trust;
mod walked;

pub use checkpoint::{CheckpointRefusal, CheckpointSigner};
pub use create::{Created, create, seal_root_key};
pub use credential::{CredentialError, CredentialSeal, fingerprint};
pub use error::{CreateError, KeyringError};
pub use keyring::Keyring;
pub use memory::FileMemory;
pub use places::{
    credential_file, key_file, next_credential_file, next_key_file, previous_key_file,
    trust_root_file,
};
pub use role_keys::open_signer;
pub use rotation::{Rotation, RotationError};
pub use sealed::{key_file_in_use, open_log_key, read_key_file};
pub use secret::secret_bytes;
pub use service::SigningService;
pub use succession::{Passed, Point, Replaced, Succeeded, Succession, SuccessionError, Wish};
pub use trust::trust_history;
pub use walked::WalkedLog;

use crate::attest::KeyUse;
use crate::attest::keys::FillError;

/// What an installation has keys for.
pub const USES: [KeyUse; 6] = [
    KeyUse::Proposer,
    KeyUse::Policy,
    KeyUse::Approver,
    KeyUse::Executor,
    KeyUse::Log,
    KeyUse::Root,
];

/// How long the first trust root allows acting: five years of 365 days, in seconds. Long, because a new version needs the
/// root key, which then lies somewhere offline; it still ends, so that an installation that nobody tends stops acting.
pub const TRUST_ROOT_SECONDS: i64 = 5 * 365 * 24 * 60 * 60;

/// Random bytes from the operating system.
///
/// # Errors
/// The system has none to give.
pub fn system_randomness(buffer: &mut [u8]) -> Result<(), FillError> {
    getrandom::fill(buffer).map_err(|error| FillError {
        reason: error.to_string(),
    })
}
