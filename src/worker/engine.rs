//! Everything that steps may use.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Anchoring, Tools};
use crate::agent::Coder;
use crate::attest::keys::FillError;
use crate::clock::{Clock, Millis};
use crate::connector::Connector;
use crate::events::{Event, EventSink};
use crate::hook_gate::ConfiguredAnswers;
use crate::id::Entropy;
use crate::incident::{Snapshot, stage};
use crate::notify::Notifiers;
use crate::sandbox::{Limits, Sandbox};
use crate::signer::{Keyring, WalkedLog};
use crate::store::{Project, Store, StoreError};
use crate::workspace::Identity;

/// Makes the connector of a project. The only place where a stored credential is opened.
#[async_trait]
pub trait Connectors: Send + Sync {
    /// The connector that acts with the project's credential; an error says what is missing, in words.
    async fn of(&self, project: &Project) -> Result<Arc<dyn Connector>, String>;
}

/// Where a test may stop a worker, as `kill -9` would. In production nothing is behind it.
#[async_trait]
pub trait Failpoint: Send + Sync {
    /// Called right after an effect: something outside was changed, or a commit was made.
    async fn passed(&self, effect: &'static str);
}

/// What "now" means to the worker.
#[derive(Clone)]
pub enum Time {
    /// The database's clock, so that workers on several machines agree on leases.
    Database,
    /// Another one, for tests.
    Clock(Arc<dyn Clock>),
}

/// Choices of the operator.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Folder for repositories and scratch trees.
    pub home: PathBuf,
    /// Our own binary, which confines untrusted programs and answers git's questions.
    pub launcher: PathBuf,
    /// Address under which people reach the pages, without a slash at its end.
    pub public_url: String,
    /// How long an approval link counts, and the approval itself.
    pub link_ttl: Duration,
    /// For how many days evidence is kept after an incident ended; none: for ever.
    pub evidence_days: Option<u32>,
    /// How long a claim lasts without a sign of life.
    pub lease: Duration,
    /// Limits of one run of tests.
    pub tests: Limits,
    /// Who fix commits are from.
    pub author: Identity,
}

/// A worker's means. Shared by all its tasks.
pub struct Engine {
    /// The database.
    pub store: Store,
    /// Makes connectors.
    pub connectors: Arc<dyn Connectors>,
    /// Diagnoses and fixes; none when the operator configured none.
    pub coder: Option<Arc<dyn Coder>>,
    /// Confines tests.
    pub sandbox: Arc<Sandbox>,
    /// Toolchains that tests may see.
    pub tools: Tools,
    /// Signs, and says whose signatures count.
    pub keys: Arc<Keyring>,
    /// The gate that a coder's calls of tools go through; without it no coder that calls tools is asked.
    pub gate: Option<Arc<ConfiguredAnswers>>,
    /// Tells people.
    pub notifiers: Notifiers,
    /// What "now" is.
    pub time: Time,
    /// Fills a buffer with random bytes.
    pub random: fn(&mut [u8]) -> Result<(), FillError>,
    /// What checkpoints of the log are shown to.
    pub anchoring: Anchoring,
    /// The log as this process has read it.
    pub walked: tokio::sync::Mutex<WalkedLog>,
    /// The audit stream.
    pub events: Arc<dyn EventSink>,
    /// Choices.
    pub settings: Settings,
    /// Test-only stop.
    pub failpoint: Option<Arc<dyn Failpoint>>,
}

impl Engine {
    /// The present.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn now(&self) -> Result<Millis, StoreError> {
        match &self.time {
            Time::Database => self.store.now().await,
            Time::Clock(clock) => Ok(clock.now()),
        }
    }

    /// Tells the audit stream that an incident is at another stage. What counts is the ledger, so one that cannot be written
    /// holds nothing up; the log says so.
    pub(super) fn tell_stage(&self, before: &Snapshot, after: &Snapshot) {
        let (from, to) = (stage(before), stage(after));
        if from == to {
            return;
        }
        let mut fields = serde_json::Map::new();
        fields.insert("project".to_owned(), after.project.as_str().into());
        fields.insert("from".to_owned(), from.as_str().into());
        fields.insert("to".to_owned(), to.as_str().into());
        let event = Event::new("stage_changed", after.incident.as_str(), fields);
        if let Err(error) = self.events.record(&event) {
            tracing::error!(incident = %after.incident, %error, "a new stage is not in the audit stream");
        }
    }

    /// Passes the test-only stop.
    pub(super) async fn passed(&self, effect: &'static str) {
        if let Some(failpoint) = &self.failpoint {
            failpoint.passed(effect).await;
        }
    }

    /// Fresh bytes for an identifier.
    pub(super) fn entropy(&self) -> Result<Entropy, FillError> {
        let mut bytes = Entropy::default();
        (self.random)(&mut bytes)?;
        Ok(bytes)
    }
}
