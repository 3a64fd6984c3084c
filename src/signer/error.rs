//! Why there are no keys to sign with.

use std::io;

use super::CredentialError;
use crate::attest::keys::FillError;
use crate::attest::{KeyFileError, KeyId, KeyUse, Role, SignError, TextError, TrustRootError};
use crate::clock::Millis;
use crate::config::SecretError;

/// Why no keys were made. Nothing of an attempt that failed is left behind.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There are keys already.
    #[error(
        "making keys: {directory} holds keys already ({found}), and new ones would orphan every ledger that those signed; see them with `caretaker keys list`, or name another folder under keys.dir"
    )]
    AlreadyThere {
        /// The folder.
        directory: String,
        /// A file that says so.
        found: String,
    },
    /// The folder holds other things.
    #[error(
        "making keys: {directory} is not empty ({found}), and keys are put in place as a whole folder; move that elsewhere, or name another folder under keys.dir"
    )]
    NotEmpty {
        /// The folder.
        directory: String,
        /// One thing in it.
        found: String,
    },
    /// The system refuses.
    #[error(
        "making keys: {doing} {path}: {cause}; keys.dir has to be in a folder that this user may write"
    )]
    System {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// A secret that the configuration names is not there.
    #[error("making keys: {0}")]
    Secret(SecretError),
    /// One secret for two keys.
    #[error(
        "making keys: {first} and {second} have the same secret; each needs one of its own, since whoever holds one must not open the other"
    )]
    SharedSecret {
        /// A key.
        first: KeyUse,
        /// Another key.
        second: KeyUse,
    },
    /// A key could not be sealed.
    #[error("making keys: {0}")]
    Seal(KeyFileError),
    /// The trust root could not be made.
    #[error("making keys: {0}")]
    TrustRoot(#[from] TrustRootError),
    /// An organisation's id that cannot be written.
    #[error("making keys: {0}")]
    Organisation(#[from] TextError),
    /// No randomness.
    #[error("making keys: {0}")]
    Fill(#[from] FillError),
    /// The seal of credentials does not work.
    #[error("making keys: {0}")]
    Credential(#[from] CredentialError),
}

/// Why the keys cannot be opened or must not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyringError {
    /// There is no trust root.
    #[error(
        "opening the keys: {directory} holds no trust root; run `caretaker keys init`, or name the folder that holds the keys under keys.dir"
    )]
    NoKeys {
        /// The folder.
        directory: String,
    },
    /// A file or the folder cannot be read.
    #[error(
        "opening the keys: reading {path}: {cause}; it must be an ordinary file that this user may read"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// A version of the trust root is not acceptable.
    #[error("opening the keys: {path}: {cause}; restore the file from a backup")]
    TrustRootFile {
        /// The file.
        path: String,
        /// What is wrong.
        cause: TrustRootError,
    },
    /// The versions are not those that their names say.
    #[error("opening the keys: {path}: {problem}; restore the file from a backup")]
    TrustRootName {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The trust root does not allow acting.
    #[error("opening the keys: {0}")]
    NotActing(TrustRootError),
    /// Somebody put a newer trust root in place.
    #[error(
        "acting by trust root version {held}: a newer one is in place ({path}); start this program again, so that it opens the keys that count now"
    )]
    Superseded {
        /// The version that is held.
        held: u64,
        /// The newer one.
        path: String,
    },
    /// A key file is not there.
    #[error(
        "opening the {used}'s key: {path} is missing; restore it from a backup (without a backup the key is lost, and a new trust root has to list another)"
    )]
    MissingKey {
        /// Whose.
        used: KeyUse,
        /// The file.
        path: String,
    },
    /// The secret is not there.
    #[error("{cause}{}", only_the_old_one(cause))]
    Secret {
        /// Whose.
        used: KeyUse,
        /// Why.
        cause: SecretError,
    },
    /// One secret for two roles.
    #[error(
        "opening the keys: {first} and {second} have the same secret; each needs one of its own, since whoever holds one must not open the other"
    )]
    SharedSecret {
        /// A role.
        first: KeyUse,
        /// Another role.
        second: KeyUse,
    },
    /// The file does not open, or is not this role's.
    #[error("opening the {used}'s key: {path}: {cause}")]
    KeyFile {
        /// Whose.
        used: KeyUse,
        /// The file.
        path: String,
        /// Why.
        cause: KeyFileError,
    },
    /// The process that signs for a role does not answer as one.
    #[error("asking the {role}'s signer: {cause}")]
    Signer {
        /// The role.
        role: Role,
        /// What is wrong.
        cause: SignError,
    },
    /// The agent that holds a role's key.
    #[error("asking the agent at {path} for the {role}'s key: {cause}")]
    Agent {
        /// The role.
        role: Role,
        /// Its socket.
        path: String,
        /// What is wrong.
        cause: io::Error,
    },
    /// The key is of another organisation than the trust root.
    #[error(
        "opening the {used}'s key: it belongs to {key}, but the trust root is that of {trust_root}; put keys and trust root of one organisation together"
    )]
    OtherOrganisation {
        /// Whose.
        used: KeyUse,
        /// The organisation in the key's header.
        key: String,
        /// The organisation in the trust root.
        trust_root: String,
    },
    /// The trust root does not list the key under its use.
    #[error(
        "opening the {used}'s key: the trust root (version {version}) does not list {keyid} as the {used}'s; restore the key file or the trust root that belongs to it"
    )]
    NotListed {
        /// Whose.
        used: KeyUse,
        /// The key that was opened.
        keyid: KeyId,
        /// The trust root's version.
        version: u64,
    },
    /// The key does not count at this moment.
    #[error(
        "opening the {used}'s key: by the trust root, {keyid} does not count at {now} ({why}); check the clock, or have the root key sign a trust root with a key that counts"
    )]
    NotCounting {
        /// Whose.
        used: KeyUse,
        /// The key.
        keyid: KeyId,
        /// The moment.
        now: Millis,
        /// From or until when it counts.
        why: String,
    },
    /// The trust root names an organisation that is none.
    #[error(
        "opening the keys: the trust root names the organisation {found:?}, which is no organisation's id; restore the trust root from a backup"
    )]
    Organisation {
        /// What it names.
        found: String,
    },
    /// Others may read the key that seals credentials.
    #[error(
        "opening the key of credentials: {path} may be read by others (mode {mode:04o}); run: chmod 600 '{path}', and give every project a new token if others did read it"
    )]
    CredentialOpen {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The key that seals credentials cannot be used.
    #[error(
        "opening the key of credentials: {path}: {problem}; restore it from a backup, or give every project its token again"
    )]
    Credential {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// What the mend for a missing secret leaves open: a new secret is of no use.
fn only_the_old_one(cause: &SecretError) -> &'static str {
    match cause {
        SecretError::Open { .. } => "",
        _ => ". Only the secret that the key was made with opens it",
    }
}
