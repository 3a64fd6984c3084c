//! One look at the runs of one project.

use std::collections::{BTreeMap, BTreeSet};

use super::classify::{Observation, Reading, classify, counts, depends_on_jobs, unreadable};
use super::plan::{Entry, Plan, Verdict};
use super::record::{Observations, RecordError};
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::connector::{Connector, ConnectorError, RunView};
use crate::id::{IncidentId, ProjectId};
use crate::store::Observed;

/// How many pages of runs one poll reads at most.
const PAGES: u32 = 10;
/// Every so many polls all pages are read, to find old runs that were run again; the first poll of a process is one of them.
const SWEEP_EVERY: u32 = 40;
/// How often a run that is not understood is read before it counts as failed for an unknown cause.
const READINGS: u32 = 3;
/// How many runs whose jobs do not come end a poll: the provider is down then, not a run.
const UNREACHABLE: u32 = 3;

/// Why a poll saw nothing. Nothing is lost: the next poll sees the same runs.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The provider gave no answer.
    #[error("polling project {project}: {source}")]
    Provider {
        /// The project.
        project: ProjectId,
        /// What the connector says.
        source: ConnectorError,
    },
    /// What was observed cannot be written down or looked up.
    #[error("polling project {project}: recording what was observed: {source}")]
    Record {
        /// The project.
        project: ProjectId,
        /// What the store says.
        source: RecordError,
    },
}

/// What polls of one project remember for each other. Losing it costs some requests and nothing else.
#[derive(Debug, Default)]
pub struct Memory {
    /// The newest run at the last poll: what is older was looked at.
    newest: Option<u64>,
    /// Runs that were not settled: they run, or are not understood yet.
    unsettled: BTreeSet<u64>,
    /// How often an attempt of a run was read without being understood.
    readings: BTreeMap<(u64, u64), u32>,
    /// Attempts of runs that wait for a person, and of which that was said.
    held: BTreeSet<(u64, u64)>,
    polls: u32,
}

/// Makes an identifier for an incident that may be opened; fails when there is no randomness.
pub type NewId<'a> = &'a (dyn Fn() -> Result<IncidentId, FillError> + Send + Sync);

/// What one poll did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PollReport {
    /// Pages that were read.
    pub pages: u32,
    /// Incidents that were opened.
    pub opened: Vec<IncidentId>,
    /// Incidents to which a failure was added.
    pub attached: Vec<IncidentId>,
    /// Failures of incidents that were rejected or expired.
    pub suppressed: u32,
    /// Successes that were written down.
    pub successes: u32,
    /// What a person should know, in words.
    pub remarks: Vec<String>,
}

/// Reads the project's runs, newest first, and writes down what they say. `base` is the watched branch.
///
/// # Errors
/// The provider or the store fails. What was written before that stays; nothing is written twice.
pub async fn poll(
    project: &ProjectId,
    base: &str,
    connector: &dyn Connector,
    observations: &dyn Observations,
    memory: &mut Memory,
    now: Millis,
    new_id: NewId<'_>,
) -> Result<PollReport, WatchError> {
    let newest = memory.newest;
    let mut round = Round {
        newest,
        project,
        base,
        connector,
        observations,
        memory,
        report: PollReport::default(),
        unsettled: BTreeSet::new(),
        unreachable: 0,
    };
    let runs = round.collect().await?;
    let entries = round.plan(&runs).await?;
    round.write(entries, now, new_id).await?;
    let Round {
        report,
        unsettled,
        newest,
        ..
    } = round;
    memory.newest = newest;
    memory.unsettled = unsettled;
    let listed: BTreeSet<(u64, u64)> = runs.iter().map(|(run, _)| (run.id, run.attempt)).collect();
    memory.readings.retain(|run, _| listed.contains(run));
    memory.held.retain(|run| listed.contains(run));
    memory.polls = memory.polls.wrapping_add(1);
    Ok(report)
}

/// One poll under way.
struct Round<'a> {
    project: &'a ProjectId,
    base: &'a str,
    connector: &'a dyn Connector,
    observations: &'a dyn Observations,
    memory: &'a mut Memory,
    report: PollReport,
    newest: Option<u64>,
    unsettled: BTreeSet<u64>,
    unreachable: u32,
}

