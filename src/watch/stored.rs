//! Observations in the store.

use async_trait::async_trait;

use super::record::RecordError;
use super::{Observations, Observed, Success};
use crate::clock::Millis;
use crate::id::IncidentId;
use crate::incident::Failure;
use crate::store::{self, Project, Store};

/// What the store knows of one project.
pub struct StoredObservations<'a> {
    store: &'a Store,
    project: &'a Project,
}

impl<'a> StoredObservations<'a> {
    /// Of this project.
    pub const fn new(store: &'a Store, project: &'a Project) -> Self {
        Self { store, project }
    }
}

#[async_trait]
impl Observations for StoredObservations<'_> {
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
        let observed = self.store.observe(self.project, failure, &id, now).await?;
        Ok(match observed {
            store::Observed::Opened(incident) => Observed::Opened(incident),
            store::Observed::Attached(incident) => Observed::Attached(incident),
            store::Observed::Known => Observed::Known,
            store::Observed::Suppressed => Observed::Suppressed,
        })
    }

    async fn observe_success(
        &self,
        key: &str,
        success: &Success,
        now: Millis,
    ) -> Result<(), RecordError> {
        let (store, run) = (self.store, success.run_id);
        Ok(store.observe_success(self.project, key, run, now).await?)
    }
}
