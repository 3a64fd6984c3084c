//! What one completed run means: one table of the provider's words.

use crate::change::Sha256Digest;
use crate::connector::{JobView, RunView};
use crate::id::ProjectId;
use crate::incident::{Failure, FailureKind, incident_key};

/// A job, or a run without jobs, that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Success {
    /// Provider's number of the workflow.
    pub workflow_id: u64,
    /// What triggered the run, e.g. `push`.
    pub scope: String,
    /// Branch it ran on.
    pub base_ref: String,
    /// Name of the job; none for the run as a whole.
    pub job: Option<String>,
    /// Provider's number of the run.
    pub run_id: u64,
    /// Attempt, from 1.
    pub attempt: u64,
}

impl Success {
    /// The key of the incident that this success ends, where there is one.
    pub fn key(&self, project: &ProjectId) -> String {
        incident_key(
            project,
            self.workflow_id,
            &self.scope,
            &self.base_ref,
            self.job.as_deref(),
        )
    }
}

/// What is learned from a run about one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observation {
    /// It failed, for this cause.
    Failed(Failure),
    /// It succeeded.
    Succeeded(Success),
}

impl Observation {
    /// The key of the incident that it belongs to.
    pub fn key(&self, project: &ProjectId) -> String {
        match self {
            Self::Failed(failure) => failure.key(project),
            Self::Succeeded(success) => success.key(project),
        }
    }
}

/// What a completed run means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// These observations; none for a run that was cancelled, skipped or is neutral.
    Clear(Vec<Observation>),
    /// The provider's words are unknown, missing or contradict each other. They are read again; when that does not help,
    /// these observations hold, with cause `unknown` for what is not understood.
    Unclear(Vec<Observation>),
    /// Nothing ran, because a person must first allow it. Never repaired; a person is told.
    AwaitsPerson,
}

/// Whether a run counts at all: `push` or `schedule`, on the base branch, from the project's own repository. Runs of forks and
/// of pull requests are never repaired.
pub fn counts(run: &RunView, base: &str) -> bool {
    // Break it: leave `own_repository` out; a stranger's fork with a branch of that name then makes an incident
    // (`watch::classification::only_pushes_and_schedules_of_the_base_branch_of_the_own_repository_count`).
    run.own_repository
        && matches!(run.event.as_str(), "push" | "schedule")
        && run.branch.as_deref() == Some(base)
}

/// How a conclusion is treated, whether a run's or a job's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Success,
    Failure,
    Timeout,
    Invalid,
    Held,
    Neutral,
    Unknown,
}

/// One line of the truth table.
pub(super) struct Row {
    /// The provider's word.
    pub(super) conclusion: &'static str,
    pub(super) meaning: Meaning,
    /// What follows, in words.
    pub(super) consequence: &'static str,
}

const fn row(conclusion: &'static str, meaning: Meaning, consequence: &'static str) -> Row {
    Row {
        conclusion,
        meaning,
        consequence,
    }
}

/// Every word that a provider is known to use; any other one, and none at all, is [`UNKNOWN`].
pub(super) const TABLE: [Row; 10] = [
    row(
        "success",
        Meaning::Success,
        "ends the open incident of the same workflow, scope and job, unless that has merged or saw a newer failure; a success \
         much faster than the workflow's usual ones ends nothing and is reported",
    ),
    row(
        "failure",
        Meaning::Failure,
        "an incident for each failed job: `code` when steps ran, `never-started` when none did; without jobs one \
         `never-started` for the run",
    ),
    row(
        "timed_out",
        Meaning::Timeout,
        "an incident of kind `timeout`: reported, not fixed",
    ),
    row(
        "startup_failure",
        Meaning::Invalid,
        "an incident of kind `workflow-invalid`: reported, not fixed",
    ),
    row(
        "action_required",
        Meaning::Held,
        "nothing ran: people are told that a person must allow it; never fixed, that head is never built",
    ),
    row("cancelled", Meaning::Neutral, "nothing"),
    row("skipped", Meaning::Neutral, "nothing; never a success"),
    row("neutral", Meaning::Neutral, "nothing; never a success"),
    row("stale", Meaning::Unknown, UNKNOWN),
    row("none", Meaning::Unknown, UNKNOWN),
];

/// What follows from a word that is not understood.
pub(super) const UNKNOWN: &str = "read again; when three looks do not explain it, an incident of kind `unknown`: reported, never dropped, \
     never a success";

fn meaning(conclusion: Option<&str>) -> Meaning {
    let word = conclusion.unwrap_or("none");
    TABLE
        .iter()
        .find(|row| row.conclusion == word)
        // Break it: answer `Neutral`; a word that the provider invents tomorrow is then dropped
        // (`watch::classification::words_that_are_missing_or_unknown_are_unclear_and_never_green`).
        .map_or(Meaning::Unknown, |row| row.meaning)
}

/// Whether what a run means depends on its jobs.
pub(super) fn depends_on_jobs(run: &RunView) -> bool {
    matches!(
        meaning(run.conclusion.as_deref()),
        Meaning::Success | Meaning::Failure | Meaning::Timeout
    )
}

