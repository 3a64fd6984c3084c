//! What happens with the provider's code: the App, its key in a file, and the lines for the configuration.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};

use super::flow::Receive;
use super::manifest::Plan;
use crate::connector::github::app::{ManifestExchange, NewApp, Permissions};
use crate::connector::github::credential::TokenError;

/// Why the App was not received.
#[derive(Debug, thiserror::Error)]
pub enum ReceptionError {
    /// The file cannot be made.
    #[error(
        "making {path} for the App's {what}: {cause}; name another place with --key-file, or move the file that is there"
    )]
    File {
        /// What it is for.
        what: &'static str,
        /// Its path.
        path: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// The key cannot be written. It is given out once, so the App is there without one.
    #[error(
        "writing the App's {what} to {path}: {cause}; the App exists, so generate another one on its page, or delete the App and start again"
    )]
    Lost {
        /// What it is.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        cause: io::Error,
    },
    /// The provider did not give the App.
    #[error(
        "{0}; if the App was made, it is listed on GitHub under Developer settings: delete it there and start again"
    )]
    Provider(TokenError),
}

/// Where the App's secrets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The private key.
    pub key_file: PathBuf,
    /// The secret of its webhooks, if it is to have any.
    pub webhook_secret_file: Option<PathBuf>,
}

/// An App that was made and whose secrets are in their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its number.
    pub id: u64,
    /// Its name in addresses.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// Where it is installed on repositories.
    pub install_url: String,
    /// The lines for the configuration.
    pub configuration: String,
    /// What it lacks, because the person took it out on the provider's page.
    pub missing: Permissions,
}

/// A file that is there, empty and ours alone, before anything is asked of the provider: the key is given out once.
struct Reserved {
    what: &'static str,
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Reserved {
    fn create(what: &'static str, path: &Path) -> Result<Self, ReceptionError> {
        let failed = |cause| ReceptionError::File {
            what,
            path: path.display().to_string(),
            cause,
        };
        if let Some(folder) = path.parent() {
            let mut folders = std::fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(folders.recursive(true), 0o700);
            folders.create(folder).map_err(failed)?;
        }
        // Break it: `create(true).truncate(true)`; `app::creating::a_key_that_is_there_is_never_written_over` then fails.
        // Another mode fails `app::creating::one_click_makes_the_app_and_keeps_its_key`.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        Ok(Self {
            what,
            path: path.to_path_buf(),
            file,
            kept: false,
        })
    }

    fn keep(mut self, secret: &SecretString) -> Result<(), ReceptionError> {
        let text = secret.expose_secret().trim_end();
        let written = writeln!(self.file, "{text}").and_then(|()| self.file.sync_all());
        self.kept = written.is_ok();
        written.map_err(|cause| ReceptionError::Lost {
            what: self.what,
            path: self.path.display().to_string(),
            cause,
        })
    }
}

/// An empty file would only be in the way of the next attempt.
impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.kept {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Receives the App once.
pub struct Reception {
    exchange: ManifestExchange,
    plan: Plan,
    places: Places,
    reserved: Mutex<Option<(Reserved, Option<Reserved>)>>,
}

impl Reception {
    /// Makes the files, empty.
    ///
    /// # Errors
    /// A file is there already, or cannot be made.
    pub fn prepare(
        exchange: ManifestExchange,
        plan: Plan,
        places: Places,
    ) -> Result<Self, ReceptionError> {
        let key = Reserved::create("private key", &places.key_file)?;
        let webhook = places.webhook_secret_file.as_deref();
        let webhook = webhook
            .map(|path| Reserved::create("webhook secret", path))
            .transpose()?;
        Ok(Self {
            exchange,
            plan,
            places,
            reserved: Mutex::new(Some((key, webhook))),
        })
    }

    fn keep(&self, new: &NewApp) -> Result<Created, ReceptionError> {
        let taken = self
            .reserved
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (key, webhook) = taken.ok_or_else(|| ReceptionError::File {
            what: "private key",
            path: self.places.key_file.display().to_string(),
            cause: io::Error::other("an App was received already"),
        })?;
        key.keep(&new.private_key)?;
        let signs_hooks = match (webhook, &new.webhook_secret) {
            (Some(file), Some(secret)) => file.keep(secret).map(|()| true)?,
            _ => false,
        };
        let app = &new.app;
        let secret_file = self.places.webhook_secret_file.as_deref();
        Ok(Created {
            id: app.id,
            slug: app.slug.clone(),
            name: app.name.clone(),
            install_url: self.plan.install_url(app.page.as_deref(), &app.slug),
            configuration: configuration(
                app.id,
                &self.places.key_file,
                secret_file.filter(|_| signs_hooks),
            ),
            missing: self.plan.permissions().beyond(&app.permissions),
        })
    }
}

#[async_trait]
impl Receive for Reception {
    async fn receive(&self, code: &str) -> Result<Created, ReceptionError> {
        let new = self.exchange.convert(code).await;
        self.keep(&new.map_err(ReceptionError::Provider)?)
    }
}

/// The lines to add. A path is written as JSON text, which is YAML text too, whatever characters it has.
fn configuration(id: u64, key_file: &Path, webhook_secret_file: Option<&Path>) -> String {
    let quoted = |text: String| serde_json::Value::String(text).to_string();
    let mut lines = vec![
        "github:".to_owned(),
        "  app:".to_owned(),
        format!("    id: {id}"),
        format!(
            "    private_key_file: {}",
            quoted(key_file.display().to_string())
        ),
    ];
    if let Some(file) = webhook_secret_file {
        let source = quoted(format!("file:{}", file.display()));
        lines.push(format!("    webhook_secret: {source}"));
    }
    lines.join("\n")
}
