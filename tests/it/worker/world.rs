//! A forge with a defect, an installation that watches it, and people.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::agent::{Coder, ScriptedCoder};
use caretaker::approve::{ApprovalToken, HumanDecision};
use caretaker::audit::{Report, verify};
use caretaker::audit_stream::AuditStream;
use caretaker::clock::{Clock as _, FixedClock, Millis};
use caretaker::connector::Connector;
use caretaker::connector::github::credential::{PersonalToken, TokenSource};
use caretaker::connector::github::{GithubConnector, GithubOptions};
use caretaker::forge::{Forge, ForgeOptions, Plant, Planted, TokenForm, start_with};
use caretaker::gate::Rules;
use caretaker::id::{IncidentId, ProjectId};
use caretaker::incident::{Failure, FailureKind, Snapshot, Stage, stage};
use caretaker::notify::{Notification, Notifier, Notifiers, NotifyError};
use caretaker::onboard::app::Recorder;
use caretaker::sandbox::{Limits, Mode, Sandbox};
use caretaker::signer::{Keyring, system_randomness};
use caretaker::store::{Consumed, Project, ProjectState, Store, WatchMode};
use caretaker::worker::{Anchoring, Connectors, Engine, Settings, Time, Tools, drain};
use caretaker::workspace::Identity;

use super::{acting_as_app, sums};

pub(crate) const NOW: Millis = Millis(1_790_000_000_000);

/// Asks a person about everything; one check is required.
pub(crate) const RULES: &str =
    "denied: [\"src/auth/**\"]\nchecks: {required: [{name: test, app: github-actions}]}\n";

/// One connector for every project.
pub(crate) struct Fixed(pub(crate) Arc<dyn Connector>);

#[async_trait]
impl Connectors for Fixed {
    async fn of(&self, _: &Project) -> Result<Arc<dyn Connector>, String> {
        Ok(Arc::clone(&self.0))
    }
}

/// Keeps what it is told.
#[derive(Clone, Default)]
pub(crate) struct Inbox(pub(crate) Arc<Mutex<Vec<serde_json::Value>>>);

#[async_trait]
impl Notifier for Inbox {
    async fn notify(&self, notification: &Notification) -> Result<(), NotifyError> {
        let document = serde_json::to_value(notification).unwrap();
        self.0.lock().unwrap().push(document);
        Ok(())
    }
}

impl Inbox {
    pub(crate) fn events(&self) -> Vec<String> {
        let messages = self.0.lock().unwrap();
        let event = |message: &serde_json::Value| message["event"].as_str().unwrap().to_owned();
        messages.iter().map(event).collect()
    }

    pub(crate) fn link(&self) -> Option<ApprovalToken> {
        let messages = self.0.lock().unwrap();
        let url = messages
            .iter()
            .rev()
            .find_map(|message| message["approval_url"].as_str().map(str::to_owned))?;
        url.rsplit('/').next().unwrap().parse().ok()
    }
}

pub(crate) struct World {
    pub(crate) forge: Forge,
    pub(crate) planted: Planted,
    pub(crate) engine: Engine,
    pub(crate) project: Project,
    pub(crate) incident: IncidentId,
    pub(crate) inbox: Inbox,
    pub(crate) clock: Arc<FixedClock>,
    /// What happens to tokens, when caretaker acts as an App.
    pub(crate) recorder: Option<Recorder>,
    home: tempfile::TempDir,
}

/// Which repository fails.
#[derive(Clone, Copy)]
pub(crate) enum Seed {
    /// One of the forge's own crates, whose tests take seconds.
    Plant(Plant),
    /// A Python module, whose tests take a moment.
    Sums,
    /// The same in a folder.
    Below,
    /// The same with another module and another test.
    Python {
        module: &'static str,
        test: &'static str,
    },
}

/// What a test may bend before the worker starts.
pub(crate) struct Setting {
    pub(crate) seed: Seed,
    pub(crate) rules: String,
    pub(crate) coder: Option<Arc<dyn Coder>>,
    /// The database's address; a file of its own when there is none.
    pub(crate) database: Option<String>,
    /// Act as an App whose tokens have this form; with the forge's own token when there is none.
    pub(crate) app: Option<TokenForm>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            seed: Seed::Plant(Plant::RedTest),
            rules: RULES.to_owned(),
            coder: Some(Arc::new(ScriptedCoder::for_demo().unwrap())),
            database: None,
            app: None,
        }
    }
}

impl Setting {
    /// The quick repository, with a coder that knows it.
    pub(crate) fn sums() -> Self {
        Self {
            seed: Seed::Sums,
            coder: Some(Arc::new(sums::coder())),
            ..Self::default()
        }
    }
}