impl Round<'_> {
    fn provider(&self, source: ConnectorError) -> WatchError {
        WatchError::Provider {
            project: self.project.clone(),
            source,
        }
    }

    fn record(&self, source: RecordError) -> WatchError {
        WatchError::Record {
            project: self.project.clone(),
            source,
        }
    }

    /// The runs that count, newest first, each with whether it was seen before: all of every page up to known ground.
    async fn collect(&mut self) -> Result<Vec<(RunView, bool)>, WatchError> {
        let sweep = self.memory.polls.is_multiple_of(SWEEP_EVERY);
        let mut wanted = self.memory.unsettled.clone();
        let mut found: BTreeMap<u64, (RunView, bool)> = BTreeMap::new();
        for page in 1..=PAGES {
            let runs = self.connector.runs(page).await;
            let runs = runs.map_err(|error| self.provider(error))?.runs;
            self.report.pages = page;
            let oldest = runs.iter().map(|run| run.id).min();
            let Some(oldest) = oldest else { break };
            let mut known_ground = self.memory.newest.is_some_and(|newest| oldest <= newest);
            for run in runs.iter().cloned() {
                wanted.remove(&run.id);
                if i64::try_from(run.id).is_err() || i64::try_from(run.attempt).is_err() {
                    // No provider counts that far; the database does not either.
                    continue;
                }
                self.newest = self.newest.max(Some(run.id));
                if !counts(&run, self.base) {
                    continue;
                }
                if run.status != "completed" {
                    self.unsettled.insert(run.id);
                    continue;
                }
                let seen = self.observations.seen(run.id, run.attempt).await;
                let seen = seen.map_err(|error| self.record(error))?;
                known_ground |= seen;
                // Pages shift while they are read, so that a run may come twice.
                found.insert(run.id, (run, seen));
            }
            if known_ground && wanted.is_empty() && !sweep {
                break;
            }
        }
        Ok(found.into_values().rev().collect())
    }

    /// Decides from the newest run to the oldest what each of them says.
    async fn plan(&mut self, runs: &[(RunView, bool)]) -> Result<Vec<Entry>, WatchError> {
        let first = !runs.iter().any(|(_, seen)| *seen);
        let mut plan = Plan::new(self.project, first);
        for (run, seen) in runs {
            if *seen {
                plan.seen(run);
                continue;
            }
            match plan.verdict(run) {
                Verdict::Stale => plan.add(run, Vec::new()),
                Verdict::Later => {
                    self.unsettled.insert(run.id);
                }
                Verdict::Read => self.read(&mut plan, run).await?,
            }
        }
        Ok(plan.entries())
    }

    async fn read(&mut self, plan: &mut Plan<'_>, run: &RunView) -> Result<(), WatchError> {
        match self.reading(run).await? {
            Some(Reading::Clear(observations)) => plan.add(run, observations),
            Some(Reading::Unclear(observations)) if self.read_often_enough(run) => {
                let ended = run.conclusion.as_deref().unwrap_or("nothing");
                let consequence = if observations.is_empty() {
                    "nothing follows from it"
                } else {
                    "what is not understood counts as failed for an unknown cause"
                };
                self.report.remarks.push(format!(
                    "{} ended as {ended} and cannot be understood: {consequence}",
                    name(run)
                ));
                plan.add(run, observations);
            }
            Some(Reading::Unclear(_)) | None => {
                plan.block(run);
                self.unsettled.insert(run.id);
            }
            // Not seen: it goes on under the same number once somebody allows it.
            Some(Reading::AwaitsPerson) => {
                if self.memory.held.insert((run.id, run.attempt)) {
                    self.report
                        .remarks
                        .push(format!("{} waits for a person to allow it", name(run)));
                }
            }
        }
        Ok(())
    }

    /// What a run means. One whose jobs the provider does not tell must not hide the others: it is unclear, or, when the
    /// provider only fails for the moment, read another time (`None`).
    async fn reading(&mut self, run: &RunView) -> Result<Option<Reading>, WatchError> {
        if !depends_on_jobs(run) {
            return Ok(Some(classify(run, &[], self.base)));
        }
        let error = match self.connector.jobs(run.id, run.attempt).await {
            Ok(jobs) => return Ok(Some(classify(run, &jobs, self.base))),
            Err(
                error @ (ConnectorError::Limited { .. }
                | ConnectorError::Unauthorised { .. }
                | ConnectorError::Forbidden { .. }),
            ) => return Err(self.provider(error)),
            Err(error) => error,
        };
        tracing::warn!(project = %self.project, run = run.id, %error, "the jobs of a run cannot be read");
        if error.is_transient() {
            self.unreachable += 1;
            return if self.unreachable < UNREACHABLE {
                Ok(None)
            } else {
                Err(self.provider(error))
            };
        }
        let failed = run.conclusion.as_deref() != Some("success");
        let observations = failed.then(|| unreadable(run, self.base));
        Ok(Some(Reading::Unclear(observations.into_iter().collect())))
    }

    /// Counts one more reading.
    fn read_often_enough(&mut self, run: &RunView) -> bool {
        let readings = self
            .memory
            .readings
            .entry((run.id, run.attempt))
            .or_default();
        *readings = readings.saturating_add(1);
        *readings >= READINGS
    }

    async fn write(
        &mut self,
        entries: Vec<Entry>,
        now: Millis,
        new_id: NewId<'_>,
    ) -> Result<(), WatchError> {
        for entry in entries {
            for observation in &entry.observations {
                let written = self.write_one(observation, now, new_id).await;
                written.map_err(|error| self.record(error))?;
            }
            // Break it: mark first; a crash between the two then loses what the run said.
            let marked = self
                .observations
                .mark_seen(entry.run, entry.attempt, now)
                .await;
            marked.map_err(|error| self.record(error))?;
        }
        Ok(())
    }

    async fn write_one(
        &mut self,
        observation: &Observation,
        now: Millis,
        new_id: NewId<'_>,
    ) -> Result<(), RecordError> {
        let failure = match observation {
            Observation::Failed(failure) => failure,
            Observation::Succeeded(success) => {
                let key = success.key(self.project);
                self.observations
                    .observe_success(&key, success, now)
                    .await?;
                self.report.successes += 1;
                return Ok(());
            }
        };
        match self.observations.observe(failure, new_id()?, now).await? {
            Observed::Opened(id) => self.report.opened.push(id),
            Observed::Attached(id) => self.report.attached.push(id),
            Observed::Suppressed => self.report.suppressed += 1,
            Observed::Known => {}
        }
        Ok(())
    }
}

/// A run in words.
fn name(run: &RunView) -> String {
    let workflow = run.workflow.as_deref().unwrap_or("without a name");
    format!(
        "run {} (attempt {}) of workflow {workflow}",
        run.id, run.attempt
    )
}
