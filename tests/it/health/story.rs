//! Endpoints that fail and come back, told with the real store on both databases, the real worker, a real server and a forge. A
//! watch is made anew for every round: each of them starts as a restarted process would.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use async_trait::async_trait;
use caretaker::change::Sha256Digest;
use caretaker::clock::{Clock as _, FixedClock, Millis};
use caretaker::connector::Connector;
use caretaker::forge::{Forge, ForgeOptions, Planted, Profile, start};
use caretaker::id::ProjectId;
use caretaker::incident::{ClosedReason, FailureKind, Stage};
use caretaker::probe::{AddressRules, HttpProbe, Probe};
use caretaker::signer::system_randomness;
use caretaker::store::{IncidentRow, Project, ProjectState, WatchMode};
use caretaker::watch::health::{
    Checked, HealthState, HealthWatch, Outcome, Phase, SelfCheck, round,
};
use caretaker::worker::{Connectors, Engine, drain};
use serde_json::json;
use sqlx::{AnyConnection, Connection as _};
use url::Url;

use super::probing::Names;
use super::server::{Reply, Server, answer};
use crate::support::postgres;
use crate::worker::sums;
use crate::worker::world::{Inbox, NOW, engine, github};

/// Tells each story on both databases.
macro_rules! on_both {
    ($($(#[$attribute:meta])* async fn $name:ident($world:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            $(#[$attribute])*
            async fn story($world: World) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                story(World::new(None).await).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                if let Some(url) = postgres::schema().await {
                    story(World::new(Some(url)).await).await;
                }
            }
        }
    )*};
}

/// Opens credentials until told not to.
struct Confirmed {
    connector: Arc<dyn Connector>,
    open: AtomicBool,
}

#[async_trait]
impl Connectors for Confirmed {
    async fn of(&self, _: &Project) -> Result<Arc<dyn Connector>, String> {
        if self.open.load(Ordering::SeqCst) {
            Ok(Arc::clone(&self.connector))
        } else {
            Err("the credential does not open".to_owned())
        }
    }
}

struct World {
    planted: Planted,
    engine: Engine,
    connectors: Arc<Confirmed>,
    project: Project,
    inbox: Inbox,
    clock: Arc<FixedClock>,
    /// What the endpoint answers; 0 is nothing at all.
    status: Arc<AtomicU16>,
    endpoint: Server,
    /// What the self-check asks.
    targets: Vec<Url>,
    database: String,
    _forge: Forge,
    _home: tempfile::TempDir,
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

impl World {
    async fn new(database: Option<String>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let options = ForgeOptions {
            directory: home.path().join("forge"),
            listen: ([127, 0, 0, 1], 0).into(),
            profile: Profile::default(),
        };
        let forge = start(options).await.unwrap();
        let planted = sums::plant(&forge);
        let clock = Arc::new(FixedClock::at(NOW));
        let inbox = Inbox::default();
        let connector = github(&forge, &planted, &clock);
        let file = format!("sqlite://{}", home.path().join("caretaker.db").display());
        let database = database.unwrap_or(file);
        let engine = engine(&home, &database, &connector, None, &inbox, &clock).await;
        let status = Arc::new(AtomicU16::new(200));
        let seen = Arc::clone(&status);
        let endpoint = Server::start(move |_| match seen.load(Ordering::SeqCst) {
            0 => Reply::Bytes(Vec::new()),
            status => answer(
                &format!("{status} Whatever"),
                &format!("x-commit: {COMMIT}\r\n"),
                "",
            ),
        })
        .await;
        let view = connector.repository().await.unwrap();
        let project = Project {
            id: ProjectId::new(NOW, [2; 10]),
            organisation: engine.keys.organisation().clone(),
            url: planted.repository.url(),
            repository_id: view.id,
            full_name: view.full_name,
            host: connector.host().to_owned(),
            rules: "denied: []\n".to_owned(),
            rules_digest: Sha256Digest::of(b"denied: []\n"),
            intent: String::new(),
            owner: "mailto:owner@example.org".parse().unwrap(),
            state: ProjectState::Draft,
            frozen: None,
            draft_digest: Sha256Digest::of(b"draft"),
            created_at: NOW,
            confirmed_at: None,
            watch: WatchMode::Health,
            health: "[]".to_owned(),
            schedule: None,
            removed_at: None,
        };
        Self {
            planted,
            connectors: Arc::new(Confirmed {
                connector,
                open: AtomicBool::new(true),
            }),
            engine,
            project,
            inbox,
            clock,
            status,
            endpoint,
            targets: Vec::new(),
            database,
            _forge: forge,
            _home: home,
        }
    }