impl World {
    pub(crate) async fn new(setting: Setting) -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = ForgeOptions::new(home.path().join("forge"), ([127, 0, 0, 1], 0).into());
        let sources = acting_as_app::sources(setting.app);
        let forge = start_with(options, sources).await.unwrap();
        let planted = match setting.seed {
            Seed::Plant(plant) => forge.plant(plant).unwrap(),
            Seed::Below => sums::plant_below(&forge),
            Seed::Sums => sums::plant(&forge),
            Seed::Python { module, test } => sums::plant_of(&forge, module, test),
        };
        let clock = Arc::new(FixedClock::at(NOW));
        let inbox = Inbox::default();
        let (credential, recorder) = match setting.app {
            Some(form) => {
                let (credential, recorder) = acting_as_app::installed(&forge, &planted, form);
                (credential, Some(recorder))
            }
            None => (token(&forge), None),
        };
        let connector = github_with(&forge, &planted, &clock, credential);
        let file = format!("sqlite://{}", home.path().join("caretaker.db").display());
        let database = setting.database.unwrap_or(file);
        let engine = engine(&home, &database, &connector, setting.coder, &inbox, &clock).await;
        let url = planted.repository.url();
        let project = confirmed(&engine, &connector, &setting.rules, url).await;
        let failure = failure(&connector, planted.run).await;
        let incident = observed(&engine, &project, &failure).await;
        Self {
            forge,
            planted,
            engine,
            project,
            incident,
            inbox,
            clock,
            recorder,
            home,
        }
    }

    /// Another worker on the same database, as in a second process.
    pub(crate) fn another_engine(&self) -> Engine {
        let engine = &self.engine;
        Engine {
            store: engine.store.clone(),
            connectors: Arc::clone(&engine.connectors),
            coder: engine.coder.clone(),
            sandbox: Arc::clone(&engine.sandbox),
            tools: engine.tools.clone(),
            keys: Arc::clone(&engine.keys),
            notifiers: Notifiers::new(vec![Box::new(self.inbox.clone())]),
            time: engine.time.clone(),
            random: engine.random,
            anchoring: engine.anchoring.clone(),
            walked: tokio::sync::Mutex::default(),
            events: Arc::clone(&engine.events),
            gate: engine.gate.clone(),
            settings: engine.settings.clone(),
            failpoint: None,
        }
    }

    /// Where the installation's state is; removed when the world ends.
    pub(crate) fn home(&self) -> &std::path::Path {
        self.home.path()
    }

    pub(crate) async fn snapshot(&self) -> Snapshot {
        let scoped = self.engine.store.within(&self.project.organisation);
        let now = self.clock.now();
        scoped.snapshot(&self.incident, now).await.unwrap().unwrap()
    }

    pub(crate) async fn stage(&self) -> Stage {
        stage(&self.snapshot().await)
    }

    /// Lets the worker work, and time pass, until the incident is final or waits for a person.
    pub(crate) async fn settle(&self) -> Stage {
        for _ in 0..60 {
            Box::pin(drain(&self.engine, "worker")).await.unwrap();
            let stage = self.stage().await;
            if stage.is_final() || stage == Stage::AwaitingApproval {
                return stage;
            }
            self.clock.advance_millis(5_000);
        }
        let scoped = self.engine.store.within(&self.project.organisation);
        let row = scoped.incident(&self.incident).await.unwrap().unwrap();
        panic!(
            "it does not settle: {:?}: {:#?}",
            row.wait,
            self.snapshot().await.facts
        );
    }

    /// The owner uses the newest link.
    pub(crate) async fn answer(&self, decision: HumanDecision) {
        let link = self.inbox.link().expect("a link was delivered");
        let now = self.clock.now();
        let store = &self.engine.store;
        let consumed = store.consume(&link, decision, None, now).await;
        assert!(
            matches!(consumed, Ok(Consumed::Done { .. })),
            "{consumed:?}"
        );
    }

    pub(crate) async fn verify(&self) -> Report {
        let scoped = self.engine.store.within(&self.project.organisation);
        let ledger = scoped.ledger(&self.incident).await.unwrap().unwrap();
        verify(self.engine.keys.history(), &ledger)
    }

    /// Signed events, by kind.
    pub(crate) async fn events(&self) -> Vec<&'static str> {
        let report = self.verify().await;
        assert_eq!(report.verdict.name(), "valid", "{report:#?}");
        let kinds = report.events.iter().map(|event| event.kind.unwrap().name());
        kinds.collect()
    }
}

fn token(forge: &Forge) -> Arc<dyn TokenSource> {
    Arc::new(PersonalToken::new(forge.token().to_owned().into()))
}

pub(crate) fn github(
    forge: &Forge,
    planted: &Planted,
    clock: &Arc<FixedClock>,
) -> Arc<dyn Connector> {
    github_with(forge, planted, clock, token(forge))
}

