//! The open keys of an installation.

use std::path::PathBuf;
use std::sync::Arc;

use super::fresh::Fresh;
use super::role_signer::RoleSigner;
use super::roles::PerRole;
use super::sealed::{Sealed, check_listed, lists_a_log_key};
use super::secret::shared;
use super::{CreateError, CredentialSeal, KeyringError, places, trust_history};
use crate::attest::keys::Fill;
use crate::attest::{FileSigner, KeyUse, Role, SecretKey, Signer, TrustHistory, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment};
use crate::id::OrganisationId;

/// The signers of the four roles, the log's key, the trust root that lists them, and the seal of credentials. One for the whole process:
/// a signer remembers what it signed.
#[derive(Debug)]
pub struct Keyring {
    signers: PerRole<RoleSigner>,
    log: Option<SecretKey>,
    history: Arc<TrustHistory>,
    organisation: OrganisationId,
    /// Where a newer trust root would come to lie; nowhere for keys that are in memory only.
    folder: Option<PathBuf>,
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
        let history = Arc::new(trust_history(configuration)?);
        let trust = history.newest();
        trust.allow_acting(now).map_err(KeyringError::NotActing)?;
        let organisation = organisation(trust)?;
        let sealed =
            PerRole::each(|role| Sealed::find(role.into(), configuration, environment, trust))?;
        let log = lists_a_log_key(trust)
            .then(|| Sealed::find(KeyUse::Log, configuration, environment, trust))
            .transpose()?;
        let mut named: Vec<_> = Role::ALL
            .into_iter()
            .map(|role| (KeyUse::from(role), &sealed.of(role).secret))
            .collect();
        named.extend(log.as_ref().map(|log| (KeyUse::Log, &log.secret)));
        if let Some((first, second)) = shared(&named) {
            return Err(KeyringError::SharedSecret { first, second });
        }
        let signers = PerRole::each(|role| {
            let sealed = sealed.of(role);
            let present = sealed.signer(role, trust, now)?;
            let previous = sealed.previous(role, configuration);
            Ok(RoleSigner::new(present, previous, Arc::clone(&history)))
        })?;
        let log = log
            .map(|log| log.open(KeyUse::Log, trust, now))
            .transpose()?;
        let credentials = CredentialSeal::read(configuration)?;
        Ok(Self {
            signers,
            log,
            history,
            organisation,
            folder: Some(configuration.keys.dir.clone()),
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
        let history = Arc::new(TrustHistory::from(fresh.trust));
        Ok(Self {
            signers: fresh.roles.map(|role, key| {
                RoleSigner::new(FileSigner::new(role, key), None, Arc::clone(&history))
            }),
            log: Some(fresh.log),
            history,
            organisation: fresh.organisation,
            folder: None,
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
    pub fn history(&self) -> &TrustHistory {
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
    /// The trust root has expired, a newer one is in place, or a key no longer counts.
    pub fn allow_acting(&self, now: Millis) -> Result<(), KeyringError> {
        self.still_newest()?;
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

    /// A version that somebody put in place says that what this one holds may have been revoked.
    fn still_newest(&self) -> Result<(), KeyringError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let held = self.trust().document().version;
        let newer = places::trust_root_file(folder, held + 1);
        let path = newer.display().to_string();
        // Break it: answer `Ok(())`; `keys::succession::who_runs_on_stops_signing_when_a_new_version_is_in_place` fails.
        match newer.try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => Err(KeyringError::Superseded { held, path }),
            Err(cause) => Err(KeyringError::Unreadable { path, cause }),
        }
    }
}

fn organisation(trust: &TrustRoot) -> Result<OrganisationId, KeyringError> {
    let found = trust.document().org.as_str();
    found.parse().map_err(|_| KeyringError::Organisation {
        found: found.to_owned(),
    })
}
