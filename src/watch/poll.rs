//! One look at the runs of one project.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::classify::{Observation, Reading, classify, counts, depends_on_jobs, unreadable};
use super::memory::Memory;
use super::plan::{Entry, Plan, Verdict};
use super::plausible::is_implausible;
use super::record::{Observations, RecordError};
use crate::agent::reader;
use crate::attest::keys::FillError;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::connector::{Connector, ConnectorError, JobLog, RunView};
use crate::id::{IncidentId, ProjectId};
use crate::incident::Failure;
use crate::store::Observed;

/// How many pages of runs one poll reads at most.
const PAGES: u32 = 10;
/// How often all pages are read, to find old runs that were run again, in milliseconds; the first poll of a process does.
const SWEEP_EVERY: i64 = 30 * 60 * 1000;
/// How many runs that have left the first page are read one by one in a poll.
const SINGLE_RUNS: usize = 5;
/// Bytes of a failed job's log that are read for its normalised error.
const LOG_BYTES: usize = 2 << 20;
/// How often a run that is not understood is read before it counts as failed for an unknown cause.
const READINGS: u32 = 3;
/// How many runs whose jobs do not come end a poll: the provider is down then, not a run.
const UNREACHABLE: u32 = 3;

/// How many remarks on runs that cannot be judged are remembered.
const LEFT_OUT: usize = 200;

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
    /// How old the newest failure was when it was seen, in milliseconds.
    pub lag: Option<i64>,
    /// When the newest scheduled run of each workflow began, as far as it was seen.
    pub scheduled: BTreeMap<u64, Millis>,
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
    let mut round = Round {
        project,
        base,
        connector,
        observations,
        now,
        newest: memory.newest,
        running: BTreeSet::new(),
        unread: BTreeSet::new(),
        beyond: BTreeSet::new(),
        memory,
        report: PollReport::default(),
        first_page: Arc::default(),
        swept: false,
        held: BTreeSet::new(),
        left_out: BTreeSet::new(),
        unreachable: 0,
    };
    let Some(runs) = round.collect().await? else {
        return Ok(round.report);
    };
    let entries = round.plan(&runs).await?;
    round.write(entries, new_id).await?;
    Ok(round.finish(&runs))
}

