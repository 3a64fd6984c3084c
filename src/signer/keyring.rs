//! The open keys of an installation.

use std::io;

use super::fresh::Fresh;
use super::roles::PerRole;
use super::secret::{Secret, shared};
use super::{CreateError, CredentialSeal, KeyringError, files, places, trust_history};
use crate::attest::keys::{Fill, KeyHeader};
use crate::attest::trust_root::SideKey;
use crate::attest::{
    FileSigner, KeyFile, KeyUse, PublicKey, Role, SecretKey, Signer, TrustHistory, TrustRoot,
};
use crate::clock::Millis;
use crate::config::{Configuration, Environment};
use crate::id::OrganisationId;

/// More than the longest key file, in bytes.
const KEY_FILE_BYTES: u64 = 4_096;

/// The signers of the four roles, the log's key, the trust root that lists them, and the seal of credentials. One for the whole process:
/// a signer remembers what it signed.
#[derive(Debug)]
pub struct Keyring {
    signers: PerRole<FileSigner>,
    log: Option<SecretKey>,
    history: TrustHistory,
    organisation: OrganisationId,
    credentials: CredentialSeal,
}

impl Keyring {
    /// Opens every key that signing needs, each with its own secret, and checks that the trust root lists exactly it and
    /// allows acting at `now`.
    ///
    /// # Errors
    /// Anything is missing, damaged, another role's or organisation's, not listed, or expired: see [`KeyringError`].
    pub fn open(
        configuration: &Configuration,
        environment: &Environment,
        now: Millis,
    ) -> Result<Self, KeyringError> {
        let history = trust_history(configuration)?;
        let trust = history.newest();
        trust.allow_acting(now).map_err(KeyringError::NotActing)?;
        let organisation = organisation(trust)?;
        let sealed = PerRole::each(|role| Sealed::find(role.into(), configuration, environment))?;
        let log = lists_a_log_key(trust)
            .then(|| Sealed::find(KeyUse::Log, configuration, environment))
            .transpose()?;
        let mut named: Vec<_> = Role::ALL
            .into_iter()
            .map(|role| (KeyUse::from(role), &sealed.of(role).secret))
            .collect();
        named.extend(log.as_ref().map(|log| (KeyUse::Log, &log.secret)));
        if let Some((first, second)) = shared(&named) {
            return Err(KeyringError::SharedSecret { first, second });
        }
        let signers =
            PerRole::each(|role| sealed.of(role).signer(role, configuration, trust, now))?;
        let log = log
            .map(|log| log.open(KeyUse::Log, configuration, trust, now))
            .transpose()?;
        let credentials = CredentialSeal::read(configuration)?;
        Ok(Self {
            signers,
            log,
            history,
            organisation,
            credentials,
        })
    }

    /// A keyring with new keys that are written nowhere: for what ends with the process.
    ///
    /// # Errors
    /// There are no random bytes, or `fill` gives the same bytes twice, so that two roles would have one key.
    pub fn in_memory(
        organisation: Option<OrganisationId>,
        now: Millis,
        fill: Fill<'_>,
    ) -> Result<Self, CreateError> {
        let fresh = Fresh::generate(organisation, now, fill)?;
        Ok(Self {
            signers: fresh.roles.map(FileSigner::new),
            log: Some(fresh.log),
            history: TrustHistory::from(fresh.trust),
            organisation: fresh.organisation,
            credentials: CredentialSeal::new(*fresh.credentials),
        })
    }

    /// The signer of one role.
    pub fn signer(&self, role: Role) -> &dyn Signer {
        self.signers.of(role)
    }

    /// The key that signs the log's checkpoints: none where the trust root lists none, as those that were made before the log.
    pub const fn log_key(&self) -> Option<&SecretKey> {
        self.log.as_ref()
    }

    /// The trust root in force.
    pub fn trust(&self) -> &TrustRoot {
        self.history.newest()
    }

    /// Every version of the trust root.
    pub const fn history(&self) -> &TrustHistory {
        &self.history
    }

    /// The organisation that the keys act for.
    pub const fn organisation(&self) -> &OrganisationId {
        &self.organisation
    }

    /// What seals and opens projects' credentials.
    pub const fn credentials(&self) -> &CredentialSeal {
        &self.credentials
    }

