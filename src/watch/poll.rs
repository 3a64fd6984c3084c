//! One look at the runs of one project.

mod odd;
mod order;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::odd::{begun, has_no_branch, is_running, name};
use super::classify::{Reading, classify, counts, depends_on_jobs, of_unknown_status, unreadable};
use super::memory::Memory;
use super::plan::{Entry, Plan, Verdict};
use super::plausible::is_implausible;
use super::record::{Observations, RecordError};
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::connector::{Connector, ConnectorError, RunView};
use crate::id::{IncidentId, ProjectId};

/// How many pages of runs one poll reads at most.
const PAGES: u32 = 10;
/// How often all pages are read, to find old runs that were run again, in milliseconds; the first poll of a process does.
const SWEEP_EVERY: i64 = 30 * 60 * 1000;
/// How many runs that have left the first page are read one by one in a poll.
const SINGLE_RUNS: usize = 5;
/// How often a run that is not understood is read before it counts as failed for an unknown cause.
const READINGS: u32 = 3;
/// How often the jobs of a run are asked for that do not come, before it counts as failed for an unknown cause. A provider may
/// be down for minutes, and a cause that is known can be mended.
const ASKINGS: u32 = 10;
/// How many runs whose jobs do not come are asked about in one poll: the provider is down then, not a run.
const UNREACHABLE: u32 = 3;
/// The largest number of a run or an attempt that counts. Numbers in JSON are exact up to there, and no provider counts so far;
/// a run with a larger one would be newer than all others for ever.
const LARGEST_NUMBER: u64 = 1 << 53;

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
    /// What the provider did not answer, where runs wait for it.
    pub unanswered: Option<ConnectorError>,
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
        logs_awaited: 0,
    };
    let Some(runs) = round.collect().await? else {
        return Ok(round.report);
    };
    let runs = order::by_age(runs, now);
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
    /// How many logs did not come.
    logs_awaited: u32,
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
        let due = |at| is_due(at, SWEEP_EVERY, self.now);
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
            for words in page.left_out.iter() {
                self.say(words);
            }
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

    /// Says once of what cannot be judged that it cannot.
    fn say(&mut self, words: &str) {
        if !self.memory.left_out.contains(words) && self.left_out.insert(words.to_owned()) {
            let remark = format!("{words}; nothing follows from it, look at it yourself");
            self.report.remarks.push(remark);
        }
    }

    /// Takes one run up; true when it was seen before.
    fn consider(
        &mut self,
        run: &RunView,
        seen: &BTreeSet<(u64, u64)>,
        found: &mut BTreeMap<u64, (RunView, bool)>,
    ) -> bool {
        if run.id.max(run.attempt) > LARGEST_NUMBER {
            // Break it: let it pass without a word; a failure is then dropped, and nobody looks
            // (`watch::odd_runs::a_run_whose_number_cannot_be_right_is_said_and_speaks_for_no_other`).
            if counts(run, self.base) {
                self.say(&format!("{}: it cannot be numbered so", name(run)));
            }
            return false;
        }
        self.newest = self.newest.max(Some(run.id));
        if !counts(run, self.base) {
            if has_no_branch(run) {
                self.say(&format!("{}: its branch is missing", name(run)));
            }
            return false;
        }
        let was_seen = seen.contains(&(run.id, run.attempt));
        if run.event == "schedule"
            && let Some(at) = begun(run, was_seen, self.now)
        {
            let newest = self.report.scheduled.entry(run.workflow_id).or_insert(at);
            *newest = (*newest).max(at);
        }
        if is_running(run) {
            self.running.insert(run.id);
            return false;
        }
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
            if place >= SINGLE_RUNS || self.report.unanswered.is_some() {
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
                Err(error @ ConnectorError::Unreachable { .. }) => {
                    // Break it: end the poll here; what is new on the pages is then not told until this run is answered for
                    // (`watch::odd_runs::a_run_that_is_not_answered_for_is_asked_for_again_and_holds_nothing_back`).
                    self.running.insert(*number);
                    self.report.unanswered = Some(error);
                }
                // Break it: let the poll fail; the run is then asked for again by every later one
                // (`watch::polling::an_old_run_that_turns_odd_is_said_once_and_keeps_nothing_from_being_polled`).
                Err(error @ ConnectorError::Refused { .. }) => {
                    self.beyond.remove(number);
                    // The page that it is on may have said so.
                    // Break it: say it all the same
                    // (`watch::odd_runs::a_running_run_that_turns_odd_on_its_page_is_said_once_and_holds_nothing_back`).
                    let named = format!("run {number}: ");
                    if !self.left_out.iter().any(|words| words.starts_with(&named)) {
                        self.say(&format!(
                            "run {number} had not ended when it was last seen, and cannot be read any more ({error})"
                        ));
                    }
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
        memory.log_readings.retain(|run, _| listed.contains(run));
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
        let mut first = !runs.iter().any(|(_, seen)| *seen);
        if first {
            // Break it: leave this out; a page full of other runs then makes history of failures
            // (`watch::odd_runs::a_page_full_of_other_runs_makes_no_history_of_failures`).
            let seen = self.observations.anything_seen().await;
            first = !seen.map_err(|error| self.record(error))?;
        }
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
            Some(Reading::Unclear(observations)) if self.count_reading(run) >= READINGS => {
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
        if run.status != "completed" {
            return Ok(Some(of_unknown_status(run, self.base)));
        }
        if !depends_on_jobs(run) {
            return Ok(Some(classify(run, &[], self.base)));
        }
        if !self.may_ask(run) {
            return Ok(None);
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
            self.report.unanswered.get_or_insert(error);
            // Break it: never give up; a run whose jobs never come is then never told
            // (`watch::odd_runs::runs_whose_jobs_do_not_come_hold_no_others_back_and_are_told_in_the_end`).
            if self.count_reading(run) < ASKINGS {
                return Ok(None);
            }
        }
        let failed = run.conclusion.as_deref() != Some("success");
        let observations = failed.then(|| unreadable(run, self.base));
        Ok(Some(Reading::Unclear(observations.into_iter().collect())))
    }

    /// Whether the jobs of a run are asked for in this poll. Of those that did not come before, one fewer than of all, so that
    /// they never take the turn of the others.
    fn may_ask(&self, run: &RunView) -> bool {
        let known = self.memory.readings.contains_key(&(run.id, run.attempt));
        self.unreachable < UNREACHABLE - u32::from(known)
    }

    /// Counts one more reading.
    fn count_reading(&mut self, run: &RunView) -> u32 {
        let attempt = (run.id, run.attempt);
        let readings = self.memory.readings.entry(attempt).or_default();
        *readings = readings.saturating_add(1);
        *readings
    }
}

/// Whether something that was done then and is done every so often is to be done again. What seems to be still to come was done
/// before the clock was moved back.
pub(super) fn is_due(at: Millis, every: i64, now: Millis) -> bool {
    let passed = now.0.saturating_sub(at.0);
    // Break it: leave the second half out
    // (`watch::conditions::what_is_asked_now_and_then_is_asked_although_the_clock_was_moved_back`).
    passed >= every || passed < 0
}
