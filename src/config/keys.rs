//! Where signing keys lie and where the secrets are that open them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::KeysSection;
use super::secret::SecretSource;

/// A key that is opened by a secret of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyName {
    /// The role that signs what the agent proposes.
    Proposer,
    /// The role that signs what the rules decided.
    Policy,
    /// The role that signs what a person answered.
    Approver,
    /// The role that signs what was done.
    Executor,
    /// The key that signs the trust root.
    Root,
    /// The key that signs checkpoints of the log.
    Log,
}

impl KeyName {
    /// Every key.
    pub const ALL: [Self; 6] = [
        Self::Proposer,
        Self::Policy,
        Self::Approver,
        Self::Executor,
        Self::Root,
        Self::Log,
    ];

    /// The name under `keys.roles`, in file names and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposer => "proposer",
            Self::Policy => "policy",
            Self::Approver => "approver",
            Self::Executor => "executor",
            Self::Root => "root",
            Self::Log => "log",
        }
    }
}

impl std::fmt::Display for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where one key's secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySecret {
    /// The place.
    pub source: SecretSource,
    /// Whether it is the default place: a file beside the keys that `keys init` generates (mode 0600). Convenient, and worth
    /// a remark by `doctor`, since who can read the keys can then read their secrets.
    pub generated: bool,
}

/// Signing keys and their secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The folder that holds the keys.
    pub dir: PathBuf,
    secrets: BTreeMap<KeyName, SecretSource>,
}

impl Keys {
    /// Where a key's secret is.
    pub fn secret(&self, key: KeyName) -> KeySecret {
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

    /// The configuration key that names a key's secret, for messages.
    pub fn configuration_key(key: KeyName) -> String {
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
        let mut secrets = BTreeMap::new();
        for (key, role) in section.roles.named() {
            secrets.insert(key, role.secret.resolved_against(folder));
        }
        let keys = Self { dir, secrets };
        let mut owners: BTreeMap<SecretSource, KeyName> = BTreeMap::new();
        for key in KeyName::ALL {
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
}

fn default_source(dir: &Path, key: KeyName) -> SecretSource {
    SecretSource::File(dir.join(format!("{key}.secret")))
}
