//! A provider that is no GitHub: a bare repository reached as a file, pull requests in a list, no HTTP and no checks. The same
//! worker brings an incident there to its end, so nothing in it or in the kernel knows GitHub.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use caretaker::approve::{Binding, HumanDecision};
use caretaker::change::{FileChange, Mode, Oid, RepoPath};
use caretaker::clock::{Clock as _, FixedClock};
use caretaker::connector::{
    Access, BranchProtection, Connector, ConnectorError, GitRemote, GitUse, JobLog, JobView,
    NewPull, PullView, RepositoryView, RunView, RunsPage, Usage, WorkflowList,
};
use caretaker::execute::{MergeAnswer, MergeOrder};
use caretaker::id::{ExecutionId, IncidentId};
use caretaker::incident::{EscalationReason, Failure, FailureKind, Snapshot, Stage, stage};
use caretaker::reconcile::{
    EXECUTION_TRAILER, LandedCommit, LandedView, LiveView, PullFile, PullState,
};
use caretaker::store::{Consumed, Project};
use caretaker::worker::{Engine, drain};
use caretaker::workspace::{RepositoryReader, open_read_only};

use super::sums;
use super::world::{Inbox, NOW, confirmed, engine, observed};

/// A pull request as it is kept.
#[derive(Clone)]
struct Pull {
    head_ref: String,
    base_ref: String,
    open: bool,
    merged: bool,
    comments: Vec<String>,
}

/// The provider.
struct Memory {
    path: PathBuf,
    pulls: Mutex<Vec<Pull>>,
    /// Whether it merges more than it is asked to.
    slips_something_in: bool,
}

fn raw(oid: Oid) -> git2::Oid {
    git2::Oid::from_bytes(oid.as_bytes()).unwrap()
}

fn cooked(oid: git2::Oid) -> Oid {
    Oid::from_bytes(oid.as_bytes()).unwrap()
}

fn signature() -> git2::Signature<'static> {
    git2::Signature::new("memory", "memory@example.org", &git2::Time::new(1, 0)).unwrap()
}

impl Memory {
    fn at(path: PathBuf, slips_something_in: bool) -> Self {
        let mut options = git2::RepositoryInitOptions::new();
        options.bare(true).initial_head("main");
        let git = git2::Repository::init_opts(&path, &options).unwrap();
        let mut tree = git.treebuilder(None).unwrap();
        for (name, text) in [("sums.py", sums::MODULE), ("test_sums.py", sums::OLD_TEST)] {
            let blob = git.blob(text.as_bytes()).unwrap();
            tree.insert(name, blob, 0o100_644).unwrap();
        }
        let tree = git.find_tree(tree.write().unwrap()).unwrap();
        let (who, name) = (signature(), Some("refs/heads/main"));
        git.commit(name, &who, &who, "Begin", &tree, &[]).unwrap();
        Self {
            path,
            pulls: Mutex::default(),
            slips_something_in,
        }
    }

    fn git(&self) -> git2::Repository {
        git2::Repository::open_bare(&self.path).unwrap()
    }

    fn reader(&self) -> RepositoryReader {
        open_read_only(&self.path).unwrap()
    }

    fn tip(&self, branch: &str) -> Option<Oid> {
        let name = format!("refs/heads/{branch}");
        self.reader().reference(&name).unwrap()
    }

    fn kept(&self, number: u64) -> Pull {
        let mut pulls = self.pulls.lock().unwrap();
        Self::of(&mut pulls, number).clone()
    }

    fn of(pulls: &mut [Pull], number: u64) -> &mut Pull {
        &mut pulls[usize::try_from(number).unwrap() - 1]
    }

    fn state(&self, number: u64, changed_files: usize) -> PullState {
        let pull = self.kept(number);
        PullState {
            number,
            open: pull.open,
            merged: pull.merged,
            draft: false,
            stacked: false,
            auto_merge: false,
            head_repository: Some("1".to_owned()),
            head_commit: self.tip(&pull.head_ref).unwrap(),
            head_ref: pull.head_ref,
            base_ref: pull.base_ref,
            commits: 1,
            changed_files: changed_files as u64,
            mergeable: Some(true),
        }
    }