fn github_with(
    forge: &Forge,
    planted: &Planted,
    clock: &Arc<FixedClock>,
    credential: Arc<dyn TokenSource>,
) -> Arc<dyn Connector> {
    let full_name = planted.repository.full_name();
    let (owner, name) = full_name.split_once('/').unwrap();
    let options = GithubOptions {
        api_url: forge.url().to_owned(),
        web_url: forge.url().to_owned(),
        git_url: forge.url().to_owned(),
        owner: owner.to_owned(),
        name: name.to_owned(),
        credential,
        expected_repository_id: Some(planted.repository.id().to_string()),
        deadline: Duration::from_secs(10),
    };
    Arc::new(GithubConnector::alone(options, clock.clone()).unwrap())
}

/// A worker's means over a fresh database, with one organisation and new keys.
pub(crate) async fn engine(
    home: &tempfile::TempDir,
    database: &str,
    connector: &Arc<dyn Connector>,
    coder: Option<Arc<dyn Coder>>,
    inbox: &Inbox,
    clock: &Arc<FixedClock>,
) -> Engine {
    let store = Store::open(database).await.unwrap();
    let keys = Keyring::in_memory(None, NOW, &mut system_randomness).unwrap();
    let organisation = keys.organisation().clone();
    let made = store.ensure_organisation(&organisation, "example", NOW);
    made.await.unwrap();
    let launcher = PathBuf::from(env!("CARGO_BIN_EXE_caretaker"));
    let sandbox = Sandbox::detect(Mode::Auto, launcher.clone()).await.unwrap();
    Engine {
        store,
        connectors: Arc::new(Fixed(Arc::clone(connector))),
        coder,
        sandbox: Arc::new(sandbox),
        tools: Tools::of_process(),
        keys: Arc::new(keys),
        notifiers: Notifiers::new(vec![Box::new(inbox.clone())]),
        time: Time::Clock(clock.clone()),
        random: system_randomness,
        anchoring: Anchoring::default(),
        walked: tokio::sync::Mutex::default(),
        gate: None,
        events: Arc::new(
            AuditStream::open(
                &home.path().join("audit"),
                clock.clone(),
                &mut system_randomness,
            )
            .unwrap(),
        ),
        settings: Settings {
            home: home.path().to_path_buf(),
            launcher,
            public_url: "http://127.0.0.1:1".to_owned(),
            link_ttl: Duration::from_hours(24),
            evidence_days: None,
            lease: Duration::from_mins(1),
            tests: Limits::default(),
            author: Identity {
                name: "caretaker".to_owned(),
                email: "caretaker@example.org".to_owned(),
            },
        },
        failpoint: None,
    }
}

/// A project that is watched.
pub(crate) async fn confirmed(
    engine: &Engine,
    connector: &Arc<dyn Connector>,
    rules: &str,
    url: String,
) -> Project {
    let document = caretaker::config::rules_from_yaml(rules.as_bytes(), "rules").unwrap();
    let compiled = Rules::compile(document, rules.as_bytes()).unwrap();
    let view = connector.repository().await.unwrap();
    let project = Project {
        id: ProjectId::new(NOW, [2; 10]),
        organisation: engine.keys.organisation().clone(),
        url,
        repository_id: view.id,
        full_name: view.full_name,
        host: connector.host().to_owned(),
        rules: rules.to_owned(),
        rules_digest: *compiled.digest(),
        intent: "Decode as documented.\n".to_owned(),
        owner: "mailto:owner@example.org".parse().unwrap(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: *compiled.digest(),
        created_at: NOW,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: None,
        removed_at: None,
    };
    let store = &engine.store;
    store.insert_project(&project, b"sealed").await.unwrap();
    store.confirm_project(&project, None, NOW).await.unwrap();
    project
}

/// The incident that a failure becomes.
pub(crate) async fn observed(engine: &Engine, project: &Project, failure: &Failure) -> IncidentId {
    let incident = IncidentId::new(NOW, [1; 10]);
    let observed = engine.store.observe(project, failure, None, &incident, NOW);
    observed.await.map(drop).unwrap();
    incident
}

pub(crate) async fn failure(connector: &Arc<dyn Connector>, run: u64) -> Failure {
    let runs = connector.runs(1).await.unwrap();
    let run = runs
        .runs
        .iter()
        .find(|view| view.id == run)
        .unwrap()
        .clone();
    let jobs = connector.jobs(run.id, run.attempt).await.unwrap();
    let job = jobs
        .into_iter()
        .find(|job| job.conclusion.as_deref() == Some("failure"))
        .unwrap();
    Failure {
        kind: FailureKind::Code,
        workflow_id: run.workflow_id,
        workflow: run.workflow,
        scope: run.event,
        base_ref: run.branch.unwrap(),
        job: Some(job.name),
        job_id: Some(job.id),
        run_id: run.id,
        attempt: run.attempt,
        commit: run.head_commit,
        url: run.url,
        detail: None,
    }
}
