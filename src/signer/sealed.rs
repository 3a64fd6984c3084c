//! Key files: which one is in use, and whether what it holds is what the trust root lists.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::secret::Secret;
use super::{KeyringError, files, places};
use crate::attest::keys::KeyHeader;
use crate::attest::signer::Memory;
use crate::attest::trust_root::{SideKey, Validity};
use crate::attest::{FileSigner, KeyFile, KeyId, KeyUse, PublicKey, Role, SecretKey, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment};

/// More than the longest key file, in bytes.
const KEY_FILE_BYTES: u64 = 4_096;

/// Opens the log's key and checks it against the trust root in force: none where that lists none.
///
/// # Errors
/// As [`super::Keyring::open`], for this key alone.
pub fn open_log_key(
    configuration: &Configuration,
    environment: &Environment,
    trust: &TrustRoot,
    now: Millis,
) -> Result<Option<SecretKey>, KeyringError> {
    if !lists_a_log_key(trust) {
        return Ok(None);
    }
    let sealed = Sealed::find(KeyUse::Log, configuration, environment, trust)?;
    sealed.open(KeyUse::Log, trust, now).map(Some)
}

pub(super) fn lists_a_log_key(trust: &TrustRoot) -> bool {
    trust.side_keys(KeyUse::Log).next().is_some()
}

/// Reads the sealed key of one use without opening it: its header says whose it claims to be.
///
/// # Errors
/// It is missing, unreadable or damaged.
pub fn read_key_file(used: KeyUse, configuration: &Configuration) -> Result<KeyFile, KeyringError> {
    read_at(used, &places::key_file(&configuration.keys.dir, used))
}

/// The sealed key of one use that the trust root lists: while a rotation is interrupted, that is the one that waits to take the
/// other's place.
///
/// # Errors
/// As [`read_key_file`].
pub fn key_file_in_use(
    used: KeyUse,
    configuration: &Configuration,
    trust: &TrustRoot,
) -> Result<(PathBuf, KeyFile), KeyringError> {
    let directory = &configuration.keys.dir;
    let next = places::next_key_file(directory, used);
    // A file that nobody lists yet, or that cannot be read, is not in use.
    if let Ok(file) = read_at(used, &next)
        && is_listed(used, &file.header().keyid, trust)
    {
        return Ok((next, file));
    }
    let path = places::key_file(directory, used);
    let file = read_at(used, &path)?;
    Ok((path, file))
}

/// Reads a sealed key of one use from a file.
pub(super) fn read_at(used: KeyUse, path: &Path) -> Result<KeyFile, KeyringError> {
    let shown = path.display().to_string();
    let bytes = files::read(path, KEY_FILE_BYTES).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => KeyringError::MissingKey {
            used,
            path: shown.clone(),
        },
        _ => KeyringError::Unreadable {
            path: shown.clone(),
            cause,
        },
    })?;
    KeyFile::parse(&bytes).map_err(|cause| KeyringError::KeyFile {
        used,
        path: shown,
        cause,
    })
}

/// A key file and its secret, which has not opened it yet.
pub(super) struct Sealed {
    path: PathBuf,
    file: KeyFile,
    pub(super) secret: Secret,
}

impl Sealed {
    /// The file comes first: without it the secret is of no use.
    pub(super) fn find(
        used: KeyUse,
        configuration: &Configuration,
        environment: &Environment,
        trust: &TrustRoot,
    ) -> Result<Self, KeyringError> {
        let (path, file) = key_file_in_use(used, configuration, trust)?;
        let secret = Secret::find(used, configuration, environment)
            .map_err(|cause| KeyringError::Secret { used, cause })?;
        Ok(Self { path, file, secret })
    }

    pub(super) fn signer(
        &self,
        role: Role,
        trust: &TrustRoot,
        memory: Arc<dyn Memory>,
        now: Millis,
    ) -> Result<FileSigner, KeyringError> {
        let key = self.open(role.into(), trust, now)?;
        Ok(FileSigner::remembering(role, key, memory))
    }

    /// The role's key before, if it is kept and the same secret opens it. It signs only what names the version before.
    pub(super) fn previous(
        &self,
        role: Role,
        configuration: &Configuration,
        memory: Arc<dyn Memory>,
    ) -> Option<FileSigner> {
        let used = KeyUse::from(role);
        let directory = &configuration.keys.dir;
        // While a rotation is interrupted, the key before has not moved aside yet.
        let path = if self.path == places::next_key_file(directory, used) {
            places::key_file(directory, used)
        } else {
            places::previous_key_file(directory, used)
        };
        let file = read_at(used, &path).ok()?;
        let key = file.open(used, self.secret.bytes()).ok()?;
        Some(FileSigner::remembering(role, key, memory))
    }

    pub(super) fn open(
        &self,
        used: KeyUse,
        trust: &TrustRoot,
        now: Millis,
    ) -> Result<SecretKey, KeyringError> {
        let key =
            self.file
                .open(used, self.secret.bytes())
                .map_err(|cause| KeyringError::KeyFile {
                    used,
                    path: self.path.display().to_string(),
                    cause,
                })?;
        check_organisation(used, self.file.header(), trust)?;
        check_listed(used, &key.public(), trust, now)?;
        Ok(key)
    }
}

fn check_organisation(
    used: KeyUse,
    header: &KeyHeader,
    trust: &TrustRoot,
) -> Result<(), KeyringError> {
    let organisation = &trust.document().org;
    if header.org == *organisation {
        Ok(())
    } else {
        Err(KeyringError::OtherOrganisation {
            used,
            key: header.org.to_string(),
            trust_root: organisation.to_string(),
        })
    }
}

/// The trust root lists the key under this use, and it counts now. What another key signs counts for nobody, so an
/// installation that signs with one would find out only when its ledger is verified.
pub(super) fn check_listed(
    used: KeyUse,
    public: &PublicKey,
    trust: &TrustRoot,
    now: Millis,
) -> Result<(), KeyringError> {
    let keyid = public.keyid();
    let Some(validity) = validity(used, &keyid, trust) else {
        return Err(KeyringError::NotListed {
            used,
            keyid,
            version: trust.document().version,
        });
    };
    match validity.why_not(now) {
        None => Ok(()),
        Some(why) => Err(KeyringError::NotCounting {
            used,
            keyid,
            now,
            why,
        }),
    }
}

/// When the key counts under this use, if the trust root lists it. Root keys have no window.
pub(super) fn validity<'t>(
    used: KeyUse,
    keyid: &KeyId,
    trust: &'t TrustRoot,
) -> Option<Validity<'t>> {
    match Role::parse(used.name()) {
        Some(role) => trust
            .role_key(keyid)
            .filter(|(listed_as, _)| *listed_as == role)
            .map(|(_, key)| key.validity()),
        None => trust
            .side_keys(used)
            .find(|key| key.keyid == *keyid)
            .map(SideKey::validity),
    }
}

pub(super) fn is_listed(used: KeyUse, keyid: &KeyId, trust: &TrustRoot) -> bool {
    let mut root_keys = trust.document().root_keys.iter();
    match used {
        KeyUse::Root => root_keys.any(|key| key.keyid == *keyid),
        _ => validity(used, keyid, trust).is_some(),
    }
}
