//! The store, the same behaviour on SQLite and on PostgreSQL.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use caretaker::approve::{
    ApprovalRequest, ApprovalToken, Binding, MergeMethod, Principal, TokenHash,
};
use caretaker::attest::dsse::{IN_TOTO, pae};
use caretaker::attest::predicate::{
    EventBlock, Gap, Producer, Project as WatchedProject, TrustRootRef,
};
use caretaker::attest::signer::{FileSigner, Signer as _};
use caretaker::attest::{Event, Label, List, Role, SecretKey, Statement, Text};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Sha256Digest, Side,
};
use caretaker::clock::Millis;
use caretaker::id::{ApprovalId, EventId, IncidentId, OrganisationId, ProjectId};
use caretaker::incident::{
    Draft, Fact, Failure, FailureKind, NewLink, Outcome, SignedEnvelope, Snapshot,
};
use caretaker::store::{Claim, Commit, Observed, Project, ProjectState, Store, WatchMode};
use sqlx::{AnyConnection, Connection as _};

use crate::support::postgres;

/// Runs each behaviour on both databases, on several threads, each time in a database of its own.
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

mod approval;
mod by_hand;
mod commit;
mod credential;
mod history;
mod merge_lock;
mod opening;
mod plan;
mod properties;
mod schema;
mod scope;
mod tool_call;
mod watched;
mod work;

/// The moment at which every story begins.
const NOW: Millis = Millis(1_800_000_000_000);
const LEASE: Duration = Duration::from_mins(1);

fn after(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

/// One database with one organisation and one watched project.
struct World {
    store: Store,
    url: String,
    project: Project,
    entropy: AtomicU8,
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
        let store = Store::open(&url).await.unwrap();
        let mut world = Self {
            project: project(1, 1),
            store,
            url,
            entropy: AtomicU8::new(10),
            _folder: folder,
        };
        let organisation = world.project.organisation.clone();
        let ensured = world
            .store
            .ensure_organisation(&organisation, "example", NOW);
        ensured.await.unwrap();
        let inserted = world.store.insert_project(&world.project, b"sealed");
        inserted.await.unwrap();
        let confirmed = world.store.confirm_project(&world.project, None, NOW);
        confirmed.await.unwrap();
        world.project = world.reread_project().await;
        world
    }

    async fn reread_project(&self) -> Project {
        let scope = self.store.within(&self.project.organisation);
        scope.project(&self.project.id).await.unwrap().unwrap()
    }

    /// A connection beside the store, for doing what nobody should.
    async fn raw(&self) -> AnyConnection {
        AnyConnection::connect(&self.url).await.unwrap()
    }

    fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    fn fresh(&self) -> [u8; 10] {
        [self.entropy.fetch_add(1, Ordering::SeqCst); 10]
    }

    /// Opens an incident for a job of its own.
    async fn open(&self, job: &str) -> IncidentId {
        let id = IncidentId::new(NOW, self.fresh());
        let failure = failure(job, 100);
        let observed = self.store.observe(&self.project, &failure, None, &id, NOW);
        assert_eq!(observed.await.unwrap(), Observed::Opened(id.clone()));
        id
    }

    async fn snapshot(&self, incident: &IncidentId) -> Snapshot {
        let scope = self.store.within(&self.project.organisation);
        scope.snapshot(incident, NOW).await.unwrap().unwrap()
    }

    /// Opens an incident and claims it; nothing else may be due.
    async fn claimed(&self, job: &str) -> (Claim, Snapshot) {
        let incident = self.open(job).await;
        let claim = self.claim("worker-1", NOW).await.unwrap();
        assert_eq!(claim.incident, incident);
        let snapshot = self.snapshot(&incident).await;
        (claim, snapshot)
    }

    async fn claim(&self, owner: &str, now: Millis) -> Option<Claim> {
        self.store.claim(owner, now, LEASE).await.unwrap()
    }

    async fn commit(&self, claim: &Claim, snapshot: &Snapshot, outcome: &Outcome) -> Commit {
        let commit = self.store.commit(claim, snapshot, outcome, NOW, LEASE);
        commit.await.unwrap()
    }

    /// Commits what must succeed.
    async fn done(&self, claim: &Claim, snapshot: &Snapshot, outcome: Outcome) -> Snapshot {
        match self.commit(claim, snapshot, &outcome).await {
            Commit::Done(after) => *after,
            other => panic!("not committed: {other:?}"),
        }
    }

    /// An incident whose owner was asked, with the link that was sent.
    async fn asked(&self, job: &str) -> (Claim, Snapshot, ApprovalToken) {
        let (claim, snapshot) = self.claimed(job).await;
        let request = request();
        let token = named(job);
        let outcome = Outcome {
            link: Some(self.link(&request, token.hash(), after(3600))),
            facts: vec![Fact::Requested {
                request: Box::new(request),
            }],
            ..Outcome::default()
        };
        let snapshot = self.done(&claim, &snapshot, outcome).await;
        (claim, snapshot, token)
    }

    fn link(&self, request: &ApprovalRequest, token: TokenHash, expires_at: Millis) -> NewLink {
        NewLink {
            approval: ApprovalId::new(NOW, self.fresh()),
            token,
            request: request.digest(),
            principal: request.principal.clone(),
            issued_at: NOW,
            expires_at,
        }
    }
}

