//! A forge, a database and a watch that share one clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::change::Sha256Digest;
use caretaker::clock::{Clock, FixedClock, Millis};
use caretaker::config::Poll;
use caretaker::connector::Connector;
use caretaker::connector::github::credential::PersonalToken;
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::forge::{
    FileEdit, Forge, ForgeOptions, NewJob, NewRun, NewStep, RepositoryHandle, Sources, start_with,
};
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::signer::system_randomness;
use caretaker::store::{IncidentRow, Project, ProjectState, Store, WatchMode};
use caretaker::watch::{PollReport, Watch};
use caretaker::worker::{Connectors, Time};

/// 2026-11-30 12:00:00 UTC, a Monday.
pub(super) const NOON: Millis = Millis(1_796_040_000_000);
/// The log of a test that fails.
pub(super) const LOG: &str = "\u{feff}2026-11-30T12:00:00.0000000Z running 1 test\n2026-11-30T12:00:01.0000000Z test decodes ... FAILED\n2026-11-30T12:00:01.0000000Z test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";

/// Hands out one connector, which a test may replace.
pub(super) struct Swappable(pub(super) Mutex<Arc<dyn Connector>>);

#[async_trait]
impl Connectors for Swappable {
    async fn of(&self, _: &Project) -> Result<Arc<dyn Connector>, String> {
        Ok(Arc::clone(&self.0.lock().unwrap()))
    }
}

pub(super) struct Scene {
    pub(super) forge: Forge,
    pub(super) repository: RepositoryHandle,
    pub(super) store: Store,
    pub(super) project: Project,
    pub(super) clock: Arc<FixedClock>,
    pub(super) connectors: Arc<Swappable>,
    pub(super) watch: Watch,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub(super) async fn new() -> Self {
        Self::with(&[("README.md", "watched\n")]).await
    }

    pub(super) async fn with(files: &[(&str, &str)]) -> Self {
        Self::made(files, None).await
    }

    /// A project that is looked at when this cron expression says so.
    pub(super) async fn scheduled(schedule: &str) -> Self {
        Self::made(&[("README.md", "watched\n")], Some(schedule)).await
    }

    async fn made(files: &[(&str, &str)], schedule: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(FixedClock::at(NOON));
        let seconds = Arc::clone(&clock);
        let sources = Sources {
            now: Arc::new(move || u64::try_from(seconds.now().0 / 1000).unwrap()),
            ..Sources::default()
        };
        let options = ForgeOptions::new(folder.path().join("forge"), ([127, 0, 0, 1], 0).into());
        let forge = start_with(options, sources).await.unwrap();
        let files: Vec<(&str, FileEdit)> = files
            .iter()
            .map(|(path, text)| (*path, FileEdit::file(*text)))
            .collect();
        let repository = forge.create_repository("acme", "widget", &files).unwrap();
        let database = format!("sqlite://{}", folder.path().join("caretaker.db").display());
        let store = Store::open(&database).await.unwrap();
        let project = confirmed(&store, &repository, &forge, schedule).await;
        let connector = connector(forge.url(), forge.token(), &project, &clock);
        let connectors = Arc::new(Swappable(Mutex::new(connector)));
        let watch = watch(&store, &connectors, &clock, "first");
        Self {
            forge,
            repository,
            store,
            project,
            clock,
            connectors,
            watch,
            _folder: folder,
        }
    }

    /// Time passes.
    pub(super) fn pass(&self, seconds: i64) {
        self.clock.advance_millis(seconds * 1000);
    }

    /// Looks at the project now.
    pub(super) async fn look(&mut self) -> Option<PollReport> {
        let mut reports = self.watch.round().await.unwrap();
        reports.pop().map(|(_, report)| report)
    }

    /// Another process looks instead, which remembers nothing.
    pub(super) fn restart(&mut self) {
        self.watch = watch(&self.store, &self.connectors, &self.clock, "second");
    }

    /// From now on with this token.
    pub(super) fn use_token(&self, token: &str) {
        let made = connector(self.forge.url(), token, &self.project, &self.clock);
        *self.connectors.0.lock().unwrap() = made;
    }

    /// From now on with the provider at this address.
    pub(super) fn use_address(&self, address: &str) {
        let made = connector(address, self.forge.token(), &self.project, &self.clock);
        *self.connectors.0.lock().unwrap() = made;
    }

    pub(super) async fn incidents(&self) -> Vec<IncidentRow> {
        let scope = self.store.within(&self.project.organisation);
        let mut incidents = scope.incidents().await.unwrap();
        incidents.reverse();
        incidents
    }

