//! Every watched project, again and again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::poll::{Memory, PollReport, WatchError, poll};
use super::record::StoreObservations;
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::config::{PollSchedule, rules_from_yaml};
use crate::connector::ConnectorError;
use crate::gate::Rules;
use crate::id::{Entropy, IncidentId, ProjectId};
use crate::incident::AuditEvent;
use crate::store::{Project, Store, StoreError, WatchMode};
use crate::worker::Connectors;

/// How long to wait when the database does not even tell the time, in milliseconds.
const DATABASE_PAUSE: u64 = 10_000;

/// What is remembered of a project between two rounds.
#[derive(Default)]
struct Watched {
    memory: Memory,
    /// The provider asked to wait until then.
    resume_at: Option<Millis>,
    /// The trouble that was recorded last, so that one that lasts is recorded once.
    trouble: Option<String>,
}

/// The watch of one process.
pub struct Watch {
    store: Store,
    connectors: Arc<dyn Connectors>,
    random: fn(&mut [u8]) -> Result<(), FillError>,
    projects: BTreeMap<ProjectId, Watched>,
}

/// Polls every confirmed project on a schedule until it is told to stop. The first round begins at once. Whatever goes wrong
/// is logged and written into the project's history; it never ends the watch.
pub async fn run(
    store: Store,
    connectors: Arc<dyn Connectors>,
    schedule: PollSchedule,
    random: fn(&mut [u8]) -> Result<(), FillError>,
    stop: CancellationToken,
) {
    let mut watch = Watch::new(store, connectors, random);
    let watching = async {
        loop {
            if let Err(error) = watch.round().await {
                tracing::error!(%error, "the watched projects cannot be polled");
            }
            watch.wait(&schedule).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = watching => {}
    }
}

impl Watch {
    /// A watch that has seen nothing yet; `random` fills a buffer for identifiers.
    pub fn new(
        store: Store,
        connectors: Arc<dyn Connectors>,
        random: fn(&mut [u8]) -> Result<(), FillError>,
    ) -> Self {
        Self {
            store,
            connectors,
            random,
            projects: BTreeMap::new(),
        }
    }

    /// Polls every confirmed project once. What each poll did is given back, what went wrong with one is recorded and does
    /// not keep the others from being polled.
    ///
    /// # Errors
    /// The projects cannot be read.
    pub async fn round(&mut self) -> Result<Vec<(ProjectId, PollReport)>, StoreError> {
        let mut projects = self.store.watched_projects().await?;
        projects.retain(|project| project.watch == WatchMode::Ci);
        self.projects
            .retain(|id, _| projects.iter().any(|project| project.id == *id));
        let mut reports = Vec::new();
        for project in projects {
            let now = self.store.now().await?;
            let watched = self.projects.entry(project.id.clone()).or_default();
            if watched.resume_at.is_some_and(|until| until > now) {
                continue;
            }
            watched.resume_at = None;
            let looked = look(
                &self.store,
                &*self.connectors,
                self.random,
                &project,
                &mut watched.memory,
                now,
            );
            match looked.await {
                Ok(report) => {
                    watched.trouble = None;
                    self.tell(&project, &report, now).await;
                    reports.push((project.id, report));
                }
                Err(trouble) => self.trouble(&project, trouble, now).await,
            }
        }
        Ok(reports)
    }

    /// Waits for the schedule's next moment, by the database's clock.
    async fn wait(&self, schedule: &PollSchedule) {
        let milliseconds = match self.store.now().await {
            Ok(now) => match schedule.next_after(now) {
                Some(next) => u64::try_from(next.0.saturating_sub(now.0)).unwrap_or_default(),
                None => return std::future::pending().await,
            },
            Err(error) => {
                tracing::error!(%error, "the database does not tell the time");
                DATABASE_PAUSE
            }
        };
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }

    async fn tell(&self, project: &Project, report: &PollReport, now: Millis) {
        for incident in &report.opened {
            tracing::info!(project = %project.id, %incident, "a failure became an incident");
        }
        for remark in &report.remarks {
            tracing::warn!(project = %project.id, "{remark}");
            self.record(project, "watch-remark", remark.clone(), now)
                .await;
        }
    }

    async fn trouble(&mut self, project: &Project, trouble: Trouble, now: Millis) {
        tracing::warn!(project = %project.id, "{}", trouble.words);
        let watched = self.projects.entry(project.id.clone()).or_default();
        watched.resume_at = trouble.until;
        if watched.trouble.as_ref() == Some(&trouble.words) {
            return;
        }
        watched.trouble = Some(trouble.words.clone());
        self.record(project, "poll-failed", trouble.words, now)
            .await;
    }

    /// Writes into the project's history; a history that cannot be written is logged and does not end the watch.
    async fn record(&self, project: &Project, kind: &'static str, detail: String, now: Millis) {
        let event = AuditEvent { kind, detail };
        let recorded = self
            .store
            .record(&project.organisation, None, Some(&project.id), &event, now)
            .await;
        if let Err(error) = recorded {
            tracing::error!(project = %project.id, %error, "the project's history cannot be written");
        }
    }
}

/// Why a project was not polled.
struct Trouble {
    words: String,
    /// Not to be polled before.
    until: Option<Millis>,
}

impl From<String> for Trouble {
    fn from(words: String) -> Self {
        Self { words, until: None }
    }
}

impl From<WatchError> for Trouble {
    fn from(error: WatchError) -> Self {
        let until = match &error {
            WatchError::Provider {
                source: ConnectorError::Limited { until, .. },
                ..
            } => Some(*until),
            _ => None,
        };
        // The moment that a limit ends is another one each time: without it, a limit that lasts is one trouble.
        let words = match until {
            Some(_) => "polling: the provider limits the calls; polled again when the limit ends"
                .to_owned(),
            None => error.to_string(),
        };
        Self { words, until }
    }
}

async fn look(
    store: &Store,
    connectors: &dyn Connectors,
    random: fn(&mut [u8]) -> Result<(), FillError>,
    project: &Project,
    memory: &mut Memory,
    now: Millis,
) -> Result<PollReport, Trouble> {
    let source = project.rules.as_bytes();
    let name = format!("rules of {}", project.id);
    let document = rules_from_yaml(source, &name).map_err(|error| error.to_string())?;
    let rules = Rules::compile(document, source).map_err(|error| format!("{name}: {error}"))?;
    let connector = connectors.of(project).await?;
    let observations = StoreObservations { store, project };
    let new_id = || {
        let mut entropy = Entropy::default();
        random(&mut entropy)?;
        Ok(IncidentId::new(now, entropy))
    };
    let base = &rules.document().base.0;
    Ok(poll(
        &project.id,
        base,
        &*connector,
        &observations,
        memory,
        now,
        &new_id,
    )
    .await?)
}
