//! Where signing keys lie and where the secrets are that open them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::KeysSection;
use super::secret::SecretSource;
use crate::attest::KeyUse;

/// Where one key's secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySecret {
    /// The place.
    pub source: SecretSource,
    /// Whether it is the default place: a file beside the keys that `keys init` generates (mode 0600). Convenient, and worth
    /// a remark by `doctor`, since who can read the keys can then read their secrets.
    pub generated: bool,
}

/// Where a role's key is used, if not in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignerPlace {
    /// `caretaker signer` answers at this Unix socket.
    Socket(PathBuf),
    /// An ssh-agent holds the key and answers at this one.
    Agent(PathBuf),
}

/// Signing keys and their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The folder that holds the keys.
    pub dir: PathBuf,
    secrets: BTreeMap<KeyUse, SecretSource>,
    signers: BTreeMap<KeyUse, SignerPlace>,
}

impl Keys {
    /// Where a key's secret is.
    pub fn secret(&self, key: KeyUse) -> KeySecret {
        match self.secrets.get(&key) {
            Some(source) => KeySecret {
                source: source.clone(),
                generated: false,
            },
            None => KeySecret {
                source: default_source(&self.dir, key),
                generated: true,
            },
        }
    }

    /// Who signs with a role's key; nobody but this process, where none is named.
    pub fn signer(&self, key: KeyUse) -> Option<&SignerPlace> {
        self.signers.get(&key)
    }

    /// The configuration key that names a key's secret, for messages.
    pub fn configuration_key(key: KeyUse) -> String {
        format!("keys.roles.{key}.secret")
    }

    /// Two keys opened by one secret would be one role, whatever they are called, so a shared source is refused.
    pub(super) fn resolve(
        section: KeysSection,
        home: &Path,
        folder: &Path,
    ) -> Result<Self, (&'static str, String)> {
        let dir = section
            .dir
            .map_or_else(|| home.join("keys"), |dir| folder.join(dir));
        let (mut secrets, mut signers) = (BTreeMap::new(), BTreeMap::new());
        for (key, role) in section.roles.named() {
            if role.secret.is_none() && role.signer.is_none() {
                let problem =
                    format!("{key} names neither a secret nor a signer; give one, or remove it");
                return Err(("keys.roles", problem));
            }
            if let Some(secret) = role.secret {
                secrets.insert(key, secret.resolved_against(folder));
            }
            if let Some(signer) = role.signer {
                if matches!(key, KeyUse::Root | KeyUse::Log) {
                    let problem = format!("the {key} key is used in this process only");
                    return Err(("keys.roles", problem));
                }
                signers.insert(key, signer.resolved_against(folder));
            }
        }
        let keys = Self {
            dir,
            secrets,
            signers,
        };
        let mut owners: BTreeMap<SecretSource, KeyUse> = BTreeMap::new();
        for key in KeyUse::ALL {
            let source = keys.secret(key).source;
            if let Some(first) = owners.insert(source.clone(), key) {
                let problem = format!(
                    "{first} and {key} have the same secret ({source}); each needs one of its own"
                );
                return Err(("keys.roles", problem));
            }
        }
        Ok(keys)
    }

    /// The secret of webhooks is known to the hosting service, so it must open no key.
    pub(super) fn keep_apart(
        &self,
        webhooks: Option<&SecretSource>,
    ) -> Result<(), (&'static str, String)> {
        let shared = |key: &KeyUse| Some(&self.secret(*key).source) == webhooks;
        // Break it: look for none; `hooks::config::a_secret_that_opens_a_key_is_not_given_to_the_hosting_service` then fails.
        match KeyUse::ALL.into_iter().find(shared) {
            Some(key) => Err((
                "github.webhook_secret",
                format!(
                    "it is the secret of the {key} key, and the hosting service would know it; make one of its own"
                ),
            )),
            None => Ok(()),
        }
    }
}

impl SignerPlace {
    fn resolved_against(self, folder: &Path) -> Self {
        match self {
            Self::Socket(path) => Self::Socket(folder.join(path)),
            Self::Agent(path) => Self::Agent(folder.join(path)),
        }
    }
}

fn default_source(dir: &Path, key: KeyUse) -> SecretSource {
    SecretSource::File(dir.join(format!("{key}.secret")))
}