/// What a completed run with these jobs means for a project whose base branch is `base`. A run that does not count means
/// nothing.
pub fn classify(run: &RunView, jobs: &[JobView], base: &str) -> Reading {
    if !counts(run, base) {
        return Reading::Clear(Vec::new());
    }
    let whole = |kind| vec![failed(run, base, None, kind)];
    match meaning(run.conclusion.as_deref()) {
        Meaning::Success => Reading::Clear(successes(run, jobs, base)),
        Meaning::Failure if jobs.is_empty() => Reading::Clear(whole(FailureKind::NeverStarted)),
        Meaning::Failure => of_jobs(run, jobs, base, FailureKind::Unknown),
        Meaning::Timeout if jobs.is_empty() => Reading::Clear(whole(FailureKind::Timeout)),
        Meaning::Timeout => of_jobs(run, jobs, base, FailureKind::Timeout),
        Meaning::Invalid => Reading::Clear(whole(FailureKind::WorkflowInvalid)),
        Meaning::Held => Reading::AwaitsPerson,
        Meaning::Neutral => Reading::Clear(Vec::new()),
        Meaning::Unknown => Reading::Unclear(whole(FailureKind::Unknown)),
    }
}

/// A run whose status is a word that is not known, and that has a conclusion all the same: what that is cannot be told, but a
/// failure is never dropped, nor anything taken for a success.
pub(super) fn of_unknown_status(run: &RunView, base: &str) -> Reading {
    match meaning(run.conclusion.as_deref()) {
        Meaning::Neutral => Reading::Clear(Vec::new()),
        Meaning::Success => Reading::Unclear(Vec::new()),
        _ => Reading::Unclear(vec![unreadable(run, base)]),
    }
}

/// A successful run: every job that succeeded, and the run itself, so that one that could not even start is over. A job that
/// failed in it was allowed to.
fn successes(run: &RunView, jobs: &[JobView], base: &str) -> Vec<Observation> {
    let succeeded = jobs
        .iter()
        .filter(|job| meaning(job.conclusion.as_deref()) == Meaning::Success)
        .map(|job| Some(job.name.as_str()));
    std::iter::once(None)
        .chain(succeeded)
        .map(|job| success(run, base, job))
        .collect()
}

/// A run that failed or timed out, by its jobs. When none of them tells why, the run itself has failed with cause `otherwise`.
fn of_jobs(run: &RunView, jobs: &[JobView], base: &str, otherwise: FailureKind) -> Reading {
    let mut observations = Vec::new();
    let mut unclear = false;
    for job in jobs {
        let kind = match meaning(job.conclusion.as_deref()) {
            Meaning::Success => {
                observations.push(success(run, base, Some(&job.name)));
                continue;
            }
            Meaning::Neutral | Meaning::Held => continue,
            Meaning::Failure if job.steps == 0 => FailureKind::NeverStarted,
            Meaning::Failure => FailureKind::Code,
            Meaning::Timeout => FailureKind::Timeout,
            Meaning::Invalid => FailureKind::WorkflowInvalid,
            Meaning::Unknown => {
                unclear = true;
                FailureKind::Unknown
            }
        };
        observations.push(failed(run, base, Some(job), kind));
    }
    let explained = observations
        .iter()
        .any(|observation| matches!(observation, Observation::Failed(_)));
    if !explained {
        observations.push(failed(run, base, None, otherwise));
        unclear = unclear || otherwise == FailureKind::Unknown;
    }
    if unclear {
        Reading::Unclear(observations)
    } else {
        Reading::Clear(observations)
    }
}

/// Longest name of a job or workflow that is kept whole, in bytes; a key of an index must not be longer than some.
const NAME_BYTES: usize = 400;

/// A job's or workflow's name as it is stored: without NUL, which databases refuse, and bounded. Names that differ stay
/// different: a long one ends in a piece of its digest.
fn stored_name(name: &str) -> String {
    let name = name.replace('\0', "\u{fffd}");
    if name.len() <= NAME_BYTES {
        return name;
    }
    let digest = Sha256Digest::of(name.as_bytes()).to_string();
    let kept = name.get(..name.floor_char_boundary(NAME_BYTES - 20));
    let piece = digest.get(..16);
    format!("{}…{}", kept.unwrap_or_default(), piece.unwrap_or_default())
}

fn success(run: &RunView, base: &str, job: Option<&str>) -> Observation {
    Observation::Succeeded(Success {
        workflow_id: run.workflow_id,
        scope: run.event.clone(),
        base_ref: base.to_owned(),
        job: job.map(stored_name),
        run_id: run.id,
        attempt: run.attempt,
    })
}

fn failed(run: &RunView, base: &str, job: Option<&JobView>, kind: FailureKind) -> Observation {
    Observation::Failed(Failure {
        kind,
        workflow_id: run.workflow_id,
        workflow: run.workflow.as_deref().map(stored_name),
        scope: run.event.clone(),
        base_ref: base.to_owned(),
        job: job.map(|job| stored_name(&job.name)),
        job_id: job.map(|job| job.id),
        run_id: run.id,
        attempt: run.attempt,
        commit: run.head_commit,
        url: run.url.clone(),
        detail: None,
    })
}

/// A run of which nothing can be read: it has failed for an unknown cause.
pub(super) fn unreadable(run: &RunView, base: &str) -> Observation {
    failed(run, base, None, FailureKind::Unknown)
}