    fn view(&self, number: u64) -> PullView {
        let pull = self.kept(number);
        PullView {
            number,
            url: format!("memory:pull/{number}"),
            open: pull.open,
            merged: pull.merged,
            head_commit: self.tip(&pull.head_ref).unwrap(),
        }
    }

    /// One commit on the base with what the head adds to it.
    fn squash(&self, order: &MergeOrder) -> Oid {
        let git = self.git();
        let base = raw(self.tip("main").unwrap());
        let base = git.find_commit(base).unwrap();
        let head = git.find_commit(raw(order.head_commit())).unwrap();
        let mut index = git.merge_commits(&base, &head, None).unwrap();
        let mut tree = git.find_tree(index.write_tree_to(&git).unwrap()).unwrap();
        if self.slips_something_in {
            let mut more = git.treebuilder(Some(&tree)).unwrap();
            let blob = git.blob(b"nobody saw this\n").unwrap();
            more.insert("extra.py", blob, 0o100_644).unwrap();
            tree = git.find_tree(more.write().unwrap()).unwrap();
        }
        let message = format!("{}\n\n{}", order.title(), order.message());
        let (who, name) = (signature(), Some("refs/heads/main"));
        let commit = git.commit(name, &who, &who, &message, &tree, &[&base]);
        cooked(commit.unwrap())
    }

    /// The commit on the base whose message names the execution.
    fn named(&self, execution: &ExecutionId) -> Option<LandedCommit> {
        let (git, reader) = (self.git(), self.reader());
        let wanted = format!("{EXECUTION_TRAILER}: {execution}");
        let mut commit = git.find_commit(raw(self.tip("main")?)).ok()?;
        while !commit.message().ok()?.lines().any(|line| line == wanted) {
            commit = commit.parent(0).ok()?;
        }
        let (id, parent) = (cooked(commit.id()), cooked(commit.parent_id(0).ok()?));
        Some(LandedCommit {
            commit: id,
            tree: cooked(commit.tree_id()),
            parents: vec![parent],
            entries: reader.change_set(parent, id).unwrap(),
            on_base: true,
            message: commit.message().ok()?.to_owned(),
        })
    }
}

fn row(entry: &FileChange) -> PullFile {
    let (status, oid) = match (entry.old.mode, entry.new.mode) {
        (Mode::Absent, _) => ("added", entry.new.oid),
        (_, Mode::Absent) => ("removed", entry.old.oid),
        _ => ("modified", entry.new.oid),
    };
    PullFile {
        path: entry.path.to_string(),
        status: status.to_owned(),
        oid: Some(oid),
        previous_path: None,
    }
}

