//! The GitHub App to act as.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::secret::{SecretError, SecretSource};

/// `github.app`. Each key may be absent, so that each can be set by a variable of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AppSection {
    id: Option<u64>,
    private_key_file: Option<PathBuf>,
    webhook_secret: Option<SecretSource>,
}

/// A GitHub App. `caretaker app create` makes one and prints these keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubApp {
    /// Its number.
    pub id: u64,
    /// Its private key, PEM, in a file that only this user may read.
    pub private_key_file: PathBuf,
    /// Where the secret is with which its webhooks are signed, if it has webhooks.
    pub webhook_secret: Option<SecretSource>,
}

impl AppSection {
    pub(super) fn resolve(
        self,
        folder: &Path,
    ) -> Result<Option<GithubApp>, (&'static str, String)> {
        let webhook_secret = self
            .webhook_secret
            .map(|source| source.resolved_against(folder));
        match (self.id, self.private_key_file) {
            (None, None) if webhook_secret.is_none() => Ok(None),
            (Some(0), _) => Err((
                "github.app.id",
                "0 is no App's number; the App's page shows it as App ID".to_owned(),
            )),
            (Some(id), Some(file)) => Ok(Some(GithubApp {
                id,
                private_key_file: folder.join(file),
                webhook_secret,
            })),
            _ => Err((
                "github.app",
                "id and private_key_file are set together; `caretaker app create` makes an App and prints both".to_owned(),
            )),
        }
    }
}

impl GithubApp {
    /// Fetches the private key.
    ///
    /// # Errors
    /// The file is not there, is empty, or others may read it.
    pub fn private_key(&self, environment: &Environment) -> Result<SecretString, SecretError> {
        SecretSource::File(self.private_key_file.clone()).resolve(
            "the GitHub App",
            "github.app.private_key_file",
            environment,
        )
    }
}
