//! A database with one watched project, an organisation's keys, and the router over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use caretaker::approve::Principal;
use caretaker::attest::trust_root::{RoleKey, RoleKeys};
use caretaker::attest::{
    FileSigner, Label, List, Role, SecretKey, Signer as _, TrustHistory, TrustRoot,
    TrustRootDocument,
};
use caretaker::change::{Oid, Sha256Digest};
use caretaker::clock::{FixedClock, Millis};
use caretaker::id::{OrganisationId, ProjectId};
use caretaker::store::{Project, ProjectState, Store, WatchMode};
use caretaker::web::{Now, WebState, router};
use sqlx::{AnyConnection, Connection as _};

/// The moment at which every story begins.
pub(super) const NOW: Millis = Millis(1_800_000_000_000);
pub(super) const LEASE: Duration = Duration::from_mins(1);

pub(super) fn after(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

pub(super) fn oid(byte: u8) -> Oid {
    Oid::from_bytes(&[byte; 20]).unwrap()
}

pub(super) fn owner() -> Principal {
    "mailto:owner@example.org".parse().unwrap()
}

/// Everything a story needs.
pub(super) struct Scene {
    pub(super) store: Store,
    pub(super) url: String,
    pub(super) project: Project,
    pub(super) trust: TrustHistory,
    pub(super) clock: Arc<FixedClock>,
    entropy: AtomicU8,
    _folder: tempfile::TempDir,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("caretaker.db").display());
        let scene = Self {
            store: Store::open(&url).await.unwrap(),
            url,
            project: project(),
            trust: trust(),
            clock: Arc::new(FixedClock::at(NOW)),
            entropy: AtomicU8::new(10),
            _folder: folder,
        };
        scene.add_project(&scene.project).await;
        scene
    }

    pub(super) async fn add_project(&self, project: &Project) {
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

    pub(super) fn state(&self) -> WebState {
        let organisation = self.project.organisation.clone();
        let mut state = WebState::new(self.store.clone(), organisation, self.trust.clone());
        state.time = Now::Clock(self.clock.clone());
        state
    }

    pub(super) fn router(&self) -> axum::Router {
        router(self.state())
    }

    /// A connection beside the store, for doing what nobody should.
    pub(super) async fn raw(&self) -> AnyConnection {
        AnyConnection::connect(&self.url).await.unwrap()
    }

    pub(super) fn fresh(&self) -> [u8; 10] {
        [self.entropy.fetch_add(1, Ordering::SeqCst); 10]
    }

    pub(super) fn clock_now(&self) -> Millis {
        use caretaker::clock::Clock as _;
        self.clock.now()
    }

    /// Signs as a role.
    pub(super) fn sign(role: Role, statement: &[u8]) -> Vec<u8> {
        let signer = FileSigner::new(role, key(role));
        signer.sign(statement).unwrap().to_bytes().unwrap()
    }
}

pub(super) fn project() -> Project {
    Project {
        id: ProjectId::new(NOW, [2; 10]),
        organisation: OrganisationId::new(NOW, [1; 10]),
        url: "https://github.example/example/parcel".to_owned(),
        repository_id: "4711".to_owned(),
        full_name: "example/parcel".to_owned(),
        host: "github.example".to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"rules"),
        intent: "Parcel tells customers when a delivery is late.\nPrices and weights must never be rounded down.".to_owned(),
        owner: owner(),
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

fn key(role: Role) -> SecretKey {
    SecretKey::from_seed(&[role as u8 + 1; 32])
}

fn trust() -> TrustHistory {
    const YEAR: i64 = 365 * 24 * 3_600;
    let keys = |role| List::first_of([RoleKey::from_public(key(role).public(), Millis(0))]);
    let root = SecretKey::from_seed(&[100; 32]);
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
