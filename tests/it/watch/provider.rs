//! A provider and a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use caretaker::approve::Binding;
use caretaker::change::{Oid, Sha256Digest};
use caretaker::clock::Millis;
use caretaker::connector::{
    Access, BranchProtection, Connector, ConnectorError, GitRemote, GitUse, JobLog, JobView,
    NewPull, PullView, RepositoryView, RunView, RunsPage, Usage, WorkflowList,
};
use caretaker::execute::{MergeAnswer, MergeOrder};
use caretaker::id::{ExecutionId, IncidentId, ProjectId};
use caretaker::incident::Failure;
use caretaker::reconcile::LandedView;
use caretaker::store::Observed;
use caretaker::watch::{Observations, RecordError, Success};

pub(super) fn commit() -> Oid {
    "a".repeat(40).parse().unwrap()
}

pub(super) fn project() -> ProjectId {
    ProjectId::new(Millis(1), [7; 10])
}

/// A completed run of workflow 5 for a push to `main`.
pub(super) fn run(id: u64, conclusion: &str) -> RunView {
    RunView {
        id,
        attempt: 1,
        workflow_id: 5,
        workflow: Some("CI".to_owned()),
        event: "push".to_owned(),
        branch: Some("main".to_owned()),
        head_commit: commit(),
        own_repository: true,
        status: "completed".to_owned(),
        conclusion: Some(conclusion.to_owned()),
        made_at: None,
        started_at: None,
        updated_at: None,
        url: None,
    }
}

pub(super) fn job(name: &str, conclusion: &str, steps: u64) -> JobView {
    JobView {
        id: 900,
        name: name.to_owned(),
        conclusion: Some(conclusion.to_owned()),
        steps,
    }
}

/// Runs and jobs, as a provider would list them.
#[derive(Default)]
pub(super) struct Provider {
    pub(super) runs: Mutex<Vec<RunView>>,
    pub(super) jobs: Mutex<BTreeMap<(u64, u64), Vec<JobView>>>,
    /// Jobs of these runs cannot be read.
    pub(super) broken: Mutex<BTreeMap<u64, fn() -> ConnectorError>>,
    /// These runs cannot be read by themselves.
    pub(super) unreadable: Mutex<BTreeMap<u64, fn() -> ConnectorError>>,
    pub(super) pages: Mutex<Vec<u32>>,
    /// Logs of jobs.
    pub(super) logs: Mutex<BTreeMap<u64, fn() -> Result<JobLog, ConnectorError>>>,
    /// The first page as it was last given, to say that it has not changed.
    pub(super) last: Mutex<Arc<[RunView]>>,
    /// What is on the first page and cannot be judged.
    pub(super) left_out: Mutex<Vec<String>>,
    pub(super) page_length: usize,
}

impl Provider {
    pub(super) fn new() -> Self {
        Self {
            page_length: 100,
            ..Self::default()
        }
    }

    /// Adds or replaces a run and the jobs of this attempt.
    pub(super) fn put(&self, run: RunView, jobs: &[JobView]) {
        let mut runs = self.runs.lock().unwrap();
        self.jobs
            .lock()
            .unwrap()
            .insert((run.id, run.attempt), jobs.to_vec());
        runs.retain(|known| known.id != run.id);
        runs.push(run);
        runs.sort_by_key(|run| std::cmp::Reverse(run.id));
    }

    fn no(action: &str) -> ConnectorError {
        ConnectorError::Refused {
            action: action.to_owned(),
            reason: "not in this test".to_owned(),
        }
    }
}

