//! Workflow runs with their attempts, jobs and logs.

use std::sync::Arc;

use super::super::git::ObjectId;

/// The group of check runs that one app made for one commit and event.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) id: u64,
    pub(crate) app_id: u64,
    pub(crate) app_slug: String,
}

/// One workflow run. A re-run keeps the id and adds an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) number: u64,
    pub(crate) workflow: String,
    pub(crate) workflow_id: u64,
    pub(crate) workflow_path: String,
    pub(crate) event: String,
    pub(crate) branch: Option<String>,
    pub(crate) head_sha: ObjectId,
    pub(crate) suite: Suite,
    pub(crate) created_at: u64,
    /// Never empty; the last is the latest.
    pub(crate) attempts: Vec<Attempt>,
}

/// One try of a run.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) updated_at: u64,
    pub(crate) jobs: Vec<Job>,
}

/// One job of an attempt.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    pub(crate) started_at: u64,
    pub(crate) completed_at: Option<u64>,
    pub(crate) steps: Vec<Step>,
    /// `None` before the job has ended.
    pub(crate) log: Option<Arc<Vec<u8>>>,
}

/// One step of a job.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) conclusion: Option<String>,
}

impl Run {
    /// The attempt of this number.
    pub(crate) fn attempt(&self, number: u64) -> Option<&Attempt> {
        self.attempts
            .iter()
            .find(|attempt| attempt.number == number)
    }

    /// A job of any attempt, with the attempt's number.
    pub(crate) fn job(&self, id: u64) -> Option<(u64, &Job)> {
        self.attempts.iter().find_map(|attempt| {
            Some((
                attempt.number,
                attempt.jobs.iter().find(|job| job.id == id)?,
            ))
        })
    }
}