#[async_trait]
impl Connector for Memory {
    fn host(&self) -> &'static str {
        "memory.example"
    }

    async fn git_remote(&self, _: GitUse) -> Result<GitRemote, ConnectorError> {
        Ok(GitRemote {
            url: format!("file://{}", self.path.display()),
            token: None,
        })
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }
    async fn access(&self) -> Result<Access, ConnectorError> {
        Ok(Access::default())
    }
    async fn run(&self, _: u64) -> Result<RunView, ConnectorError> {
        Err(ConnectorError::Refused {
            action: "run".to_owned(),
            reason: "not in this test".to_owned(),
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
        Ok(RepositoryView {
            id: "1".to_owned(),
            full_name: "memory/sums".to_owned(),
            default_branch: "main".to_owned(),
            archived: false,
            disabled: false,
        })
    }

    async fn runs(&self, _: u32) -> Result<RunsPage, ConnectorError> {
        Ok(RunsPage::default())
    }

    async fn jobs(&self, _: u64, _: u64) -> Result<Vec<JobView>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn job_log(&self, _: u64, _: usize) -> Result<JobLog, ConnectorError> {
        Ok(JobLog::Text {
            bytes: sums::LOG.as_bytes().to_vec(),
            omitted: 0,
            cut: None,
        })
    }

    async fn branch(&self, name: &str) -> Result<Option<Oid>, ConnectorError> {
        Ok(self.tip(name))
    }

    async fn protection(&self, _: &str) -> Result<Option<BranchProtection>, ConnectorError> {
        Ok(None)
    }

    async fn find_pull(&self, head_ref: &str) -> Result<Option<PullView>, ConnectorError> {
        let pulls = self.pulls.lock().unwrap().clone();
        let found = pulls.iter().rposition(|pull| pull.head_ref == head_ref);
        Ok(found.map(|index| self.view(index as u64 + 1)))
    }

    async fn open_pull(&self, pull: &NewPull) -> Result<PullView, ConnectorError> {
        let mut pulls = self.pulls.lock().unwrap();
        pulls.push(Pull {
            head_ref: pull.head_ref.clone(),
            base_ref: pull.base_ref.clone(),
            open: true,
            merged: false,
            comments: Vec::new(),
        });
        let number = pulls.len() as u64;
        drop(pulls);
        Ok(self.view(number))
    }

    async fn pull(&self, number: u64) -> Result<PullView, ConnectorError> {
        Ok(self.view(number))
    }

    async fn live(&self, binding: &Binding) -> Result<LiveView, ConnectorError> {
        let reader = self.reader();
        let base_tip = self.tip(&binding.base_ref).unwrap();
        let head = self.tip(&binding.head_ref).unwrap();
        let merge_base = reader.merge_base(base_tip, head).unwrap();
        let entries = reader.change_set(merge_base, head).unwrap();
        let side = |entry: &FileChange| {
            let side = reader.entry(base_tip, &entry.path).unwrap()?;
            Some((entry.path.clone(), side))
        };
        Ok(LiveView {
            repository_id: "1".to_owned(),
            archived: false,
            pull: self.state(binding.pull_request, entries.count()),
            base_tip,
            merge_base,
            head_tree: reader.commit_tree(head).unwrap(),
            base_sides: entries.entries().iter().filter_map(side).collect(),
            path_conflicts: Vec::new(),
            files: entries.entries().iter().map(row).collect(),
            head_commit_after_files: head,
            checks: Vec::new(),
            blocking_rules: Vec::new(),
            allowed_methods: vec!["squash".to_owned()],
            entries,
        })
    }

    async fn merge(&self, order: &MergeOrder) -> Result<MergeAnswer, ConnectorError> {
        let commit = self.squash(order);
        let mut pulls = self.pulls.lock().unwrap();
        let pull = Self::of(&mut pulls, order.pull_request());
        (pull.open, pull.merged) = (false, true);
        Ok(MergeAnswer::Merged(commit))
    }

    async fn landed(
        &self,
        binding: &Binding,
        execution: &ExecutionId,
    ) -> Result<LandedView, ConnectorError> {
        Ok(LandedView {
            pull: self.state(binding.pull_request, 0),
            base_tip: self.tip(&binding.base_ref).unwrap(),
            landed: self.named(execution),
        })
    }

    async fn close_pull(&self, number: u64, comment: &str) -> Result<(), ConnectorError> {
        let mut pulls = self.pulls.lock().unwrap();
        let pull = Self::of(&mut pulls, number);
        if pull.open {
            pull.open = false;
            pull.comments.push(comment.to_owned());
        }
        Ok(())
    }

    async fn delete_branch(&self, name: &str) -> Result<(), ConnectorError> {
        if let Ok(mut branch) = self.git().find_branch(name, git2::BranchType::Local) {
            branch.delete().unwrap();
        }
        Ok(())
    }
}

/// An installation that watches the provider, with one incident that waits for its owner.
struct Watching {
    memory: Arc<Memory>,
    engine: Engine,
    project: Project,
    incident: IncidentId,
    inbox: Inbox,
    clock: Arc<FixedClock>,
    _home: tempfile::TempDir,
}

impl Watching {
    async fn new(slips_something_in: bool) -> Self {
        let home = tempfile::tempdir().unwrap();
        let memory = Memory::at(home.path().join("memory.git"), slips_something_in);
        let memory = Arc::new(memory);
        let connector: Arc<dyn Connector> = memory.clone();
        let (inbox, clock) = (Inbox::default(), Arc::new(FixedClock::at(NOW)));
        let coder = Some(Arc::new(sums::coder()) as Arc<dyn caretaker::agent::Coder>);
        let database = format!("sqlite://{}", home.path().join("caretaker.db").display());
        let engine = engine(&home, &database, &connector, coder, &inbox, &clock).await;
        let rules = "checks: {allow_none: true}\n";
        let project = confirmed(&engine, &connector, rules, "memory:sums".to_owned()).await;
        let failure = Failure {
            kind: FailureKind::Code,
            workflow_id: 1,
            workflow: None,
            scope: "push".to_owned(),
            base_ref: "main".to_owned(),
            job: Some("test".to_owned()),
            job_id: Some(1),
            run_id: 1,
            attempt: 1,
            commit: memory.tip("main").unwrap(),
            url: None,
            detail: None,
        };
        let incident = observed(&engine, &project, &failure).await;
        let watching = Self {
            memory,
            engine,
            project,
            incident,
            inbox,
            clock,
            _home: home,
        };
        assert_eq!(Box::pin(watching.settle()).await, Stage::AwaitingApproval);
        watching
    }

    async fn snapshot(&self) -> Snapshot {
        let scoped = self.engine.store.within(&self.project.organisation);
        let now = self.clock.now();
        scoped.snapshot(&self.incident, now).await.unwrap().unwrap()
    }

    async fn settle(&self) -> Stage {
        for _ in 0..60 {
            drain(&self.engine, "worker").await.unwrap();
            let stage = stage(&self.snapshot().await);
            if stage.is_final() || stage == Stage::AwaitingApproval {
                return stage;
            }
            self.clock.advance_millis(5_000);
        }
        panic!("it does not settle");
    }

    async fn answer(&self, decision: HumanDecision) -> Stage {
        let (link, now) = (self.inbox.link().unwrap(), self.clock.now());
        let store = &self.engine.store;
        let consumed = store.consume(&link, decision, None, now).await;
        assert!(
            matches!(consumed, Ok(Consumed::Done { .. })),
            "{consumed:?}"
        );
        self.settle().await
    }

    /// Signed events, by kind.
    async fn events(&self) -> Vec<&'static str> {
        let scoped = self.engine.store.within(&self.project.organisation);
        let ledger = scoped.ledger(&self.incident).await.unwrap().unwrap();
        let report = caretaker::audit::verify(self.engine.keys.history(), &ledger);
        assert_eq!(report.verdict.name(), "valid", "{report:#?}");
        let kinds = report.events.iter().map(|event| event.kind.unwrap().name());
        kinds.collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_ends_the_same_where_there_is_no_github() {
    let watching = Watching::new(false).await;
    let stage = watching.answer(HumanDecision::Approve).await;
    assert_eq!(stage, Stage::Resolved);
    assert_eq!(
        watching.events().await,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let memory = &watching.memory;
    assert!(memory.kept(1).merged);
    let path: RepoPath = "sums.py".parse().unwrap();
    let tip = memory.tip("main").unwrap();
    let file = memory.reader().read_file(tip, &path, 1_000).unwrap();
    let text = String::from_utf8(file.unwrap()).unwrap();
    assert!(text.contains("a + b"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_there_closes_the_pull_request_too() {
    let watching = Watching::new(false).await;
    let head = watching.memory.kept(1).head_ref;
    assert_eq!(watching.answer(HumanDecision::Reject).await, Stage::Closed);
    let pull = watching.memory.kept(1);
    assert!(!pull.open && !pull.merged);
    assert_eq!(pull.comments.len(), 1);
    assert_eq!(watching.memory.tip(&head), None);
}

/// The proof asks the base branch, not the provider's word: one that merges more than was ordered is found out.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_merges_more_than_it_was_asked_to_freezes_the_project() {
    let watching = Watching::new(true).await;
    let stage = watching.answer(HumanDecision::Approve).await;
    assert_eq!(stage, Stage::Escalated);
    let snapshot = watching.snapshot().await;
    // Break: take the answer `Merged` for the proof in `prove` of src/reconcile/landed.rs.
    let reason = snapshot.escalation().map(|(reason, _)| reason);
    assert_eq!(reason, Some(EscalationReason::ExecutedDiffers));
    assert!(snapshot.frozen);
    assert_eq!(
        watching.events().await,
        ["proposal", "policy-decision", "approval", "escalation"]
    );
}
