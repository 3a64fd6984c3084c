//! Check runs and statuses that apps and people add.

use super::super::error::ForgeError;
use super::super::git::ObjectId;
use super::super::state::{CheckRun, PERSON, Status, Suite};
use super::RepositoryHandle;

/// A check run to be added.
#[derive(Clone, Debug)]
pub struct NewCheckRun {
    /// The commit it is about.
    pub sha: ObjectId,
    /// Its name; any app may use any name.
    pub name: String,
    /// The app's number; GitHub Actions is 15368.
    pub app_id: u64,
    /// The app's short name.
    pub app_slug: String,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    /// `success`, `failure`, … once it is completed.
    pub conclusion: Option<String>,
}

impl RepositoryHandle {
    /// An app adds a check run; its id.
    pub fn add_check_run(&self, check: NewCheckRun) -> Result<u64, ForgeError> {
        let now = (self.shared.now)();
        let ids = &self.repository.ids;
        let added = CheckRun {
            id: ids.next(),
            suite: Suite {
                id: ids.next(),
                app_id: check.app_id,
                app_slug: check.app_slug,
            },
            head_sha: check.sha,
            name: check.name,
            completed_at: (check.status == "completed").then_some(now),
            status: check.status,
            conclusion: check.conclusion,
            started_at: now,
        };
        let id = added.id;
        self.change(|state| state.check_runs.push(added))?;
        Ok(id)
    }

    /// An app completes a check run.
    pub fn complete_check_run(&self, id: u64, conclusion: &str) -> Result<(), ForgeError> {
        let now = (self.shared.now)();
        let mut state = self.repository.current()?;
        let known = state.check_runs.iter_mut().find(|check| check.id == id);
        let check = known.ok_or_else(|| ForgeError::Absent {
            what: format!("check run {id}"),
        })?;
        "completed".clone_into(&mut check.status);
        check.conclusion = Some(conclusion.to_owned());
        check.completed_at = Some(now);
        Ok(())
    }

    /// A person adds a commit status: `error`, `failure`, `pending` or `success`.
    pub fn add_status(&self, sha: &ObjectId, context: &str, state: &str) -> Result<(), ForgeError> {
        let status = Status {
            id: self.repository.ids.next(),
            sha: sha.clone(),
            state: state.to_owned(),
            context: context.to_owned(),
            description: None,
            target_url: None,
            creator: PERSON,
            created_at: (self.shared.now)(),
        };
        self.change(|state| state.statuses.push(status))
    }
}
