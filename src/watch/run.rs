//! Polling every confirmed project, by the schedule, for as long as the process runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Memory, StoredObservations, poll};
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::config::{PollSchedule, rules_from_yaml};
use crate::id::{Entropy, IncidentId, ProjectId};
use crate::incident::AuditEvent;
use crate::store::{Project, Store, StoreError};
use crate::worker::Connectors;

/// Pause when the schedule never comes again, or the database does not answer.
const PAUSE: Duration = Duration::from_secs(5);

/// Polls until it is told to stop. What fails for one project is written into the history and tried again at the next turn.
pub async fn run(
    store: Store,
    connectors: Arc<dyn Connectors>,
    schedule: PollSchedule,
    random: fn(&mut [u8]) -> Result<(), FillError>,
    stop: CancellationToken,
) {
    let mut watch = Watch {
        store,
        connectors,
        random,
        memories: BTreeMap::new(),
        complaints: BTreeMap::new(),
    };
    while !stop.is_cancelled() {
        let round = async {
            let pause = match watch.round().await {
                Ok(now) => until(&schedule, now),
                Err(error) => {
                    tracing::warn!(%error, "watching goes on after a pause");
                    PAUSE
                }
            };
            tokio::time::sleep(pause).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = round => {}
        }
    }
}

fn until(schedule: &PollSchedule, now: Millis) -> Duration {
    schedule.next_after(now).map_or(PAUSE, |next| {
        Duration::from_millis(u64::try_from(next.0.saturating_sub(now.0)).unwrap_or(0))
    })
}

struct Watch {
    store: Store,
    connectors: Arc<dyn Connectors>,
    random: fn(&mut [u8]) -> Result<(), FillError>,
    memories: BTreeMap<ProjectId, Memory>,
    /// What was complained about last, so that the history is not filled with one sentence.
    complaints: BTreeMap<ProjectId, String>,
}

impl Watch {
    async fn round(&mut self) -> Result<Millis, StoreError> {
        for project in self.store.watched_projects().await? {
            let now = self.store.now().await?;
            match self.project(&project, now).await {
                Ok(()) => {
                    self.complaints.remove(&project.id);
                }
                Err(reason) => self.complain(&project, reason, now).await?,
            }
        }
        self.store.now().await
    }

    async fn project(&mut self, project: &Project, now: Millis) -> Result<(), String> {
        let rules = rules_from_yaml(project.rules.as_bytes(), "the project's rules");
        let rules = rules.map_err(|error| error.to_string())?;
        let connector = self.connectors.of(project).await?;
        let random = self.random;
        let mut seed = Entropy::default();
        random(&mut seed).map_err(|error| error.to_string())?;
        // One draw may serve several incidents of a round: the last bytes count up.
        let count = std::sync::atomic::AtomicU16::new(0);
        let new_id = move || {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut entropy = seed;
            entropy[8..].copy_from_slice(&number.to_be_bytes());
            IncidentId::new(now, entropy)
        };
        let memory = self.memories.entry(project.id.clone()).or_default();
        let observations = StoredObservations::new(&self.store, project);
        let polled = poll(
            &project.id,
            &rules.base.0,
            connector.as_ref(),
            &observations,
            memory,
            now,
            &new_id,
        )
        .await;
        let report = polled.map_err(|error| error.to_string())?;
        for remark in report.remarks {
            let event = AuditEvent {
                kind: "watch-remark",
                detail: remark,
            };
            let recorded = self
                .store
                .record(&project.organisation, None, Some(&project.id), &event, now)
                .await;
            recorded.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn complain(
        &mut self,
        project: &Project,
        reason: String,
        now: Millis,
    ) -> Result<(), StoreError> {
        if self.complaints.get(&project.id) == Some(&reason) {
            return Ok(());
        }
        tracing::warn!(project = %project.id, %reason, "the project could not be watched");
        let event = AuditEvent {
            kind: "watch-failed",
            detail: reason.clone(),
        };
        self.complaints.insert(project.id.clone(), reason);
        self.store
            .record(&project.organisation, None, Some(&project.id), &event, now)
            .await
    }
}
