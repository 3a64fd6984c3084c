//! What a worker does for an event: one commit that drafts it, appends its envelope to the incident's chain and to the log's tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use caretaker::attest::Statement;
use caretaker::attest::dsse::Envelope;
use caretaker::attest::predicate::Answer;
use caretaker::change::{Oid, Sha256Digest};
use caretaker::id::{IncidentId, OrganisationId, ProjectId};
use caretaker::incident::{Draft, Failure, FailureKind, Outcome, SignedEnvelope, Snapshot};
use caretaker::signer::{CheckpointSigner, Keyring, system_randomness};
use caretaker::store::{Claim, Commit, Observed, Project, ProjectState, Store, WatchMode};

use super::place::Place;
use crate::ledger::{Ledger, NOW, payload_of};

/// Incidents, each of about as many events: more than are appended in the time.
const INCIDENTS: u16 = 160;
const EVENTS: usize = 100;
const LEASE: Duration = Duration::from_hours(10);
const EVERY: Duration = Duration::from_secs(1);

/// What came of it.
pub(crate) struct Appended {
    pub(crate) events_per_second: f64,
    pub(crate) checkpoints: u32,
    pub(crate) slowest_checkpoint_millis: f64,
}

/// An incident that is claimed, and what is to be appended to it.
struct Story {
    claim: Claim,
    snapshot: Snapshot,
    events: Vec<(Draft, SignedEnvelope)>,
}

/// Envelopes as they are appended.
pub(crate) fn envelopes() -> Arc<Vec<Vec<u8>>> {
    Arc::new(ledger(&IncidentId::new(NOW, [1; 10])).envelopes)
}

/// Proposals that are rejected, again and again.
fn ledger(incident: &IncidentId) -> Ledger {
    let mut ledger = Ledger::new();
    ledger.incident = incident.clone();
    while ledger.envelopes.len() < EVENTS {
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(|approval| approval.answer = Answer::Reject);
    }
    ledger
}

/// Appends with so many workers, each on incidents of its own, while the log's key signs every second.
pub(crate) async fn measured(
    place: &Place,
    writers: usize,
    time: Duration,
) -> anyhow::Result<Appended> {
    let store = Store::open(&place.url).await?;
    let keys = Keyring::in_memory(None, NOW, &mut system_randomness)?;
    let organisation = keys.organisation().clone();
    let stories = stories(&store, &organisation).await?;
    let signer = CheckpointSigner::of(&keys, place.folder.path()).context("no key of the log")?;
    let (stop, appended) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let mut shares: Vec<Vec<Story>> = (0..writers).map(|_| Vec::new()).collect();
    for (turn, story) in stories.into_iter().enumerate() {
        shares[turn % writers].push(story);
    }
    let begin = Instant::now();
    let tasks: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let (store, stop, appended) = (store.clone(), Arc::clone(&stop), Arc::clone(&appended));
            tokio::spawn(async move { append(&store, share, &stop, &appended).await })
        })
        .collect();
    let (mut checkpoints, mut slowest) = (0, Duration::ZERO);
    while begin.elapsed() < time && tasks.iter().any(|task| !task.is_finished()) {
        tokio::time::sleep(EVERY).await;
        let asked = Instant::now();
        if signer.cover(&store, NOW).await?.is_some() {
            checkpoints += 1;
            slowest = slowest.max(asked.elapsed());
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let events = appended.load(Ordering::Relaxed);
    let early = tasks.iter().all(tokio::task::JoinHandle::is_finished);
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    store.close().await;
    anyhow::ensure!(!early, "too few events were prepared");
    Ok(Appended {
        events_per_second: f64::from(events) / seconds,
        checkpoints,
        slowest_checkpoint_millis: slowest.as_secs_f64() * 1_000.0,
    })
}

async fn append(
    store: &Store,
    share: Vec<Story>,
    stop: &AtomicBool,
    appended: &AtomicU32,
) -> anyhow::Result<()> {
    for story in share {
        let mut snapshot = story.snapshot;
        for (draft, envelope) in story.events {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let outcome = Outcome {
                drafts: vec![draft],
                envelope: Some(envelope),
                ..Outcome::default()
            };
            let done = store.commit(&story.claim, &snapshot, &outcome, NOW, LEASE);
            let Commit::Done(after) = done.await? else {
                anyhow::bail!("an event was not appended");
            };
            snapshot = *after;
            appended.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Opens and claims the incidents, and signs what will be appended.
async fn stories(store: &Store, organisation: &OrganisationId) -> anyhow::Result<Vec<Story>> {
    store
        .ensure_organisation(organisation, "example", NOW)
        .await?;
    let mut project = project(organisation)?;
    store.insert_project(&project, b"sealed").await?;
    store.confirm_project(&project, None, NOW).await?;
    let scope = store.within(organisation);
    project = scope
        .project(&project.id)
        .await?
        .context("no such project")?;
    for number in 0..INCIDENTS {
        let [high, low] = number.to_be_bytes();
        let id = IncidentId::new(NOW, [high, low, 0, 0, 0, 0, 0, 0, 0, 1]);
        let failure = failure(number)?;
        let observed = store.observe(&project, &failure, None, &id, NOW).await?;
        anyhow::ensure!(observed == Observed::Opened(id), "{observed:?}");
    }
    let mut stories = Vec::new();
    while let Some(claim) = store.claim("bench", NOW, LEASE).await? {
        let snapshot = scope.snapshot(&claim.incident, NOW).await?;
        let envelopes = ledger(&claim.incident).envelopes;
        stories.push(Story {
            snapshot: snapshot.context("no such incident")?,
            events: (0..).zip(envelopes).map(event).collect::<Result<_, _>>()?,
            claim,
        });
    }
    Ok(stories)
}

fn event((seq, envelope): (u64, Vec<u8>)) -> anyhow::Result<(Draft, SignedEnvelope)> {
    let statement = payload_of(&envelope);
    let draft = Draft {
        seq,
        role: Statement::parse(&statement)?.role(),
        pae: Envelope::parse(&envelope)?.digest(),
        statement,
    };
    Ok((draft, SignedEnvelope { seq, envelope }))
}

fn project(organisation: &OrganisationId) -> anyhow::Result<Project> {
    Ok(Project {
        id: ProjectId::new(NOW, [1; 10]),
        organisation: organisation.clone(),
        url: "https://github.example/example/shop".to_owned(),
        repository_id: "4711".to_owned(),
        full_name: "example/shop".to_owned(),
        host: "github.example".to_owned(),
        rules: "denied: []\n".to_owned(),
        rules_digest: Sha256Digest::of(b"rules"),
        intent: "Keep it working.".to_owned(),
        owner: "mailto:owner@example.org".parse()?,
        state: ProjectState::Draft,
        frozen: None,
        draft_digest: Sha256Digest::of(b"draft"),
        created_at: NOW,
        confirmed_at: None,
        watch: WatchMode::Ci,
        health: "[]".to_owned(),
        schedule: None,
        removed_at: None,
    })
}

fn failure(number: u16) -> anyhow::Result<Failure> {
    Ok(Failure {
        kind: FailureKind::Code,
        workflow_id: 7,
        workflow: Some("ci".to_owned()),
        scope: "push".to_owned(),
        base_ref: "main".to_owned(),
        job: Some(format!("job-{number}")),
        job_id: Some(9),
        run_id: 100,
        attempt: 1,
        commit: Oid::from_bytes(&[4; 20])?,
        url: None,
        detail: None,
    })
}