fn project(organisation: u8, number: u8) -> Project {
    Project {
        id: ProjectId::new(NOW, [number; 10]),
        organisation: OrganisationId::new(NOW, [organisation; 10]),
        url: format!("https://github.example/example/repository-{number}"),
        repository_id: number.to_string(),
        full_name: format!("example/repository-{number}"),
        host: "github.example".to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"rules"),
        intent: "Keep it working.".to_owned(),
        owner: principal(),
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

/// The nonce of a link, from a name.
fn named(name: &str) -> ApprovalToken {
    ApprovalToken::from_random(*Sha256Digest::of(name.as_bytes()).as_bytes())
}

fn principal() -> Principal {
    "mailto:owner@example.org".parse().unwrap()
}

fn failure(job: &str, run_id: u64) -> Failure {
    Failure {
        kind: FailureKind::Code,
        workflow_id: 7,
        workflow: Some("ci".to_owned()),
        scope: "push".to_owned(),
        base_ref: "main".to_owned(),
        job: Some(job.to_owned()),
        job_id: Some(9),
        run_id,
        attempt: 1,
        commit: oid(4),
        url: None,
        detail: None,
    }
}

fn oid(byte: u8) -> Oid {
    Oid::from_bytes(&[byte; 20]).unwrap()
}

fn request() -> ApprovalRequest {
    let side = |byte| Side {
        mode: Mode::from_bits(0o100_644).unwrap(),
        oid: oid(byte),
    };
    let change = FileChange {
        path: RepoPath::from_bytes(b"src/lib.rs").unwrap(),
        old: side(5),
        new: side(6),
    };
    let set = ChangeSet::new(ObjectFormat::Sha1, vec![change]).unwrap();
    ApprovalRequest {
        binding: Binding {
            repository_id: "1".to_owned(),
            host: "github.example".to_owned(),
            pull_request: 7,
            base_ref: "main".to_owned(),
            merge_base: oid(1),
            head_ref: "caretaker/fix".to_owned(),
            head_commit: oid(2),
            head_tree: oid(3),
            change: ChangeDocument::from(&set),
            merge_method: MergeMethod::Squash,
            title: "Fix".to_owned(),
            body: "Because.".to_owned(),
            expires_at: after(3600),
        },
        proposal: Sha256Digest::of(b"proposal"),
        decision: Sha256Digest::of(b"decision"),
        principal: principal(),
    }
}

/// The simplest chain event, as a draft at `seq` that links to `prev`. `detail` makes it another one.
fn draft(incident: &IncidentId, seq: u64, prev: Option<Sha256Digest>, detail: &str) -> Draft {
    let label = |text| Label::new(text).unwrap();
    let number = u8::try_from(seq).unwrap();
    let event = EventBlock {
        id: EventId::new(NOW, [number; 10]),
        incident: incident.clone(),
        seq,
        prev: prev.map(Into::into),
        project: WatchedProject {
            uri: Text::new(&project(1, 1).url).unwrap(),
            repository_id: label("1"),
        },
        role: Role::Executor,
        occurred_at: NOW,
        trust_root: TrustRootRef {
            version: 1,
            sha256: Sha256Digest::of(b"root"),
        },
        policy: Sha256Digest::of(b"policy").into(),
        producer: Producer {
            id: Text::new("https://caretaker.example").unwrap(),
            version: label("1"),
        },
    };
    let gap = Gap {
        event,
        reason: None,
        detail: Text::new(detail).unwrap(),
        evidence: List::new(Vec::new()).unwrap(),
    };
    let statement = Statement::event(Event::Gap(Box::new(gap))).unwrap();
    let statement = statement.draft().unwrap();
    Draft {
        seq,
        role: Role::Executor,
        pae: Sha256Digest::of(&pae(IN_TOTO, &statement)),
        statement,
    }
}

fn signed(draft: &Draft) -> SignedEnvelope {
    let signer = FileSigner::new(Role::Executor, SecretKey::from_seed(&[4; 32]));
    SignedEnvelope {
        seq: draft.seq,
        envelope: signer.sign(&draft.statement).unwrap().to_bytes().unwrap(),
    }
}