    /// Watches the endpoint with this check, or several.
    async fn watched(&mut self, checks: serde_json::Value) {
        self.project.health = checks.to_string();
        let store = &self.engine.store;
        store
            .insert_project(&self.project, b"sealed")
            .await
            .unwrap();
        store
            .confirm_project(&self.project, None, NOW)
            .await
            .unwrap();
    }

    /// The one check of most stories: two failures open, two successes close.
    async fn watched_once(&mut self) {
        let url = self.endpoint.url("/health?key=hunter2");
        let check = json!([{"name": "site", "url": url, "interval": "1m", "failures_to_open": 2}]);
        self.watched(check).await;
    }

    /// A watch as a process has it that has just started.
    fn watch(&self) -> HealthWatch {
        let rules = AddressRules {
            private: false,
            loopback: true,
        };
        let local = Names::of(vec![vec![IpAddr::from([127, 0, 0, 1])]]);
        let probe: Arc<dyn Probe> = Arc::new(HttpProbe::new(rules, local, &[]).unwrap());
        let reach = SelfCheck::new(Arc::clone(&probe), self.targets.clone());
        let connectors = Arc::clone(&self.connectors) as Arc<dyn Connectors>;
        let store = self.engine.store.clone();
        HealthWatch::new(store, connectors, probe, Arc::new(reach), system_randomness)
    }

    /// Some more than a minute passes; what is due is asked, and the worker works.
    async fn minute(&self) -> Vec<Checked> {
        self.clock.advance_millis(70_000);
        let checked = round(&self.watch(), self.clock.now()).await.unwrap();
        drain(&self.engine, "worker").await.unwrap();
        checked
    }

    async fn minutes(&self, count: u32, status: u16) {
        self.status.store(status, Ordering::SeqCst);
        for _ in 0..count {
            assert_eq!(self.minute().await.len(), 1);
        }
    }

    async fn incidents(&self) -> Vec<IncidentRow> {
        let scope = self.engine.store.within(&self.project.organisation);
        scope.incidents().await.unwrap()
    }

    async fn state(&self) -> HealthState {
        let (organisation, project) = (&self.project.organisation, &self.project.id);
        let rows = self.engine.store.health_of(organisation, project).await;
        HealthState::from_text(&rows.unwrap()[0].state).unwrap()
    }

