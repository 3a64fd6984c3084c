//! Claim, snapshot, next, step, commit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::escalation::{Handover, hand_over};
use super::retention::{clear_sockets, sweep_evidence, sweep_sessions};
use super::retry::{Backoff, backoff, pace};
use super::steps::perform;
use super::work::Work;
use super::{Engine, Stepped};
use crate::attest::keys::FillError;
use crate::clock::Millis;
use crate::config::rules_from_yaml;
use crate::connector::Connector;
use crate::gate::Rules;
use crate::incident::{
    AuditEvent, EscalationReason, Outcome, Pause, Snapshot, Step, StepError, next,
};
use crate::notify::Notification;
use crate::store::{Claim, Commit, Project, StoreError};

/// Steps of one claim before others get their turn.
const STEPS_PER_TURN: u32 = 100;
/// Claims without a single commit after which the incident is handed over before the step is tried once more.
const MOST_CLAIMS: u32 = 20;
/// Pause of an idle worker. Work that this process itself makes is seen no later either.
const IDLE: Duration = Duration::from_millis(250);
/// Pause after the database failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How often a worker looks for evidence whose time is over.
const SWEEP: Duration = Duration::from_mins(10);
/// Messages that are delivered at once.
const NOTICES: u32 = 20;

/// What stops a turn, though never the worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] FillError),
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing was due.
    Idle,
    /// One incident was worked on until it rests.
    Worked,
}

/// Works until it is told to stop. A step under way is dropped then, as if the process had been killed, and its incident given
/// back: the next claim does the step again.
pub async fn run(engine: Arc<Engine>, name: &str, stop: CancellationToken) {
    clear_sockets(&engine).await;
    let mut swept: Option<Instant> = None;
    while !stop.is_cancelled() {
        let mut turned = turn_until(&engine, name, &stop).await;
        let sweeping = swept.is_none_or(|swept| swept.elapsed() >= SWEEP);
        if sweeping {
            swept = Some(Instant::now());
        }
        let rest = async {
            if sweeping {
                for swept in [sweep_evidence(&engine).await, sweep_sessions(&engine).await] {
                    turned = swept.and(turned);
                }
            }
            if let Err(error) = deliver_notices(&engine).await {
                turned = turned.and(Err(error));
            }
            let pause = match &turned {
                Ok(Turn::Worked) => Duration::ZERO,
                Ok(Turn::Idle) => IDLE,
                Err(error) => {
                    tracing::warn!(%error, "the worker goes on after a pause");
                    AFTER_FAILURE
                }
            };
            tokio::time::sleep(pause).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = rest => {}
        }
    }
}

/// Works until nothing is due any more.
///
/// # Errors
/// The first failure of the database.
pub async fn drain(engine: &Engine, name: &str) -> Result<(), WorkerError> {
    while turn(engine, name).await? == Turn::Worked {}
    deliver_notices(engine).await
}

/// Claims one incident that is due and works on it until it rests.
///
/// # Errors
/// The database does not answer; the lease runs out by itself then.
pub async fn turn(engine: &Engine, name: &str) -> Result<Turn, WorkerError> {
    turn_until(engine, name, &CancellationToken::new()).await
}

async fn turn_until(
    engine: &Engine,
    name: &str,
    stop: &CancellationToken,
) -> Result<Turn, WorkerError> {
    let entropy = engine.entropy()?;
    // A name of its own for each claim: a worker that lost a lease to itself must not pass for the new holder.
    let owner = format!("{name}-{}", hex::encode(entropy));
    let now = engine.now().await?;
    let claimed = engine
        .store
        .claim(&owner, now, engine.settings.lease)
        .await?;
    let Some(claim) = claimed else {
        return Ok(Turn::Idle);
    };
    let claimed = Claimed { engine, claim };
    let stopped = tokio::select! {
        worked = claimed.work() => {
            worked?;
            false
        }
        () = stop.cancelled() => true,
    };
    if stopped {
        engine.store.release(&claimed.claim).await?;
    }
    Ok(Turn::Worked)
}

/// A claimed incident.
struct Claimed<'a> {
    engine: &'a Engine,
    claim: Claim,
}

/// Whether the claim goes on.
enum Rest {
    /// With another step.
    Go,
    /// No: it rests, or somebody else has it.
    Over,
}

