//! Where observations of one project are written down.

use async_trait::async_trait;

use super::Success;
use crate::clock::Millis;
use crate::id::IncidentId;
use crate::incident::Failure;
use crate::store::{Observed, Project, Store};

/// Why an observation is not written down.
pub type RecordError = Box<dyn std::error::Error + Send + Sync>;

/// What the watch knows and writes of one project. Every call may be repeated: whatever was observed once stays one observation.
#[async_trait]
pub trait Observations: Send + Sync {
    /// Whether everything about this attempt of a run is written down.
    async fn seen(&self, run: u64, attempt: u64) -> Result<bool, RecordError>;
    /// Says that everything about it is written down.
    async fn mark_seen(&self, run: u64, attempt: u64, now: Millis) -> Result<(), RecordError>;
    /// A failure: it opens an incident with this id, or attaches to the open one with the same key.
    async fn observe(
        &self,
        failure: &Failure,
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
    async fn seen(&self, run: u64, attempt: u64) -> Result<bool, RecordError> {
        Ok(self.store.seen(&self.project.id, run, attempt).await?)
    }

    async fn mark_seen(&self, run: u64, attempt: u64, now: Millis) -> Result<(), RecordError> {
        let project = &self.project.id;
        Ok(self.store.mark_seen(project, run, attempt, now).await?)
    }

    async fn observe(
        &self,
        failure: &Failure,
        id: IncidentId,
        now: Millis,
    ) -> Result<Observed, RecordError> {
        Ok(self.store.observe(self.project, failure, &id, now).await?)
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
