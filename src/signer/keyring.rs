//! The open keys of an installation.

use std::sync::Arc;

use super::fresh::Fresh;
use super::role_keys::{InForce, from_file, open_signer};
use super::role_signer::RoleSigner;
use super::roles::PerRole;
use super::sealed::{Sealed, lists_a_log_key};
use super::secret::shared;
use super::{CreateError, CredentialSeal, KeyringError, trust_history};
use crate::attest::keys::Fill;
use crate::attest::{FileSigner, KeyUse, Role, SecretKey, Signer, TrustHistory, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment};
use crate::id::OrganisationId;

/// The signers of the four roles, the log's key, the trust root that lists them, and the seal of credentials. One for the whole process:
/// a signer remembers what it signed.
#[derive(Debug)]
pub struct Keyring {
    signers: PerRole<Box<dyn Signer>>,
    log: Option<SecretKey>,
    trust: InForce,
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
        let history = Arc::new(trust_history(configuration)?);
        let trust = history.newest();
        trust.allow_acting(now).map_err(KeyringError::NotActing)?;
        let organisation = organisation(trust)?;
        // What another process or an agent signs with is not opened here.
        let sealed = PerRole::each(|role| {
            let here = configuration.keys.signer(role.into()).is_none();
            here.then(|| Sealed::find(role.into(), configuration, environment, trust))
                .transpose()
        })?;
        let log = lists_a_log_key(trust)
            .then(|| Sealed::find(KeyUse::Log, configuration, environment, trust))
            .transpose()?;
        let of_role = |role: Role| Some((KeyUse::from(role), &sealed.of(role).as_ref()?.secret));
        let mut named: Vec<_> = Role::ALL.into_iter().filter_map(of_role).collect();
        named.extend(log.as_ref().map(|log| (KeyUse::Log, &log.secret)));
        if let Some((first, second)) = shared(&named) {
            return Err(KeyringError::SharedSecret { first, second });
        }
        let signers = PerRole::each(|role| match sealed.of(role) {
            Some(sealed) => from_file(sealed, role, configuration, &history, now),
            None => open_signer(role, configuration, environment, &history, now),
        })?;
        let log = log
            .map(|log| log.open(KeyUse::Log, trust, now))
            .transpose()?;
        let credentials = CredentialSeal::read(configuration)?;
        Ok(Self {
            signers,
            log,
            trust: InForce {
                history,
                folder: Some(configuration.keys.dir.clone()),
            },
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
        let history = Arc::new(TrustHistory::from(fresh.trust));
        Ok(Self {
            signers: fresh.roles.map(|role, key| -> Box<dyn Signer> {
                let signer = FileSigner::new(role, key);
                Box::new(RoleSigner::new(signer, None, Arc::clone(&history)))
            }),
            log: Some(fresh.log),
            trust: InForce {
                history,
                folder: None,
            },
            organisation: fresh.organisation,
            credentials: CredentialSeal::new(*fresh.credentials),
        })
    }

    /// The signer of one role.
    pub fn signer(&self, role: Role) -> &dyn Signer {
        self.signers.of(role).as_ref()
    }

    /// The key that signs the log's checkpoints: none where the trust root lists none, as those that were made before the log.
    pub const fn log_key(&self) -> Option<&SecretKey> {
        self.log.as_ref()
    }

    /// The trust root in force.
    pub fn trust(&self) -> &TrustRoot {
        self.trust.history.newest()
    }

    /// Every version of the trust root.
    pub fn history(&self) -> &TrustHistory {
        &self.trust.history
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
        self.trust.allow_acting(now)?;
        Role::ALL.into_iter().try_for_each(|role| {
            let public = self.signer(role).public_key();
            self.trust.check(role.into(), public, now)
        })?;
        self.log.as_ref().map_or(Ok(()), |key| {
            self.trust.check(KeyUse::Log, &key.public(), now)
        })
    }
}

fn organisation(trust: &TrustRoot) -> Result<OrganisationId, KeyringError> {
    let found = trust.document().org.as_str();
    found.parse().map_err(|_| KeyringError::Organisation {
        found: found.to_owned(),
    })
}
