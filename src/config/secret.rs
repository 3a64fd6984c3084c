//! Secrets: never in the configuration itself, always by the name of a variable or the path of a file.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize, de};
use zeroize::Zeroizing;

use super::environment::Environment;
use super::source::{self, SourceError};

/// The variable in which systemd names the folder of a unit's credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Where a secret is: written `env:NAME`, `file:PATH` or `credential:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretSource {
    /// A variable of the environment.
    Environment(String),
    /// A file; white space at its end does not count.
    File(PathBuf),
    /// A credential of the systemd unit (`LoadCredential=`, `LoadCredentialEncrypted=`): a file of this name in the folder that systemd
    /// made for the unit alone.
    Credential(String),
}

/// Why a secret is not there. Messages name the place, never the content.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is unset or empty.
    #[error(
        "looking for the secret of {whose}: environment variable {variable} is not set or empty; set it, or name another place under {key}"
    )]
    Unset {
        /// The role or key.
        whose: String,
        /// The configuration key.
        key: String,
        /// The variable.
        variable: String,
    },
    /// There are no credentials.
    #[error(
        "looking for the secret of {whose}: {key} names the credential {name}, and systemd gave this process none; add LoadCredential={name}:… to the unit, or start it by systemd"
    )]
    NoCredentials {
        /// The role or key.
        whose: String,
        /// The configuration key.
        key: String,
        /// The credential.
        name: String,
    },
    /// The file cannot be read.
    #[error(
        "looking for the secret of {whose}: {source}; create it, or name another place under {key}"
    )]
    Unreadable {
        /// The role or key.
        whose: String,
        /// The configuration key.
        key: String,
        /// What the system said.
        source: SourceError,
    },
    /// Others may read the file.
    #[error(
        "looking for the secret of {whose}: file {path} may be read by others (mode {mode:04o}); run: chmod 600 '{path}'"
    )]
    Open {
        /// The role or key.
        whose: String,
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds nothing, or no text.
    #[error(
        "looking for the secret of {whose}: file {path} {fault}; write the secret into it as one line of text"
    )]
    Content {
        /// The role or key.
        whose: String,
        /// The file.
        path: String,
        /// What is wrong.
        fault: &'static str,
    },
}

impl SecretSource {
    /// Fetches the secret. `whose` names the role or key, `key` the configuration key, both for messages.
    ///
    /// # Errors
    /// The secret is not there, is empty, or lies in a file that others may read.
    pub fn resolve(
        &self,
        whose: &str,
        key: &str,
        environment: &Environment,
    ) -> Result<SecretString, SecretError> {
        match self {
            Self::Environment(variable) => environment
                .value(variable)
                .map(SecretString::from)
                .ok_or_else(|| SecretError::Unset {
                    whose: whose.to_owned(),
                    key: key.to_owned(),
                    variable: variable.clone(),
                }),
            Self::File(path) => from_file(path, whose, key, 0o077),
            Self::Credential(name) => {
                let folder = environment.value(CREDENTIALS).map(Path::new);
                // Some versions of systemd let the service in by the group's bits of an access list; nobody else is in it.
                match folder.filter(|folder| folder.is_absolute()) {
                    Some(folder) => from_file(&folder.join(name), whose, key, 0o027),
                    None => Err(SecretError::NoCredentials {
                        whose: whose.to_owned(),
                        key: key.to_owned(),
                        name: name.clone(),
                    }),
                }
            }
        }
    }

    /// The source with a relative path resolved against a folder.
    pub(super) fn resolved_against(self, folder: &Path) -> Self {
        match self {
            Self::File(path) => Self::File(folder.join(path)),
            Self::Environment(_) | Self::Credential(_) => self,
        }
    }
}

/// `open` are the permission bits that nobody else may have.
fn from_file(path: &Path, whose: &str, key: &str, open: u32) -> Result<SecretString, SecretError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |source| SecretError::Unreadable {
        whose: whose.to_owned(),
        key: key.to_owned(),
        source,
    };
    let bytes = Zeroizing::new(source::read(path, "secret").map_err(unreadable)?);
    let mode =
        std::fs::metadata(path).map_or(0o777, |metadata| metadata.permissions().mode() & 0o7777);
    // Break it: leave this out; `keys::opening::secrets_that_others_may_read_are_refused` fails.
    if mode & open != 0 {
        return Err(SecretError::Open {
            whose: whose.to_owned(),
            path: path.display().to_string(),
            mode,
        });
    }
    let content = |fault| SecretError::Content {
        whose: whose.to_owned(),
        path: path.display().to_string(),
        fault,
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| content("is not text"))?
        .trim_end();
    if text.is_empty() {
        Err(content("is empty"))
    } else {
        Ok(SecretString::from(text))
    }
}

impl std::fmt::Display for SecretSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "env:{variable}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Credential(name) => write!(f, "credential:{name}"),
        }
    }
}

impl std::str::FromStr for SecretSource {
    type Err = &'static str;

    /// The text is not repeated in the error: what stands there may be the secret itself.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a secret is named as env:NAME, file:PATH or credential:NAME; it does not itself belong into the configuration";
        match text.split_once(':') {
            Some(("env", name))
                if !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
            {
                Ok(Self::Environment(name.to_owned()))
            }
            Some(("file", path)) if !path.is_empty() && !path.contains('\0') => {
                Ok(Self::File(PathBuf::from(path)))
            }
            // One name inside the folder, never a way out of it.
            Some(("credential", name))
                if !name.is_empty()
                    && !name.starts_with('.')
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) =>
            {
                Ok(Self::Credential(name.to_owned()))
            }
            _ => Err(FORM),
        }
    }
}

impl Serialize for SecretSource {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
