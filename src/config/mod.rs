//! Configuration of a caretaker process: one YAML file (JSON is YAML too), overridden key by key from the environment.
//!
//! Everything has a default, so every command works on `CARETAKER_HOME` alone. Unknown and duplicate keys are errors with line,
//! column and the nearest known name. A key that a later version will honour is known already, but asking for it is refused:
//! a protection that was configured and is not there must not look as if it were.

mod address;
mod agent;
mod alignment;
mod anchor;
mod app;
mod database;
mod document;
mod environment;
mod health;
mod keys;
mod later;
mod nearest;
mod overrides;
mod rules_file;
mod schedule;
mod secret;
mod source;
mod yaml;

use std::path::{Path, PathBuf};

pub use address::{AddressError, ListenAddress, ServiceUrl, WebhookUrl};
pub use agent::{Adapter, Agent, Budget, Model, ModelProvider};
pub use alignment::{DenyPrompts, EmbedderChoice, EmbedderPlace, IntentAlignment};
pub use anchor::{Anchors, BranchAnchor, TimestampAnchor, WitnessAnchor};
pub use app::GithubApp;
pub use database::{DatabaseUrl, DatabaseUrlError};
pub use document::{
    Approvals, Evidence, Identity, IdentityMethod, Notifier, Poll, Sandbox, SandboxMode,
};
pub use environment::{Environment, EnvironmentError};
pub use health::{
    CheckMethod, CommitSource, Expectation, Health, HealthAddresses, HealthCheck, HealthError,
    HealthUrl, HealthUrlError, JsonExpectation, JsonPath, JsonPathError, Pattern, Period,
    PeriodError, Permission, Statuses, health_checks,
};
pub use keys::{KeySecret, Keys, SignerPlace};
pub use rules_file::{RulesFileError, read_rules, rules_from_yaml};
pub use schedule::{PollSchedule, ScheduleError};
pub use secret::{SecretError, SecretSource};
pub use source::{MAXIMUM_FILE_BYTES, SourceError, read as read_file};
pub use yaml::{YamlError, yaml_value};

use crate::tool_gate::Posture;
use document::Document;

/// Why there is no configuration. Nothing starts on a part of one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file is not what it should be; the message has line and column.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The environment cannot be used.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// Keys that contradict each other, or ask for what this version does not have.
    #[error("{origin}: {key}: {problem}")]
    Key {
        /// The file, or "the environment".
        origin: String,
        /// The key, with dots.
        key: &'static str,
        /// What is wrong and the mend.
        problem: String,
    },
}

/// What the web server listens on and how it is reached.
#[derive(Debug, Clone)]
pub struct Server {
    /// The address to bind. Loopback, while links are the only proof of identity.
    pub listen: ListenAddress,
    /// The address that links carry, when it is not the listening one.
    pub public_url: Option<ServiceUrl>,
}

/// Where the hosting service is.
#[derive(Debug, Clone)]
pub struct Github {
    /// Base of the REST interface.
    pub api_url: ServiceUrl,
    /// Base of pages for people.
    pub web_url: ServiceUrl,
    /// Base of clone and push addresses.
    pub git_url: ServiceUrl,
    /// The GitHub App to act as, if there is one.
    pub app: Option<GithubApp>,
    /// Where the secret is with which it signs webhooks; without one, none are received.
    pub webhook_secret: Option<SecretSource>,
}