    /// Whether the keys still may be used; a process that runs for long asks again before it acts.
    ///
    /// # Errors
    /// The trust root has expired, or a key no longer counts.
    pub fn allow_acting(&self, now: Millis) -> Result<(), KeyringError> {
        self.trust()
            .allow_acting(now)
            .map_err(KeyringError::NotActing)?;
        Role::ALL.into_iter().try_for_each(|role| {
            let public = self.signer(role).public_key();
            check_listed(role.into(), public, self.trust(), now)
        })?;
        self.log.as_ref().map_or(Ok(()), |key| {
            check_listed(KeyUse::Log, &key.public(), self.trust(), now)
        })
    }
}

/// Opens one role's key and checks it against the trust root in force, as [`Keyring::open`] does with each.
///
/// # Errors
/// As [`Keyring::open`], for this role alone.
pub fn open_signer(
    role: Role,
    configuration: &Configuration,
    environment: &Environment,
    trust: &TrustRoot,
    now: Millis,
) -> Result<FileSigner, KeyringError> {
    Sealed::find(role.into(), configuration, environment)?.signer(role, configuration, trust, now)
}

/// Opens the log's key and checks it against the trust root in force: none where that lists none.
///
/// # Errors
/// As [`Keyring::open`], for this key alone.
pub fn open_log_key(
    configuration: &Configuration,
    environment: &Environment,
    trust: &TrustRoot,
    now: Millis,
) -> Result<Option<SecretKey>, KeyringError> {
    if !lists_a_log_key(trust) {
        return Ok(None);
    }
    let sealed = Sealed::find(KeyUse::Log, configuration, environment)?;
    sealed
        .open(KeyUse::Log, configuration, trust, now)
        .map(Some)
}

fn lists_a_log_key(trust: &TrustRoot) -> bool {
    trust.side_keys(KeyUse::Log).next().is_some()
}

/// Reads the sealed key of one use without opening it: its header says whose it claims to be.
///
/// # Errors
/// It is missing, unreadable or damaged.
pub fn read_key_file(used: KeyUse, configuration: &Configuration) -> Result<KeyFile, KeyringError> {
    let path = places::key_file(&configuration.keys.dir, used);
    let shown = path.display().to_string();
    let bytes = files::read(&path, KEY_FILE_BYTES).map_err(|cause| match cause.kind() {
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
struct Sealed {
    file: KeyFile,
    secret: Secret,
}

impl Sealed {
    /// The file comes first: without it the secret is of no use.
    fn find(
        used: KeyUse,
        configuration: &Configuration,
        environment: &Environment,
    ) -> Result<Self, KeyringError> {
        let file = read_key_file(used, configuration)?;
        let secret = Secret::find(used, configuration, environment)
            .map_err(|cause| KeyringError::Secret { used, cause })?;
        Ok(Self { file, secret })
    }

    fn signer(
        &self,
        role: Role,
        configuration: &Configuration,
        trust: &TrustRoot,
        now: Millis,
    ) -> Result<FileSigner, KeyringError> {
        let key = self.open(role.into(), configuration, trust, now)?;
        Ok(FileSigner::new(role, key))
    }

    fn open(
        &self,
        used: KeyUse,
        configuration: &Configuration,
        trust: &TrustRoot,
        now: Millis,
    ) -> Result<SecretKey, KeyringError> {
        let key =
            self.file
                .open(used, self.secret.bytes())
                .map_err(|cause| KeyringError::KeyFile {
                    used,
                    path: places::key_file(&configuration.keys.dir, used)
                        .display()
                        .to_string(),
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
fn check_listed(
    used: KeyUse,
    public: &PublicKey,
    trust: &TrustRoot,
    now: Millis,
) -> Result<(), KeyringError> {
    let keyid = public.keyid();
    let listed = match Role::parse(used.name()) {
        Some(role) => trust
            .role_key(&keyid)
            .filter(|(listed_as, _)| *listed_as == role)
            .map(|(_, key)| key.validity()),
        None => trust
            .side_keys(used)
            .find(|key| key.keyid == keyid)
            .map(SideKey::validity),
    };
    let Some(validity) = listed else {
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

fn organisation(trust: &TrustRoot) -> Result<OrganisationId, KeyringError> {
    let found = trust.document().org.as_str();
    found.parse().map_err(|_| KeyringError::Organisation {
        found: found.to_owned(),
    })
}
