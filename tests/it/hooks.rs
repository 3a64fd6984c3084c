//! Webhooks: what is believed of them, and that they can do no more than make a project due.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use caretaker::attest::trust_root::{RoleKey, RoleKeys};
use caretaker::attest::{Label, List, Role, SecretKey, TrustHistory, TrustRoot, TrustRootDocument};
use caretaker::change::Sha256Digest;
use caretaker::clock::{Clock as _, FixedClock, Millis};
use caretaker::hook::HookKey;
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::store::{
    Heard, HookDelivery, HookObject, HookVersion, Project, ProjectState, Store, WatchMode,
};
use caretaker::web::{Now, WebState, Webhooks};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection as _, Row as _};

use crate::support::postgres;

/// Runs each behaviour on both databases, each time in a database of its own.
macro_rules! on_both {
    ($($(#[$attribute:meta])* async fn $name:ident($world:ident) $body:block)*) => {$(
        mod $name {
            use super::*;

            $(#[$attribute])*
            async fn behaviour($world: World) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn sqlite() {
                behaviour(World::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn postgres() {
                if let Some(world) = World::postgres().await {
                    behaviour(world).await;
                }
            }
        }
    )*};
}

mod config;
mod delivery;
mod http;
mod program;
mod shuffle;
mod signature;
mod store;

/// The moment at which every story begins.
const NOW: Millis = Millis(1_800_000_000_000);
const HOST: &str = "github.example";
pub(crate) const SECRET: &str = "It's a Secret to Everybody";

fn after(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

/// The signature of a body, by the words of RFC 2104 as the `hmac` crate has them.
fn signed(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// A delivery's identifier, from a number.
fn guid(number: u64) -> String {
    format!("72d3162e-cc78-11e3-81ab-{number:012x}")
}

/// A `workflow_run` payload about the run 7.
fn run(repository: u64, attempt: u64, at: Millis, status: &str) -> Vec<u8> {
    let run =
        json!({"id": 7, "run_attempt": attempt, "updated_at": at.to_string(), "status": status});
    json!({"action": status, "workflow_run": run, "repository": {"id": repository}})
        .to_string()
        .into_bytes()
}

/// What a project's watch says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Watch {
    next_at: i64,
    hinted_at: Option<i64>,
    lease_owner: Option<String>,
}

/// One database with one organisation that watches repository 1.
struct World {
    store: Store,
    url: String,
    project: Project,
    clock: Arc<FixedClock>,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("caretaker.db").display());
        Self::at(url, Some(folder)).await
    }

    async fn postgres() -> Option<Self> {
        let url = postgres::schema().await?;
        Some(Self::at(url, None).await)
    }

    async fn at(url: String, folder: Option<tempfile::TempDir>) -> Self {
        let world = Self {
            store: Store::open(&url).await.unwrap(),
            url,
            project: project(1, 1),
            clock: Arc::new(FixedClock::at(NOW)),
            _folder: folder,
        };
        world.watch(&world.project).await;
        world
    }

    /// Registers and confirms a project.
    async fn watch(&self, project: &Project) {
        let organisation = &project.organisation;
        let ensured = self.store.ensure_organisation(organisation, "example", NOW);
        ensured.await.unwrap();
        let inserted = self.store.insert_project(project, b"sealed");
        inserted.await.unwrap();
        self.store
            .confirm_project(project, None, NOW)
            .await
            .unwrap();
    }

    async fn raw(&self) -> AnyConnection {
        AnyConnection::connect(&self.url).await.unwrap()
    }

    async fn run_sql(&self, statement: &'static str) -> u64 {
        let mut raw = self.raw().await;
        let done = sqlx::raw_sql(statement).execute(&mut raw).await;
        done.unwrap().rows_affected()
    }

    async fn count(&self, statement: &'static str) -> i64 {
        let mut raw = self.raw().await;
        let row = sqlx::query(statement).fetch_one(&mut raw).await;
        row.unwrap().get(0)
    }

    async fn watch_of(&self, project: &Project) -> Option<Watch> {
        let read = "SELECT next_at, hinted_at, lease_owner FROM project_watch WHERE project = $1";
        let mut raw = self.raw().await;
        let row = sqlx::query(read).bind(project.id.as_str());
        let row = row.fetch_optional(&mut raw).await.unwrap()?;
        Some(Watch {
            next_at: row.get("next_at"),
            hinted_at: row.get("hinted_at"),
            lease_owner: row.get("lease_owner"),
        })
    }

    /// When the watched project was hinted at last.
    async fn hinted_at(&self) -> Option<i64> {
        self.watch_of(&self.project).await?.hinted_at
    }

    /// Hears a version of run 7 of repository 1.
    async fn hear(&self, number: u64, version: HookVersion<'_>, now: Millis) -> Heard {
        let (id, body) = (guid(number), format!("sha256={number:064x}"));
        let delivery = HookDelivery {
            id: &id,
            body: &body,
            host: HOST,
            repositories: &[1],
            object: Some(HookObject {
                name: "workflow_run/1/7",
                version,
            }),
        };
        self.hear_of(&delivery, now).await
    }

    async fn hear_of(&self, delivery: &HookDelivery<'_>, now: Millis) -> Heard {
        let heard = self.store.hear(&self.project.organisation, delivery, now);
        heard.await.unwrap()
    }

    fn state(&self, webhooks: Option<Webhooks>) -> WebState {
        let organisation = self.project.organisation.clone();
        let mut state = WebState::new(self.store.clone(), organisation, trust());
        state.time = Now::Clock(self.clock.clone());
        state.webhooks = webhooks.map(Arc::new);
        state
    }

    fn router(&self) -> axum::Router {
        caretaker::web::router(self.state(Some(webhooks())))
    }
}

fn webhooks() -> Webhooks {
    webhooks_of(HOST)
}

/// Deliveries of a host that signs with [`SECRET`].
pub(crate) fn webhooks_of(host: &str) -> Webhooks {
    Webhooks::new(HookKey::new(SECRET.as_bytes()).unwrap(), host.to_owned())
}

fn project(organisation: u8, number: u8) -> Project {
    Project {
        id: ProjectId::new(NOW, [number; 10]),
        organisation: OrganisationId::new(NOW, [organisation; 10]),
        url: format!("https://{HOST}/example/repository-{number}"),
        repository_id: number.to_string(),
        full_name: format!("example/repository-{number}"),
        host: HOST.to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"rules"),
        intent: "Keep it working.".to_owned(),
        owner: "mailto:owner@example.org".parse().unwrap(),
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(b"draft"),
        created_at: NOW,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: None,
        removed_at: None,
    }
}

pub(crate) fn trust() -> TrustHistory {
    const YEAR: i64 = 365 * 24 * 3_600;
    let key = |number| SecretKey::from_seed(&[number; 32]);
    let keys = |role: Role| {
        let public = key(role as u8 + 1).public();
        List::first_of([RoleKey::from_public(public, Millis(0))])
    };
    let root = key(100);
    let document = TrustRootDocument::first(
        Label::new("example").unwrap(),
        after(-YEAR),
        after(YEAR),
        root.public(),
        RoleKeys {
            proposer: keys(Role::Proposer),
            policy: keys(Role::Policy),
            approver: keys(Role::Approver),
            executor: keys(Role::Executor),
        },
    );
    TrustRoot::sign(&document, &[&root]).unwrap().into()
}

/// A delivery as the hosting service sends it.
fn request(event: &str, id: &str, signature: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post("/webhooks/github")
        .header("Host", "127.0.0.1:8080")
        .header("Content-Type", "application/json")
        .header("X-GitHub-Event", event)
        .header("X-GitHub-Delivery", id)
        .header("X-Hub-Signature-256", signature)
        .body(body.into())
        .unwrap()
}

/// What the router answers: status and document.
async fn answer(router: &axum::Router, request: Request<Body>) -> (u16, Value) {
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}