impl Github {
    /// Its host as projects name it: with the port when that is not the usual one.
    pub fn host(&self) -> String {
        let web = self.web_url.url();
        let host = web.host_str().unwrap_or_default();
        web.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// A checked configuration with defaults filled in and every path absolute.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Where state lives.
    pub home: PathBuf,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// The database.
    pub database: DatabaseUrl,
    /// The web server.
    pub server: Server,
    /// The hosting service.
    pub github: Github,
    /// When CI runs are looked at.
    pub poll: Poll,
    /// Health checks.
    pub health: Health,
    /// Signing keys and the secrets that open them.
    pub keys: Keys,
    /// Who diagnoses and fixes.
    pub agent: Agent,
    /// How untrusted programs are confined.
    pub sandbox: Sandbox,
    /// Approvals.
    pub approvals: Approvals,
    /// How long evidence is kept.
    pub evidence: Evidence,
    /// Who is told.
    pub notify: Vec<Notifier>,
    /// How an approver proves who they are.
    pub identity: Identity,
    /// What checkpoints of the log are shown to.
    pub anchor: Anchors,
    /// How actions are compared with what was asked for; `None` is not at all.
    pub intent_alignment: Option<IntentAlignment>,
    /// What no intent and no action may say.
    pub deny_prompts: DenyPrompts,
    /// What becomes of a tool call when a guard itself fails.
    pub failure_posture: Posture,
}

impl Configuration {
    /// Loads the configuration. The file is `given` (`--config`), else `CARETAKER_CONFIG`, else `caretaker.yaml` in
    /// `CARETAKER_HOME` where there is one; never one that merely lies in the current folder, which may be somebody's checkout.
    /// Relative paths in it resolve against its folder, without a file against `CARETAKER_HOME`.
    ///
    /// # Errors
    /// A named file that is missing, any unknown key, any bad value, any contradiction: see [`ConfigurationError`].
    pub fn load(
        given: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, ConfigurationError> {
        let home = environment.home()?;
        let named = given
            .map(Path::to_path_buf)
            .or_else(|| environment.configuration_file());
        let (file, bytes) = if let Some(file) = named {
            let file = environment.absolute(&file);
            let bytes = source::read(&file, "configuration")?;
            (Some(file), bytes)
        } else {
            let file = home.join("caretaker.yaml");
            let bytes = source::read_if_there(&file, "configuration")?;
            (bytes.is_some().then_some(file), bytes.unwrap_or_default())
        };
        let name = file
            .as_ref()
            .map_or_else(String::new, |file| file.display().to_string());
        let document: Document = yaml::read_or_default(&bytes, &name)?;
        let document = overrides::apply(document, environment)?;
        Self::resolve(document, home, file)
    }

    fn resolve(
        document: Document,
        home: PathBuf,
        file: Option<PathBuf>,
    ) -> Result<Self, ConfigurationError> {
        let origin = file.as_ref().map_or_else(
            || "the environment".to_owned(),
            |file| file.display().to_string(),
        );
        let refuse = |(key, problem)| ConfigurationError::Key {
            origin: origin.clone(),
            key,
            problem,
        };
        later::refuse_unavailable(&document).map_err(refuse)?;
        document::check(&document).map_err(refuse)?;
        let folder = file
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(&home)
            .to_path_buf();
        let database = match document.database.url {
            Some(url) => url.resolved_against(&folder),
            None => DatabaseUrl::embedded(&home.join("caretaker.db")),
        };
        let security = document.security;
        security.deny_prompts.check().map_err(refuse)?;
        let intent_alignment =
            alignment::resolve(security.intent_alignment, &security.intent_drift, &folder)
                .map_err(refuse)?;
        let keys = Keys::resolve(document.keys, &home, &folder).map_err(refuse)?;
        let github = document.github.resolve(&folder).map_err(refuse)?;
        keys.keep_apart(github.webhook_secret.as_ref())
            .map_err(refuse)?;
        Ok(Self {
            github,
            agent: Agent::resolve(document.agent, &folder).map_err(refuse)?,
            server: document.server.into(),
            database,
            keys,
            home,
            file,
            poll: document.poll,
            health: Health {
                checks: document.health,
                addresses: document.health_addresses,
                self_check: document.health_self_check,
            },
            sandbox: document.sandbox,
            approvals: document.approvals.resolved_against(&folder),
            evidence: document.evidence,
            notify: document.notify,
            identity: document.identity,
            anchor: document.anchor.resolve(&folder).map_err(refuse)?,
            intent_alignment,
            deny_prompts: security.deny_prompts,
            failure_posture: security.failure_posture,
        })
    }
}