    /// Kinds of the incidents there are, with their jobs.
    pub(super) async fn kinds(&self) -> Vec<String> {
        let word = |incident: &IncidentRow| {
            let job = incident.failure.job.as_deref().unwrap_or("-");
            format!("{} {job}", incident.failure.kind)
        };
        let mut kinds: Vec<String> = self.incidents().await.iter().map(word).collect();
        kinds.sort();
        kinds
    }

    /// Every message that people get, oldest first; each is taken once.
    pub(super) async fn messages(&self) -> Vec<String> {
        let now = self.clock.now().plus_seconds(3600);
        let notices = self.store.due_notices(now, 1000).await.unwrap();
        for notice in &notices {
            let number = notice.number;
            self.store.notice_delivered(number, now).await.unwrap();
        }
        notices.into_iter().map(|notice| notice.text).collect()
    }

    /// A run of the workflow for a push to `main`.
    pub(super) fn run(&self, conclusion: &str, jobs: Vec<NewJob>) -> NewRun {
        NewRun {
            workflow: "ci".to_owned(),
            workflow_id: 9,
            workflow_path: ".github/workflows/ci.yml".to_owned(),
            event: "push".to_owned(),
            branch: Some("main".to_owned()),
            head_sha: self.repository.tip("main").unwrap(),
            status: "completed".to_owned(),
            conclusion: Some(conclusion.to_owned()),
            jobs,
        }
    }

    pub(super) fn add(&self, conclusion: &str, jobs: Vec<NewJob>) -> u64 {
        self.repository.add_run(self.run(conclusion, jobs)).unwrap()
    }
}

/// A job whose steps ran.
pub(super) fn job(name: &str, conclusion: &str) -> NewJob {
    NewJob {
        name: name.to_owned(),
        conclusion: Some(conclusion.to_owned()),
        steps: vec![NewStep {
            name: "Run tests".to_owned(),
            conclusion: Some(conclusion.to_owned()),
        }],
        log: Some(LOG.as_bytes().to_vec()),
    }
}

/// A job that never started.
pub(super) fn never_started(name: &str, conclusion: &str) -> NewJob {
    NewJob {
        steps: Vec::new(),
        log: None,
        ..job(name, conclusion)
    }
}

pub(super) fn watch(
    store: &Store,
    connectors: &Arc<Swappable>,
    clock: &Arc<FixedClock>,
    owner: &str,
) -> Watch {
    let connectors: Arc<dyn Connectors> = Arc::<Swappable>::clone(connectors);
    let poll = Poll::default();
    let clock: Arc<dyn Clock> = Arc::<FixedClock>::clone(clock);
    Watch::new(
        store.clone(),
        connectors,
        system_randomness,
        poll,
        owner.to_owned(),
    )
    .by(Time::Clock(clock))
}

pub(super) fn connector(
    base: &str,
    token: &str,
    project: &Project,
    clock: &Arc<FixedClock>,
) -> Arc<dyn Connector> {
    let base = base.to_owned();
    let clock: Arc<dyn Clock> = Arc::<FixedClock>::clone(clock);
    let (owner, name) = project.full_name.split_once('/').unwrap();
    let options = GithubOptions {
        api_url: base.clone(),
        web_url: base.clone(),
        git_url: base,
        owner: owner.to_owned(),
        name: name.to_owned(),
        credential: Arc::new(PersonalToken::new(token.to_owned().into())),
        expected_repository_id: Some(project.repository_id.clone()),
        deadline: Duration::from_secs(20),
    };
    Arc::new(GithubConnector::alone(options, clock).unwrap())
}

async fn confirmed(
    store: &Store,
    repository: &RepositoryHandle,
    forge: &Forge,
    schedule: Option<&str>,
) -> Project {
    let organisation = OrganisationId::new(NOON, [1; 10]);
    let ensured = store.ensure_organisation(&organisation, "acme", NOON);
    ensured.await.unwrap();
    let project = Project {
        id: ProjectId::new(NOON, [2; 10]),
        organisation,
        url: repository.url(),
        repository_id: repository.id().to_string(),
        full_name: "acme/widget".to_owned(),
        host: forge.url().trim_start_matches("http://").to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"denied: []\n"),
        intent: String::new(),
        owner: "mailto:owner@example.org".parse().unwrap(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(b"draft"),
        created_at: NOON,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: schedule.map(str::to_owned),
        removed_at: None,
    };
    store.insert_project(&project, b"sealed").await.unwrap();
    store.confirm_project(&project, None, NOON).await.unwrap();
    project
}