/// One poll under way.
struct Round<'a> {
    project: &'a ProjectId,
    base: &'a str,
    connector: &'a dyn Connector,
    observations: &'a dyn Observations,
    now: Millis,
    memory: &'a mut Memory,
    report: PollReport,
    newest: Option<u64>,
    running: BTreeSet<u64>,
    unread: BTreeSet<u64>,
    beyond: BTreeSet<u64>,
    first_page: Arc<[RunView]>,
    /// All pages are read.
    swept: bool,
    /// What is said in this poll, and counts as said when it succeeds.
    held: BTreeSet<(u64, u64)>,
    left_out: BTreeSet<String>,
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

    /// The runs that count, newest first, each with whether it was seen before: all of every page up to known ground. None when
    /// nothing has changed and nothing was left over.
    async fn collect(&mut self) -> Result<Option<Vec<(RunView, bool)>>, WatchError> {
        let due = |at: Millis| self.now.0.saturating_sub(at.0) >= SWEEP_EVERY;
        let sweep = self.memory.swept_at.is_none_or(due);
        let mut wanted: BTreeSet<u64> = &self.memory.running | &self.memory.unread;
        let mut found: BTreeMap<u64, (RunView, bool)> = BTreeMap::new();
        for number in 1..=PAGES {
            let page = self.connector.runs(number).await;
            let page = page.map_err(|error| self.provider(error))?;
            self.report.pages = number;
            if number == 1 {
                if self.memory.has_settled(&page.runs) && !sweep {
                    return Ok(None);
                }
                self.first_page = Arc::clone(&page.runs);
            }
            self.say_what_was_left_out(&page.left_out);
            let Some(oldest) = page.runs.iter().map(|run| run.id).min() else {
                break;
            };
            let seen = self.observations.seen(oldest).await;
            let seen = seen.map_err(|error| self.record(error))?;
            let mut known_ground = self.memory.newest.is_some_and(|newest| oldest <= newest);
            for run in page.runs.iter() {
                wanted.remove(&run.id);
                known_ground |= self.consider(run, &seen, &mut found);
            }
            if known_ground && !sweep {
                break;
            }
        }
        self.beyond_the_pages(&wanted, &mut found).await?;
        self.swept = sweep;
        Ok(Some(found.into_values().rev().collect()))
    }

    /// Says once of each run that cannot be judged that it cannot.
    fn say_what_was_left_out(&mut self, left_out: &[String]) {
        for words in left_out {
            if !self.memory.left_out.contains(words) && self.left_out.insert(words.clone()) {
                let remark = format!("{words}; nothing follows from it, look at it yourself");
                self.report.remarks.push(remark);
            }
        }
    }

    /// Takes one run up; true when it was seen before.
    fn consider(
        &mut self,
        run: &RunView,
        seen: &BTreeSet<(u64, u64)>,
        found: &mut BTreeMap<u64, (RunView, bool)>,
    ) -> bool {
        if i64::try_from(run.id).is_err() || i64::try_from(run.attempt).is_err() {
            // No provider counts that far; the database does not either.
            return false;
        }
        self.newest = self.newest.max(Some(run.id));
        if !counts(run, self.base) {
            return false;
        }
        if run.event == "schedule"
            && let Some(at) = run.started_at
        {
            let newest = self.report.scheduled.entry(run.workflow_id).or_insert(at);
            *newest = (*newest).max(at);
        }
        if run.status != "completed" {
            self.running.insert(run.id);
            return false;
        }
        let was_seen = seen.contains(&(run.id, run.attempt));
        // Pages shift while they are read, and a provider may say a run twice.
        found.insert(run.id, (run.clone(), was_seen));
        was_seen
    }

    /// Runs that were not settled and are on no page that was read: each is asked for by its number.
    async fn beyond_the_pages(
        &mut self,
        wanted: &BTreeSet<u64>,
        found: &mut BTreeMap<u64, (RunView, bool)>,
    ) -> Result<(), WatchError> {
        for (place, number) in wanted.iter().enumerate() {
            self.beyond.insert(*number);
            if place >= SINGLE_RUNS {
                self.running.insert(*number);
                continue;
            }
            match self.connector.run(*number).await {
                Ok(run) => {
                    let seen = self.observations.seen(run.id).await;
                    let seen = seen.map_err(|error| self.record(error))?;
                    self.consider(&run, &seen, found);
                }
                // Runs can be deleted.
                Err(ConnectorError::Absent { .. }) => {
                    self.beyond.remove(number);
                }
                // Break it: let the poll fail; the run is then asked for again by every later one
                // (`watch::polling::an_old_run_that_turns_odd_is_said_once_and_keeps_nothing_from_being_polled`).
                Err(error @ ConnectorError::Refused { .. }) => {
                    self.beyond.remove(number);
                    self.report.remarks.push(format!(
                        "run {number} had not ended when it was last seen, and cannot be read any more ({error}); nothing follows from it, look at it yourself"
                    ));
                }
                Err(error) => return Err(self.provider(error)),
            }
        }
        Ok(())
    }

    /// Remembers what the next poll needs.
    fn finish(self, runs: &[(RunView, bool)]) -> PollReport {
        let listed: BTreeSet<(u64, u64)> =
            runs.iter().map(|(run, _)| (run.id, run.attempt)).collect();
        let memory = self.memory;
        memory.newest = self.newest;
        memory.beyond = self
            .beyond
            .into_iter()
            .filter(|run| self.running.contains(run) || self.unread.contains(run))
            .collect();
        memory.running = self.running;
        memory.unread = self.unread;
        memory.readings.retain(|run, _| listed.contains(run));
        memory.held.retain(|run| listed.contains(run));
        memory.settled = Some(self.first_page);
        if self.swept {
            memory.swept_at = Some(self.now);
        }
        memory.held.extend(self.held);
        if memory.left_out.len() > LEFT_OUT {
            // Forgetting costs a remark and nothing else.
            memory.left_out.clear();
        }
        memory.left_out.extend(self.left_out);
        self.report
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
                    self.unread.insert(run.id);
                }
                Verdict::Read if is_implausible(run, runs) => {
                    self.report.remarks.push(format!(
                        "{} succeeded much faster than this workflow does; nothing follows from it, look whether it did its work",
                        name(run)
                    ));
                    plan.add(run, Vec::new());
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
                self.unread.insert(run.id);
            }
            // Not seen: it goes on under the same number once somebody allows it.
            Some(Reading::AwaitsPerson) => {
                let attempt = (run.id, run.attempt);
                if !self.memory.held.contains(&attempt) && self.held.insert(attempt) {
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
                | ConnectorError::NoToken { .. }
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

    async fn write(&mut self, entries: Vec<Entry>, new_id: NewId<'_>) -> Result<(), WatchError> {
        let mut settled = Vec::new();
        for entry in entries {
            if !entry.observations.is_empty() {
                self.mark(&mut settled).await?;
            }
            for observation in &entry.observations {
                self.write_one(observation, &entry, new_id).await?;
            }
            settled.push((entry.run, entry.attempt));
        }
        self.mark(&mut settled).await
    }

    /// Marks runs whose observations are written down.
    async fn mark(&self, runs: &mut Vec<(u64, u64)>) -> Result<(), WatchError> {
        if runs.is_empty() {
            return Ok(());
        }
        // Break it: mark before the observations are written; a crash between the two then loses what the run said
        // (`watch::polling::wherever_writing_stops_the_next_poll_goes_on_and_history_stays_history`).
        let marked = self.observations.mark_seen(runs, self.now).await;
        runs.clear();
        marked.map_err(|error| self.record(error))
    }

    async fn write_one(
        &mut self,
        observation: &Observation,
        entry: &Entry,
        new_id: NewId<'_>,
    ) -> Result<(), WatchError> {
        let failure = match observation {
            Observation::Failed(failure) => failure,
            Observation::Succeeded(success) => {
                let key = success.key(self.project);
                let written = self.observations.observe_success(&key, success, self.now);
                written.await.map_err(|error| self.record(error))?;
                self.report.successes += 1;
                return Ok(());
            }
        };
        let signature = self.signature(failure).await?;
        let id = new_id().map_err(|error| self.record(error.into()))?;
        let observed = self
            .observations
            .observe(failure, signature.as_ref(), id, self.now)
            .await;
        match observed.map_err(|error| self.record(error))? {
            Observed::Opened(id) => self.report.opened.push(id),
            Observed::Attached(id) => self.report.attached.push(id),
            Observed::Suppressed => {
                self.report.suppressed += 1;
                return Ok(());
            }
            Observed::Known => return Ok(()),
        }
        let lag = entry
            .ended_at
            .map(|at| self.now.0.saturating_sub(at.0).max(0));
        self.report.lag = self.report.lag.max(lag);
        Ok(())
    }

    /// The failed job's normalised error. A log that does not come for the moment is waited for a few times, since without it
    /// another error of the same job cannot be told apart.
    async fn signature(&mut self, failure: &Failure) -> Result<Option<Sha256Digest>, WatchError> {
        let Some(job) = failure.job_id.filter(|_| failure.kind.may_be_code()) else {
            return Ok(None);
        };
        match self.connector.job_log(job, LOG_BYTES).await {
            Ok(JobLog::Text { bytes, omitted, .. }) => {
                self.memory.log_readings.remove(&job);
                Ok(reader::read(&bytes, omitted, &|_| true).0.signature())
            }
            Ok(JobLog::Missing { .. }) => Ok(None),
            Err(error) if error.is_transient() => {
                let readings = self.memory.log_readings.entry(job).or_default();
                *readings += 1;
                if *readings < READINGS {
                    return Err(self.provider(error));
                }
                self.memory.log_readings.remove(&job);
                Ok(None)
            }
            Err(error @ ConnectorError::NoToken { .. }) => Err(self.provider(error)),
            Err(error) => {
                tracing::debug!(project = %self.project, job, %error, "a log cannot be read");
                Ok(None)
            }
        }
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