    /// What the project's history says of its endpoints.
    async fn history(&self) -> Vec<String> {
        let mut connection = AnyConnection::connect(&self.database).await.unwrap();
        let read = sqlx::query_as::<_, (String,)>(
            "SELECT kind FROM audit_event WHERE incident IS NULL ORDER BY number",
        );
        let rows = read.fetch_all(&mut connection).await.unwrap();
        rows.into_iter().map(|(kind,)| kind).collect()
    }
}

on_both! {
    async fn an_outage_is_one_incident_and_one_message_however_often_we_restart(world) {
        let mut world = world;
        world.watched_once().await;
        world.minutes(2, 200).await;
        world.minutes(1, 503).await;
        assert_eq!(world.inbox.events(), Vec::<String>::new());
        world.minutes(20, 503).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
        let text = world.inbox.0.lock().unwrap()[0]["text"].as_str().unwrap().to_owned();
        assert_eq!(text, "acme/sums: site: status 503, expected 200-299 (health)");
        let incidents = world.incidents().await;
        let failure = &incidents[0].failure;
        assert_eq!((incidents.len(), incidents[0].stage), (1, Stage::Detected));
        assert_eq!((failure.kind, failure.job.as_deref()), (FailureKind::Health, Some("site")));
        assert_eq!(failure.commit.to_string(), world.planted.repository.tip("main").unwrap().to_string());
        assert_eq!(failure.url.as_deref(), Some(world.endpoint.url("/health").as_str()));
        assert_eq!(incidents[0].wait, None);

        // Half a recovery changes nothing, a whole one ends it.
        world.minutes(1, 200).await;
        world.minutes(1, 503).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
        world.minutes(2, 204).await;
        assert_eq!(world.inbox.events(), ["incident-opened", "incident-closed"]);
        let incidents = world.incidents().await;
        assert_eq!(incidents[0].closed_reason, Some(ClosedReason::Recovered));
        let text = world.inbox.0.lock().unwrap()[1]["text"].as_str().unwrap().to_owned();
        assert_eq!(text, "recovered: the endpoint answers as expected again");

        // The next outage is another incident.
        world.minutes(3, 500).await;
        assert_eq!(world.inbox.events().len(), 3);
        assert_eq!(world.incidents().await.len(), 2);
        assert_eq!(world.history().await, ["health-down", "health-up", "health-down"]);
    }

    async fn a_clock_that_is_moved_back_stops_no_check(world) {
        let mut world = world;
        world.watched_once().await;
        world.minutes(1, 200).await;
        world.clock.advance_millis(86_400_000);
        world.minutes(1, 200).await;
        world.clock.advance_millis(-86_400_000);
        world.minutes(3, 503).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
    }

    async fn an_endpoint_that_comes_and_goes_tells_nobody(world) {
        let mut world = world;
        world.watched_once().await;
        for minute in 0..12 {
            world.minutes(1, if minute % 2 == 0 { 503 } else { 200 }).await;
        }
        assert_eq!(world.inbox.events(), Vec::<String>::new());
        assert_eq!(world.history().await, Vec::<String>::new());
    }

    async fn while_nothing_can_be_reached_from_here_no_endpoint_is_down(world) {
        let mut world = world;
        let gone = Server::start(|_| Reply::Bytes(Vec::new())).await;
        let also_gone = Server::start(|_| Reply::Bytes(Vec::new())).await;
        world.targets = vec![gone.url("/").parse().unwrap(), also_gone.url("/").parse().unwrap()];
        world.watched_once().await;
        world.minutes(5, 0).await;
        assert_eq!(world.inbox.events(), Vec::<String>::new());
        assert_eq!(world.state().await.phase, Phase::Up);
        // Said once, not with every check.
        assert_eq!(world.history().await, ["health-unknown"]);
        // One of the two is back, the endpoint is not: now it is the endpoint's.
        let back = Server::start(|_| answer("404 Not Found", "", "")).await;
        world.targets[1] = back.url("/").parse().unwrap();
        world.minutes(2, 0).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
        // Once it is down, our own outage does not close it, and is not asked for in vain.
        let asked = back.requests().len();
        world.minutes(2, 0).await;
        assert_eq!(back.requests().len(), asked);
        assert_eq!(world.incidents().await[0].stage, Stage::Detected);
    }

    async fn the_incident_has_the_commit_that_the_endpoint_says_it_runs(world) {
        let mut world = world;
        let check = json!([{"name": "site", "url": world.endpoint.url("/"), "failures_to_open": 1,
            "commit": {"header": "X-Commit"}}]);
        world.watched(check).await;
        world.minutes(1, 200).await;
        // It tells nothing any more, but it did.
        world.minutes(1, 0).await;
        assert_eq!(world.incidents().await[0].failure.commit.to_string(), COMMIT);
    }

    async fn what_cannot_be_told_yet_is_told_later_and_once(world) {
        let mut world = world;
        world.watched_once().await;
        world.planted.repository.rename_branch("main", "elsewhere").unwrap();
        world.minutes(4, 503).await;
        assert_eq!((world.inbox.events(), world.incidents().await.len()), (Vec::new(), 0));
        assert!(world.state().await.is_down() && world.state().await.owed().len() == 1);
        world.planted.repository.rename_branch("elsewhere", "main").unwrap();
        world.minutes(3, 503).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
        assert_eq!(world.state().await.owed(), []);
    }

    /// Break it: number outages by the moment at which they are told.
    async fn a_process_that_ends_between_telling_and_writing_that_down_tells_no_second_time(world) {
        let mut world = world;
        world.watched_once().await;
        world.planted.repository.rename_branch("main", "elsewhere").unwrap();
        world.minutes(2, 503).await;
        let rows = world.engine.store.health_of(&world.project.organisation, &world.project.id);
        let before = rows.await.unwrap().remove(0).state;
        world.planted.repository.rename_branch("elsewhere", "main").unwrap();
        world.minutes(1, 503).await;
        assert_eq!(world.inbox.events(), ["incident-opened"]);
        // As if the last write had not been made.
        let mut connection = AnyConnection::connect(&world.database).await.unwrap();
        let back = sqlx::query("UPDATE health_watch SET state = $1").bind(before);
        back.execute(&mut connection).await.unwrap();
        world.minutes(5, 503).await;
        assert_eq!((world.inbox.events().len(), world.incidents().await.len()), (1, 1));
        world.minutes(2, 200).await;
        assert_eq!(world.incidents().await[0].closed_reason, Some(ClosedReason::Recovered));
    }

    async fn several_watches_share_the_checks(world) {
        let mut world = world;
        let checks: Vec<_> = (0..20)
            .map(|number| json!({"name": format!("part {number}"), "url": world.endpoint.url(&format!("/{number}"))}))
            .collect();
        world.watched(json!(checks)).await;
        let watches = [world.watch(), world.watch(), world.watch()];
        let now = world.clock.now();
        let [one, two, three] = &watches;
        let (one, two, three) = tokio::join!(round(one, now), round(two, now), round(three, now));
        let made = [one, two, three].map(|made| made.unwrap().len());
        assert_eq!((made.iter().sum::<usize>(), world.endpoint.requests().len()), (20, 20), "{made:?}");
    }

    /// Break it: leave `lease_owner = $5` out of `store::health::REST_HEALTH`.
    async fn a_watch_that_stalled_beyond_its_lease_writes_nothing(world) {
        let mut world = world;
        world.watched_once().await;
        world.minutes(1, 200).await;
        let store = &world.engine.store;
        let lease = std::time::Duration::from_secs(10);
        let later = |seconds: i64| Millis(world.clock.now().0 + 100_000 + seconds * 1_000);
        let stalled = store.claim_health("one", later(0), lease, 5).await.unwrap().remove(0);
        assert_eq!(store.claim_health("two", later(9), lease, 5).await.unwrap(), []);
        let heir = store.claim_health("two", later(10), lease, 5).await.unwrap().remove(0);
        assert!(!store.keep_health(&stalled, "old").await.unwrap());
        assert!(!store.rest_health(&stalled, "old", later(1_000)).await.unwrap());
        store.release_health(&stalled, later(2_000)).await.unwrap();
        assert!(store.keep_health(&heir, "new").await.unwrap());
        assert!(store.rest_health(&heir, "newer", later(11)).await.unwrap());
        let again = store.claim_health("three", later(11), lease, 5).await.unwrap().remove(0);
        assert_eq!(again.state, "newer");
    }

    async fn nothing_is_asked_that_nobody_confirmed(world) {
        let mut world = world;
        world.watched_once().await;
        world.connectors.open.store(false, Ordering::SeqCst);
        assert_eq!(world.minute().await, []);
        assert_eq!(world.history().await, ["health-trouble"]);
        world.connectors.open.store(true, Ordering::SeqCst);
        let store = world.engine.store.clone();
        store.set_project_state(&world.project, ProjectState::Paused, NOW).await.unwrap();
        assert_eq!(world.minute().await, []);
        assert_eq!(world.endpoint.requests(), Vec::<String>::new());
        store.set_project_state(&world.project, ProjectState::Confirmed, NOW).await.unwrap();
        assert_eq!(world.minute().await.len(), 1);
    }

    async fn a_stored_state_that_cannot_be_read_is_left_alone(world) {
        let mut world = world;
        world.watched_once().await;
        world.minutes(1, 200).await;
        let mut connection = AnyConnection::connect(&world.database).await.unwrap();
        let newer = r#"{"version":9}"#;
        let write = sqlx::query("UPDATE health_watch SET state = $1").bind(newer);
        write.execute(&mut connection).await.unwrap();
        assert_eq!(world.minute().await, []);
        let rows = world.engine.store.health_of(&world.project.organisation, &world.project.id);
        assert_eq!(rows.await.unwrap()[0].state, newer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_redirect_is_a_failed_check_that_says_so() {
    let mut world = World::new(None).await;
    let trap = Server::start(|_| {
        answer(
            "302 Found",
            "location: http://169.254.169.254/latest/meta-data/\r\n",
            "",
        )
    })
    .await;
    world
        .watched(json!([{"name": "trap", "url": trap.url("/"), "failures_to_open": 1}]))
        .await;
    let checked = world.minute().await.remove(0);
    let Outcome::Failed { reason, .. } = checked.outcome else {
        panic!("{:?}", checked.outcome);
    };
    assert_eq!(
        reason,
        "169.254.169.254 is a link-local address, where metadata services are, so it is not asked"
    );
}