impl Claimed<'_> {
    async fn work(&self) -> Result<(), WorkerError> {
        // Claiming counts: a step that takes the process down with it is given up some day, too.
        let mut attempt = self.claim.attempts.max(1);
        for _ in 0..STEPS_PER_TURN {
            match self.one_step(&mut attempt).await? {
                Rest::Go => {}
                Rest::Over => return Ok(()),
            }
        }
        Ok(self.engine.store.release(&self.claim).await?)
    }

    async fn one_step(&self, attempt: &mut u32) -> Result<Rest, WorkerError> {
        let engine = self.engine;
        let now = engine.now().await?;
        let scoped = engine.store.within(&self.claim.organisation);
        let snapshot = scoped.snapshot(&self.claim.incident, now).await?;
        let project = scoped.project(&self.claim.project).await?;
        let (Some(snapshot), Some(project)) = (snapshot, project) else {
            engine.store.release(&self.claim).await?;
            return Ok(Rest::Over);
        };
        let step = next(&snapshot, now);
        match step {
            Step::Done | Step::AwaitRecovery => return self.rest(&snapshot, None, "", 0).await,
            Step::Wait { until, why } => {
                let reason = why.to_string();
                return self.rest(&snapshot, Some(until), &reason, 0).await;
            }
            _ => {}
        }
        let means = match self.means(&project).await {
            Ok(means) => means,
            Err(reason) => {
                let until = later(now, pace(*attempt));
                return self.rest(&snapshot, Some(until), &reason, *attempt).await;
            }
        };
        let work = Work {
            engine,
            project: &project,
            rules: &means.rules,
            connector: means.connector.as_ref(),
            snapshot: &snapshot,
            now,
        };
        tracing::debug!(incident = %snapshot.incident, ?step, "step");
        let stepped = if *attempt > MOST_CLAIMS {
            let reason = "the worker ended again and again while it worked on this incident";
            Err(StepError::retry(Duration::ZERO, reason))
        } else {
            match self.alive(perform(work, &step)).await? {
                Some(stepped) => stepped,
                None => return Ok(Rest::Over),
            }
        };
        self.conclude(work, &step, stepped, attempt).await
    }

    /// What the project's steps need. A failure here is the installation's, not the incident's: it never hands over.
    async fn means(&self, project: &Project) -> Result<Means, String> {
        let source = project.rules.as_bytes();
        let name = format!("the rules of project {}", project.id);
        let document = rules_from_yaml(source, &name).map_err(|error| error.to_string())?;
        let rules = Rules::compile(document, source).map_err(|error| error.to_string())?;
        let connector = self.engine.connectors.of(project).await?;
        Ok(Means { rules, connector })
    }

    /// Runs a step while extending the lease; nothing when the lease was lost, and the step is dropped where it is.
    async fn alive(
        &self,
        step: impl Future<Output = Stepped>,
    ) -> Result<Option<Stepped>, WorkerError> {
        let lease = self.engine.settings.lease;
        tokio::pin!(step);
        loop {
            tokio::select! {
                stepped = &mut step => return Ok(Some(stepped)),
                () = tokio::time::sleep(lease / 3) => {
                    let now = self.engine.now().await?;
                    if !self.engine.store.extend(&self.claim, now, lease).await? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Commits what a step came to.
    async fn conclude(
        &self,
        work: Work<'_>,
        step: &Step,
        stepped: Stepped,
        attempt: &mut u32,
    ) -> Result<Rest, WorkerError> {
        let stepped = match stepped {
            Err(StepError::Escalate {
                reason,
                detail,
                differences,
            }) => handed_over(
                work,
                Handover {
                    reason,
                    detail,
                    differences,
                    compared: None,
                },
            ),
            Err(StepError::Retry { after, reason }) => match limit(step, *attempt, after) {
                Backoff::Wait(wait) => {
                    tracing::info!(incident = %work.snapshot.incident, %reason, "the step is tried again");
                    self.record_signing(&work, step, &reason).await?;
                    let until = later(work.now, wait);
                    return self
                        .rest(work.snapshot, Some(until), &reason, *attempt)
                        .await;
                }
                Backoff::Exhausted => handed_over(work, exhausted(work.snapshot, reason)),
            },
            done => done,
        };
        match stepped {
            Ok(outcome) => {
                *attempt = 1;
                // Facts carry the moment at which they became known: tests take their time.
                let now = self.engine.now().await?;
                self.commit(work.snapshot, &outcome, now).await
            }
            // Not even the hand-over could be drafted: tried again like any step.
            Err(error) => {
                let until = later(work.now, pace(*attempt));
                let reason = error.to_string();
                self.rest(work.snapshot, Some(until), &reason, *attempt)
                    .await
            }
        }
    }

    /// A signature that fails is an event of its own: after a merge it cannot be refused any more, only told.
    async fn record_signing(
        &self,
        work: &Work<'_>,
        step: &Step,
        reason: &str,
    ) -> Result<(), WorkerError> {
        if let Step::Sign { seq } = step {
            let event = AuditEvent {
                kind: "signing-failed",
                detail: format!("position {seq}: {reason}"),
            };
            let (organisation, incident) = (&self.claim.organisation, &self.claim.incident);
            let project = &work.project.id;
            let store = &self.engine.store;
            store
                .record(
                    organisation,
                    Some(incident),
                    Some(project),
                    &event,
                    work.now,
                )
                .await?;
        }
        Ok(())
    }

    async fn commit(
        &self,
        snapshot: &Snapshot,
        outcome: &Outcome,
        now: Millis,
    ) -> Result<Rest, WorkerError> {
        let store = &self.engine.store;
        let pause = outcome.pause.clone();
        let bare = Outcome {
            pause: None,
            ..outcome.clone()
        };
        if bare != Outcome::default() {
            let lease = self.engine.settings.lease;
            match store
                .commit(&self.claim, snapshot, outcome, now, lease)
                .await?
            {
                Commit::Done(after) => {
                    self.engine.passed("commit").await;
                    self.engine.tell_stage(snapshot, &after);
                    return self.pause(&after, pause).await;
                }
                Commit::Lost => {
                    store.release(&self.claim).await?;
                    return Ok(Rest::Over);
                }
                Commit::LockHeld => {
                    let reason = "another change of the project is being merged";
                    let until = now.plus_seconds(1);
                    return self.rest(snapshot, Some(until), reason, 0).await;
                }
            }
        }
        self.pause(snapshot, pause).await
    }

    async fn pause(&self, snapshot: &Snapshot, pause: Option<Pause>) -> Result<Rest, WorkerError> {
        match pause {
            None => Ok(Rest::Go),
            Some(Pause { until, reason }) => self.rest(snapshot, Some(until), &reason, 0).await,
        }
    }

    async fn rest(
        &self,
        snapshot: &Snapshot,
        until: Option<Millis>,
        reason: &str,
        attempts: u32,
    ) -> Result<Rest, WorkerError> {
        let store = &self.engine.store;
        store
            .rest(&self.claim, snapshot.version, until, reason, attempts)
            .await?;
        Ok(Rest::Over)
    }
}

struct Means {
    rules: Rules,
    connector: Arc<dyn Connector>,
}

/// Signing is never given up: nothing goes on without it, and the hand-over would need a signature itself.
fn limit(step: &Step, attempts: u32, after: Duration) -> Backoff {
    match step {
        Step::Sign { .. } => Backoff::Wait(pace(attempts).max(after)),
        _ => backoff(attempts, after),
    }
}

/// What is said when a step was tried as often as allowed. After a merge was asked for, that its fate is unknown.
fn exhausted(snapshot: &Snapshot, reason: String) -> Handover {
    let asked = snapshot
        .active_merge()
        .is_some_and(|merge| merge.asked.is_some());
    let why = if asked {
        EscalationReason::MergeUnknown
    } else {
        EscalationReason::RetriesExhausted
    };
    Handover::new(why, reason)
}

fn handed_over(work: Work<'_>, handover: Handover) -> Stepped {
    let mut outcome = Outcome::default();
    hand_over(work, &mut outcome, handover)?;
    Ok(outcome)
}

fn later(now: Millis, wait: Duration) -> Millis {
    now.plus_millis(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

/// Delivers messages that are due. One that fails is tried again later, however often.
async fn deliver_notices(engine: &Engine) -> Result<(), WorkerError> {
    let now = engine.now().await?;
    for stored in engine.store.due_notices(now, NOTICES).await? {
        let notification = Notification::new(
            stored.event,
            stored.incident.clone(),
            Some(stored.project.clone()),
            stored.text.clone(),
        );
        match engine.notifiers.deliver(&notification).await {
            Ok(()) => engine.store.notice_delivered(stored.number, now).await?,
            Err(error) => {
                tracing::warn!(%error, "a message is delivered later");
                let next = later(now, pace(stored.attempts));
                engine
                    .store
                    .notice_failed(stored.number, Some(next))
                    .await?;
            }
        }
    }
    Ok(())
}
