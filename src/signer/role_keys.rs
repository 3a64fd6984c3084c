//! The signer of each role, wherever its key is.

use std::path::PathBuf;
use std::sync::Arc;

use super::agent::AgentKey;
use super::memory::FileMemory;
use super::role_signer::RoleSigner;
use super::sealed::{Sealed, check_listed};
use super::socket::SocketSigner;
use super::{KeyringError, places};
use crate::attest::signer::Memory;
use crate::attest::{FileSigner, KeyUse, PublicKey, Role, Signer, TrustHistory, TrustRoot};
use crate::clock::Millis;
use crate::config::{Configuration, Environment, SignerPlace};

/// The trust root that this process goes by.
#[derive(Debug, Clone)]
pub(super) struct InForce {
    pub(super) history: Arc<TrustHistory>,
    /// Where a newer one would come to lie; nowhere for keys that are in memory only.
    pub(super) folder: Option<PathBuf>,
}

impl InForce {
    /// Whether it still allows acting, and a newer one is not in place.
    pub(super) fn allow_acting(&self, now: Millis) -> Result<(), KeyringError> {
        self.still_newest()?;
        let acting = self.history.newest().allow_acting(now);
        acting.map_err(KeyringError::NotActing)
    }

    /// Whether a key counts.
    pub(super) fn check(
        &self,
        used: KeyUse,
        public: &PublicKey,
        now: Millis,
    ) -> Result<(), KeyringError> {
        check_listed(used, public, self.history.newest(), now)
    }

    /// A version that somebody put in place says that what this one holds may have been revoked.
    fn still_newest(&self) -> Result<(), KeyringError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let held = self.history.newest().document().version;
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

/// Opens one role's key where the configuration says it is, and checks it against the trust root in force.
///
/// # Errors
/// As [`Keyring::open`](super::Keyring::open), for this role alone.
pub fn open_signer(
    role: Role,
    configuration: &Configuration,
    environment: &Environment,
    history: &Arc<TrustHistory>,
    now: Millis,
) -> Result<Box<dyn Signer>, KeyringError> {
    // Break it: open every key here; `serve::apart::four_processes_sign_an_incident_to_its_merge_for_one_that_has_no_key` fails.
    let Some(SignerPlace::Socket(socket)) = configuration.keys.signer(role.into()) else {
        return open_here(role, configuration, environment, history, now);
    };
    let signer = SocketSigner::connect(role, socket, Arc::clone(history));
    let signer = signer.map_err(|cause| KeyringError::Signer { role, cause })?;
    check_listed(role.into(), signer.public_key(), history.newest(), now)?;
    Ok(Box::new(signer))
}

/// The same in the process that signs: the role's file, or an agent's key.
pub(super) fn open_here(
    role: Role,
    configuration: &Configuration,
    environment: &Environment,
    history: &Arc<TrustHistory>,
    now: Millis,
) -> Result<Box<dyn Signer>, KeyringError> {
    let trust = history.newest();
    if let Some(SignerPlace::Agent(socket)) = configuration.keys.signer(role.into()) {
        let wanted = counting(role, trust, now);
        let found = AgentKey::find(socket, &wanted);
        let key = found.map_err(|cause| KeyringError::Agent {
            role,
            path: socket.display().to_string(),
            cause,
        })?;
        let signer = FileSigner::with(role, Box::new(key), memory(role, configuration));
        return Ok(Box::new(RoleSigner::new(signer, None, Arc::clone(history))));
    }
    let sealed = Sealed::find(role.into(), configuration, environment, trust)?;
    from_file(&sealed, role, configuration, history, now)
}

/// The signer of a role whose sealed key is at hand.
pub(super) fn from_file(
    sealed: &Sealed,
    role: Role,
    configuration: &Configuration,
    history: &Arc<TrustHistory>,
    now: Millis,
) -> Result<Box<dyn Signer>, KeyringError> {
    // One memory for both: a position that the key before signed is taken for the present one.
    let memory = memory(role, configuration);
    let present = sealed.signer(role, history.newest(), Arc::clone(&memory), now)?;
    let previous = sealed.previous(role, configuration, memory);
    Ok(Box::new(RoleSigner::new(
        present,
        previous,
        Arc::clone(history),
    )))
}

fn memory(role: Role, configuration: &Configuration) -> Arc<dyn Memory> {
    let path = places::memory_file(&configuration.home, role);
    Arc::new(FileMemory::at(path))
}

/// The role's keys that count, newest first.
fn counting(role: Role, trust: &TrustRoot, now: Millis) -> Vec<&PublicKey> {
    let keys = trust.document().roles.of(role).iter().rev();
    keys.filter(|key| key.validity().counts_at(now))
        .map(|key| &key.public)
        .collect()
}
