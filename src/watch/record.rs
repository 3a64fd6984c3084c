//! Where observations of one project are written down.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::Success;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::IncidentId;
use crate::incident::Failure;
use crate::store::{Observed, Project, Store};

/// Why an observation is not written down.
pub type RecordError = Box<dyn std::error::Error + Send + Sync>;

/// What the watch knows and writes of one project. Every call may be repeated: whatever was observed once stays one observation.
#[async_trait]
pub trait Observations: Send + Sync {
    /// The attempts of runs numbered `from` and above about which everything is written down.
    async fn seen(&self, from: u64) -> Result<BTreeSet<(u64, u64)>, RecordError>;
    /// Whether there is any such attempt, of whatever run.
    async fn anything_seen(&self) -> Result<bool, RecordError>;
    /// Says that everything about these is written down.
    async fn mark_seen(&self, runs: &[(u64, u64)], now: Millis) -> Result<(), RecordError>;
    /// A failure, with its normalised error where its log tells one: it opens an incident with this id, or attaches to the open
    /// one with the same key.
    async fn observe(
        &self,
        failure: &Failure,
        signature: Option<&Sha256Digest>,
        id: IncidentId,
        now: Millis,
    ) -> Result<Observed, RecordError>;
    /// A success: it ends the open incident with this key, when that has not merged anything and is not newer.
    async fn observe_success(
        &self,
        key: &str,
        success: &Success,
        now: Millis,
    ) -> Result<(), RecordError>;
}

/// One project in the database.
pub(super) struct StoreObservations<'a> {
    pub(super) store: &'a Store,
    pub(super) project: &'a Project,
}

#[async_trait]
impl Observations for StoreObservations<'_> {
    async fn seen(&self, from: u64) -> Result<BTreeSet<(u64, u64)>, RecordError> {
        Ok(self.store.seen_runs(&self.project.id, from).await?)
    }

    async fn anything_seen(&self) -> Result<bool, RecordError> {
        Ok(self.store.has_seen_runs(&self.project.id).await?)
    }

    async fn mark_seen(&self, runs: &[(u64, u64)], now: Millis) -> Result<(), RecordError> {
        Ok(self.store.mark_seen(&self.project.id, runs, now).await?)
    }

    async fn observe(
        &self,
        failure: &Failure,
        signature: Option<&Sha256Digest>,
        id: IncidentId,
        now: Millis,
    ) -> Result<Observed, RecordError> {
        let observed = self
            .store
            .observe(self.project, failure, signature, &id, now);
        Ok(observed.await?)
    }

    async fn observe_success(
        &self,
        key: &str,
        success: &Success,
        now: Millis,
    ) -> Result<(), RecordError> {
        let (run, attempt) = (success.run_id, success.attempt);
        Ok(self
            .store
            .observe_success(self.project, key, run, attempt, now)
            .await?)
    }
}
