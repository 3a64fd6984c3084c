//! Writing down what a poll has decided.

use super::super::classify::Observation;
use super::super::plan::Entry;
use super::{NewId, READINGS, Round, WatchError};
use crate::agent::reader;
use crate::change::Sha256Digest;
use crate::connector::{ConnectorError, JobLog};
use crate::incident::Failure;
use crate::store::Observed;

/// Bytes of a failed job's log that are read for its normalised error.
const LOG_BYTES: usize = 2 << 20;
/// How many logs that do not come are asked for in one poll: the store of logs is down then.
const LOGS_ASKED: u32 = 3;

/// What came of a failed job's log.
enum Log {
    /// Its normalised error, where it tells one.
    Read(Option<Sha256Digest>),
    /// It does not come for the moment.
    Awaited,
}

impl Round<'_> {
    /// Writes each entry and marks it, the oldest first.
    pub(super) async fn write(
        &mut self,
        entries: Vec<Entry>,
        new_id: NewId<'_>,
    ) -> Result<(), WatchError> {
        let mut settled = Vec::new();
        for entry in entries {
            if !entry.observations.is_empty() {
                let Some(signatures) = self.signatures(&entry).await else {
                    self.unread.insert(entry.run);
                    continue;
                };
                self.mark(&mut settled).await?;
                for (observation, signature) in entry.observations.iter().zip(signatures) {
                    self.write_one(observation, signature, &entry, new_id)
                        .await?;
                }
                let attempt = (entry.run, entry.attempt);
                self.memory.log_readings.remove(&attempt);
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
        signature: Option<Sha256Digest>,
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

    /// The normalised error of each observation. None when a log does not come for the moment and the entry can wait for it,
    /// since without it another error of the same job cannot be told apart; not for long, and no other entry waits with it.
    async fn signatures(&mut self, entry: &Entry) -> Option<Vec<Option<Sha256Digest>>> {
        let attempt = (entry.run, entry.attempt);
        let before = self.memory.log_readings.get(&attempt);
        let before = before.copied().unwrap_or_default();
        // Break it: let it wait whenever a log is missing; a failure is then not told while the store of logs is down
        // (`watch::odd_runs::logs_that_do_not_come_hold_nothing_back_and_the_run_is_told_in_the_end`).
        let may_wait = entry.may_wait && before + 1 < READINGS;
        let mut signatures = Vec::with_capacity(entry.observations.len());
        for observation in &entry.observations {
            let signature = match observation {
                Observation::Failed(failure) => self.signature(failure).await,
                Observation::Succeeded(_) => Log::Read(None),
            };
            match signature {
                Log::Read(signature) => signatures.push(signature),
                Log::Awaited if may_wait => {
                    self.memory.log_readings.insert(attempt, before + 1);
                    return None;
                }
                Log::Awaited => signatures.push(None),
            }
        }
        Some(signatures)
    }

    /// The failed job's normalised error.
    async fn signature(&mut self, failure: &Failure) -> Log {
        let Some(job) = failure.job_id.filter(|_| failure.kind.may_be_code()) else {
            return Log::Read(None);
        };
        if self.logs_awaited >= LOGS_ASKED {
            return Log::Awaited;
        }
        match self.connector.job_log(job, LOG_BYTES).await {
            Ok(JobLog::Text { bytes, omitted, .. }) => {
                Log::Read(reader::read(&bytes, omitted, &|_| true).0.signature())
            }
            Ok(JobLog::Missing { .. }) => Log::Read(None),
            Err(
                error @ (ConnectorError::Refused { .. }
                | ConnectorError::Absent { .. }
                | ConnectorError::Forbidden { .. }),
            ) => {
                tracing::debug!(project = %self.project, job, %error, "a log cannot be read");
                Log::Read(None)
            }
            Err(error) => {
                tracing::debug!(project = %self.project, job, %error, "a log does not come");
                self.logs_awaited += 1;
                Log::Awaited
            }
        }
    }
}
