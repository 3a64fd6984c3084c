//! Which of the runs on some pages count. Runs are offered from the newest to the oldest.

use std::collections::{BTreeMap, BTreeSet};

use super::Observation;
use crate::clock::Millis;
use crate::connector::RunView;
use crate::id::ProjectId;

/// What is to be done with a run that was not seen before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Its jobs tell something new.
    Read,
    /// A newer run of the same workflow and scope has said it all: it counts as seen.
    Stale,
    /// A newer run of the same workflow and scope cannot be read yet, so it cannot be told whether this one is stale.
    Later,
}

/// What is to be written about one attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) run: u64,
    pub(super) attempt: u64,
    /// When it ended, by the provider's clock.
    pub(super) ended_at: Option<Millis>,
    pub(super) observations: Vec<Observation>,
    /// Whether it may be written another time. Not one that a newer run of its scope would then make stale, nor one of a first
    /// poll, which would then be history.
    pub(super) may_wait: bool,
    scope: Scope,
}

/// The runs so far.
pub(super) struct Plan<'a> {
    project: &'a ProjectId,
    /// Nothing of the project was seen before.
    first: bool,
    /// Scopes of which a newer run has said it all.
    decided: BTreeSet<Scope>,
    /// Scopes of which a newer run cannot be read yet.
    blocked: BTreeSet<Scope>,
    /// Keys about which a newer run of these pages has spoken.
    spoken: BTreeSet<String>,
    entries: Vec<Entry>,
}

/// Workflow and triggering event.
type Scope = (u64, String);

fn scope(run: &RunView) -> Scope {
    (run.workflow_id, run.event.clone())
}

/// Whether a run says how its workflow is: cancelled and skipped runs do not, nor those that may not have ended.
fn is_decisive(run: &RunView) -> bool {
    run.status == "completed"
        && matches!(
            run.conclusion.as_deref(),
            Some("success" | "failure" | "timed_out" | "startup_failure")
        )
}

impl<'a> Plan<'a> {
    /// A plan for the pages of one poll. `first`: nothing of the project was seen before, so that only the newest run of each
    /// workflow and scope counts, not the history that lies behind it.
    pub(super) fn new(project: &'a ProjectId, first: bool) -> Self {
        Self {
            project,
            first,
            decided: BTreeSet::new(),
            blocked: BTreeSet::new(),
            spoken: BTreeSet::new(),
            entries: Vec::new(),
        }
    }

    /// A run that was seen before.
    pub(super) fn seen(&mut self, run: &RunView) {
        self.decide(run);
    }

    fn decide(&mut self, run: &RunView) {
        if is_decisive(run) {
            self.decided.insert(scope(run));
        }
    }

    /// What to do with a run that was not.
    pub(super) fn verdict(&self, run: &RunView) -> Verdict {
        let scope = scope(run);
        if self.blocked.contains(&scope) {
            Verdict::Later
        } else if self.decided.contains(&scope) {
            // Break it: answer `Read`; an older run that ends late then closes or opens what a newer one has settled
            // (`watch::polling::an_older_run_that_ends_late_is_refused`).
            Verdict::Stale
        } else {
            Verdict::Read
        }
    }

    /// A run that cannot be read yet, and is offered again later.
    pub(super) fn block(&mut self, run: &RunView) {
        self.blocked.insert(scope(run));
    }

    /// A run and what it says. About one key only the newest run speaks.
    pub(super) fn add(&mut self, run: &RunView, observations: Vec<Observation>) {
        let mut observations = one_for_each_key(self.project, observations);
        observations.retain(|observation| self.spoken.insert(observation.key(self.project)));
        if self.first {
            self.decide(run);
        }
        self.entries.push(Entry {
            run: run.id,
            attempt: run.attempt,
            ended_at: run.updated_at,
            observations,
            may_wait: !self.first,
            scope: scope(run),
        });
    }

    /// What is to be written, oldest first: when writing stops half-way, the older runs are settled and the newest still
    /// speaks next time.
    pub(super) fn entries(self) -> Vec<Entry> {
        let mut entries = self.entries;
        let mut scopes = BTreeSet::new();
        for entry in &mut entries {
            // Break it: let each of them wait; one that waits for its log is then stale once a newer one is written
            // (`watch::odd_runs::a_run_that_waits_for_its_log_is_told_before_a_newer_one`).
            entry.may_wait &= scopes.insert(entry.scope.clone());
        }
        entries.reverse();
        entries
    }
}

/// Names of jobs need not be distinct: of several observations of one key the first failure counts, else the first success.
fn one_for_each_key(project: &ProjectId, observations: Vec<Observation>) -> Vec<Observation> {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut merged: Vec<Observation> = Vec::with_capacity(observations.len());
    for observation in observations {
        let key = observation.key(project);
        match places.get(&key).and_then(|place| merged.get_mut(*place)) {
            // Break it: keep the first whatever it is; a failed job behind a namesake that succeeded is then never told
            // (`watch::odd_runs::a_failed_job_does_not_hide_behind_a_namesake_that_succeeded`).
            Some(known @ Observation::Succeeded(_)) => *known = observation,
            Some(Observation::Failed(_)) => {}
            None => {
                places.insert(key, merged.len());
                merged.push(observation);
            }
        }
    }
    merged
}