#[async_trait]
impl Connector for Provider {
    fn host(&self) -> &'static str {
        "memory"
    }
    async fn git_remote(&self, _: GitUse) -> Result<GitRemote, ConnectorError> {
        Ok(GitRemote {
            url: String::new(),
            token: None,
        })
    }
    fn usage(&self) -> Usage {
        Usage::default()
    }
    async fn access(&self) -> Result<Access, ConnectorError> {
        Ok(Access::default())
    }
    async fn run(&self, run: u64) -> Result<RunView, ConnectorError> {
        if let Some(error) = self.unreadable.lock().unwrap().get(&run) {
            return Err(error());
        }
        let runs = self.runs.lock().unwrap();
        let found = runs.iter().find(|known| known.id == run).cloned();
        found.ok_or_else(|| ConnectorError::Absent {
            action: "run".to_owned(),
            address: run.to_string(),
        })
    }
    async fn workflows(&self) -> Result<WorkflowList, ConnectorError> {
        Ok(WorkflowList::default())
    }
    async fn file(&self, _: &str, _: &str, _: usize) -> Result<Option<Vec<u8>>, ConnectorError> {
        Ok(None)
    }
    async fn rerun_failed(&self, _: u64) -> Result<(), ConnectorError> {
        Err(ConnectorError::Refused {
            action: "rerun".to_owned(),
            reason: "not in this test".to_owned(),
        })
    }
    async fn repository(&self) -> Result<RepositoryView, ConnectorError> {
        Err(Self::no("repository"))
    }
    async fn runs(&self, page: u32) -> Result<RunsPage, ConnectorError> {
        self.pages.lock().unwrap().push(page);
        let runs = self.runs.lock().unwrap();
        let start = (page as usize - 1) * self.page_length;
        let runs: Vec<RunView> = runs
            .iter()
            .skip(start)
            .take(self.page_length)
            .cloned()
            .collect();
        let mut last = self.last.lock().unwrap();
        let unchanged = page == 1 && **last == *runs;
        let runs: Arc<[RunView]> = if unchanged {
            Arc::clone(&last)
        } else {
            runs.into()
        };
        if page == 1 {
            *last = Arc::clone(&runs);
        }
        Ok(RunsPage {
            runs,
            left_out: self.left_out.lock().unwrap().clone().into(),
        })
    }
    async fn jobs(&self, run: u64, attempt: u64) -> Result<Vec<JobView>, ConnectorError> {
        if let Some(error) = self.broken.lock().unwrap().get(&run) {
            return Err(error());
        }
        let jobs = self.jobs.lock().unwrap().get(&(run, attempt)).cloned();
        jobs.ok_or_else(|| Self::no("jobs"))
    }
    async fn job_log(&self, job: u64, _: usize) -> Result<JobLog, ConnectorError> {
        match self.logs.lock().unwrap().get(&job) {
            Some(log) => log(),
            None => Ok(JobLog::Missing {
                reason: "not in this test".to_owned(),
            }),
        }
    }
    async fn branch(&self, _: &str) -> Result<Option<Oid>, ConnectorError> {
        Err(Self::no("branch"))
    }
    async fn protection(&self, _: &str) -> Result<Option<BranchProtection>, ConnectorError> {
        Err(Self::no("protection"))
    }
    async fn find_pull(&self, _: &str) -> Result<Option<PullView>, ConnectorError> {
        Err(Self::no("find_pull"))
    }
    async fn open_pull(&self, _: &NewPull) -> Result<PullView, ConnectorError> {
        Err(Self::no("open_pull"))
    }
    async fn pull(&self, _: u64) -> Result<PullView, ConnectorError> {
        Err(Self::no("pull"))
    }
    async fn live(&self, _: &Binding) -> Result<caretaker::reconcile::LiveView, ConnectorError> {
        Err(Self::no("live"))
    }
    async fn merge(&self, _: &MergeOrder) -> Result<MergeAnswer, ConnectorError> {
        Err(Self::no("merge"))
    }
    async fn landed(&self, _: &Binding, _: &ExecutionId) -> Result<LandedView, ConnectorError> {
        Err(Self::no("landed"))
    }
    async fn close_pull(&self, _: u64, _: &str) -> Result<(), ConnectorError> {
        Err(Self::no("close_pull"))
    }
    async fn delete_branch(&self, _: &str) -> Result<(), ConnectorError> {
        Err(Self::no("delete_branch"))
    }
}

/// What was written down.
#[derive(Default)]
pub(super) struct Book {
    pub(super) seen: Mutex<BTreeSet<(u64, u64)>>,
    jobs: Mutex<BTreeSet<(u64, u64, Option<String>)>>,
    /// Key and incident of what is open.
    pub(super) open: Mutex<BTreeMap<String, IncidentId>>,
    pub(super) failures: Mutex<Vec<Failure>>,
    /// The normalised error of each.
    pub(super) signatures: Mutex<Vec<Option<Sha256Digest>>>,
    pub(super) recovered: Mutex<Vec<String>>,
    /// Reading fails.
    pub(super) unreadable: Mutex<bool>,
    /// Writing fails after so many more writes.
    pub(super) writes_left: Mutex<Option<u32>>,
}

impl Book {
    fn write(&self) -> Result<(), RecordError> {
        let mut left = self.writes_left.lock().unwrap();
        match left.as_mut() {
            Some(0) => Err("the disk is full".into()),
            Some(count) => {
                *count -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Observations for Book {
    async fn seen(&self, from: u64) -> Result<BTreeSet<(u64, u64)>, RecordError> {
        if *self.unreadable.lock().unwrap() {
            return Err("the database is locked".into());
        }
        let seen = self.seen.lock().unwrap();
        Ok(seen.range((from, 0)..).copied().collect())
    }
    async fn anything_seen(&self) -> Result<bool, RecordError> {
        Ok(!self.seen.lock().unwrap().is_empty())
    }
    async fn mark_seen(&self, runs: &[(u64, u64)], _: Millis) -> Result<(), RecordError> {
        self.write()?;
        self.seen.lock().unwrap().extend(runs);
        Ok(())
    }
    async fn observe(
        &self,
        failure: &Failure,
        signature: Option<&Sha256Digest>,
        id: IncidentId,
        _: Millis,
    ) -> Result<Observed, RecordError> {
        self.write()?;
        let job = (failure.run_id, failure.attempt, failure.job.clone());
        if !self.jobs.lock().unwrap().insert(job) {
            return Ok(Observed::Known);
        }
        self.failures.lock().unwrap().push(failure.clone());
        self.signatures.lock().unwrap().push(signature.copied());
        let mut open = self.open.lock().unwrap();
        let key = failure.key(&project());
        if let Some(known) = open.get(&key) {
            return Ok(Observed::Attached(known.clone()));
        }
        open.insert(key, id.clone());
        Ok(Observed::Opened(id))
    }
    async fn observe_success(&self, key: &str, _: &Success, _: Millis) -> Result<(), RecordError> {
        self.write()?;
        if self.open.lock().unwrap().remove(key).is_some() {
            self.recovered.lock().unwrap().push(key.to_owned());
        }
        Ok(())
    }
}
