//! Workflow runs that happen.

use std::sync::Arc;

use super::super::error::ForgeError;
use super::super::git::ObjectId;
use super::super::state::{Attempt, Job, Repository, Run, Step, Suite, Workflow};
use super::RepositoryHandle;

/// A workflow run to be added.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The workflow's name.
    pub workflow: String,
    /// The workflow's number.
    pub workflow_id: u64,
    /// The workflow's file, such as `.github/workflows/ci.yml`.
    pub workflow_path: String,
    /// `push`, `pull_request`, `schedule`, …
    pub event: String,
    /// The branch; GitHub knows none for some events.
    pub branch: Option<String>,
    /// The commit.
    pub head_sha: ObjectId,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// `success`, `failure`, `startup_failure`, … once it is completed.
    pub conclusion: Option<String>,
    /// Its jobs; a run that never started has none.
    pub jobs: Vec<NewJob>,
}

/// A job of a run.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The job's name.
    pub name: String,
    /// `success`, `failure`, …; `None`: it has not ended.
    pub conclusion: Option<String>,
    /// Its steps.
    pub steps: Vec<NewStep>,
    /// Its log as it is downloaded; `None`: there is none (not ended, or deleted).
    pub log: Option<Vec<u8>>,
}

/// A step of a job.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// The step's name.
    pub name: String,
    /// `success`, `failure`, `skipped`, …
    pub conclusion: Option<String>,
}

impl Repository {
    fn job(&self, job: NewJob, now: u64) -> Job {
        let ended = job.conclusion.is_some();
        Job {
            id: self.ids.next(),
            name: job.name,
            status: if ended { "completed" } else { "queued" }.to_owned(),
            conclusion: job.conclusion,
            started_at: now,
            completed_at: ended.then_some(now),
            steps: job
                .steps
                .into_iter()
                .map(|step| Step {
                    name: step.name,
                    conclusion: step.conclusion,
                })
                .collect(),
            log: job.log.map(Arc::new),
        }
    }
}

impl RepositoryHandle {
    /// A workflow runs; the run's id.
    pub fn add_run(&self, run: NewRun) -> Result<u64, ForgeError> {
        let now = (self.shared.now)();
        let repository = &self.repository;
        let id = repository.ids.next();
        let suite = Suite {
            id: repository.ids.next(),
            app_id: 15_368,
            app_slug: "github-actions".to_owned(),
        };
        let jobs = run
            .jobs
            .into_iter()
            .map(|job| repository.job(job, now))
            .collect();
        let completed = run.status == "completed";
        let first = Attempt {
            number: 1,
            status: run.status,
            conclusion: run.conclusion,
            started_at: now,
            updated_at: now,
            jobs,
        };
        let mut state = repository.current()?;
        let number = state
            .runs
            .iter()
            .filter(|known| known.workflow_id == run.workflow_id)
            .count() as u64
            + 1;
        if !state
            .workflows
            .iter()
            .any(|known| known.id == run.workflow_id)
        {
            state.workflows.push(Workflow {
                id: run.workflow_id,
                name: run.workflow.clone(),
                path: run.workflow_path.clone(),
                state: "active".to_owned(),
                created_at: now,
                updated_at: now,
            });
        }
        state.runs.push(Run {
            id,
            number,
            workflow: run.workflow,
            workflow_id: run.workflow_id,
            workflow_path: run.workflow_path,
            event: run.event,
            branch: run.branch,
            head_sha: run.head_sha,
            suite,
            created_at: now,
            attempts: vec![first],
        });
        repository.tell_run(&state, id, "requested")?;
        if completed {
            repository.tell_run(&state, id, "completed")?;
        }
        Ok(id)
    }

    /// A person runs a completed run again: the same id, another attempt, whose number this is.
    pub fn rerun(&self, run: u64) -> Result<u64, ForgeError> {
        let mut state = self.repository.current()?;
        let refused = || ForgeError::Refused {
            act: format!("running run {run} again"),
            reason: "there is no such completed run".to_owned(),
        };
        let number = self
            .repository
            .next_attempt(&mut state, run)
            .ok_or_else(refused)?;
        self.repository.tell_run(&state, run, "requested")?;
        Ok(number)
    }

    /// The latest attempt of a run ends. `jobs` replace those of the same name and keep their ids; the others end with
    /// the run's conclusion.
    pub fn complete_run(
        &self,
        run: u64,
        conclusion: &str,
        jobs: Vec<NewJob>,
    ) -> Result<(), ForgeError> {
        let now = (self.shared.now)();
        let absent = || ForgeError::Absent {
            what: format!("workflow run {run}"),
        };
        let mut state = self.repository.current()?;
        let known = state
            .runs
            .iter_mut()
            .find(|known| known.id == run)
            .ok_or_else(absent)?;
        let attempt = known.attempts.last_mut().ok_or_else(absent)?;
        for job in jobs {
            let job = self.repository.job(job, now);
            match attempt.jobs.iter_mut().find(|known| known.name == job.name) {
                Some(known) => {
                    *known = Job {
                        id: known.id,
                        started_at: known.started_at,
                        ..job
                    }
                }
                None => attempt.jobs.push(job),
            }
        }
        for job in attempt
            .jobs
            .iter_mut()
            .filter(|job| job.conclusion.is_none())
        {
            job.conclusion = Some(conclusion.to_owned());
            job.completed_at = Some(now);
            "completed".clone_into(&mut job.status);
        }
        "completed".clone_into(&mut attempt.status);
        attempt.conclusion = Some(conclusion.to_owned());
        attempt.updated_at = now;
        self.repository.tell_run(&state, run, "completed")?;
        Ok(())
    }
}
