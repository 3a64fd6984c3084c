//! Asking whatever is due. Several processes share the checks: each is claimed before it is made, and what it came to is kept
//! only while the claim holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::judge::{BODY_BYTES, REDIRECTS, judge};
use super::reach::SelfCheck;
use super::state::{HealthState, LastResult, Outcome, advance};
use super::tell::Endpoint;
use super::under_way::UnderWay;
use crate::attest::keys::FillError;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::config::{HealthCheck, health_checks};
use crate::id::{Entropy, ProjectId};
use crate::incident::AuditEvent;
use crate::probe::{Probe, Question};
use crate::store::{HealthClaim, Project, Store, StoreError};
use crate::worker::Connectors;

/// Checks that one process makes at a time.
const AT_ONCE: usize = 64;
/// How long a claim lasts: longer than the longest timeout, the self-check and what is told after it.
const LEASE: Duration = Duration::from_mins(2);
/// How often due checks are looked for.
const TICK: Duration = Duration::from_secs(1);
/// How often new checks are looked for, in milliseconds.
const PLAN_EVERY: i64 = 5_000;
/// After a check could not be made, for a reason of ours, in milliseconds.
const AFTER_TROUBLE: i64 = 60_000;
/// By how much a check may be planned too late before the clock must have been moved back, in milliseconds.
const CLOCKS_DIFFER: i64 = 60_000;
/// Pause after the database failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Everything that watching endpoints needs. Clones share it.
#[derive(Clone)]
pub struct HealthWatch {
    pub(super) store: Store,
    connectors: Arc<dyn Connectors>,
    probe: Arc<dyn Probe>,
    reach: Arc<SelfCheck>,
    /// What kept a check from being made or told when it was last tried, so that one that lasts is recorded once.
    troubles: Arc<Mutex<BTreeMap<(ProjectId, String), String>>>,
    pub(super) random: fn(&mut [u8]) -> Result<(), FillError>,
}

/// Why nothing is asked.
#[derive(Debug, thiserror::Error)]
pub enum HealthWatchError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] FillError),
}

/// A check that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The project.
    pub project: ProjectId,
    /// The check.
    pub name: String,
    /// What it came to.
    pub outcome: Outcome,
}

/// Makes every check that is due, and waits until they are done. What goes wrong with one is logged, and does not keep the
/// others from being made.
///
/// # Errors
/// The database does not say what is due, or there are no random bytes for a name.
pub async fn round(watch: &HealthWatch, now: Millis) -> Result<Vec<Checked>, HealthWatchError> {
    watch.plan(now).await?;
    let name = watch.name()?;
    let mut done = Vec::new();
    let mut running = Running::default();
    while watch.start(&name, &mut running, now).await? > 0 {
        while let Some(checked) = running.checks.next().await {
            done.extend(checked.flatten());
        }
    }
    done.sort_by(|left, right| (&left.project, &left.name).cmp(&(&right.project, &right.name)));
    Ok(done)
}

/// Makes checks when they are due, until told to stop. A check under way is dropped then and given back.
pub async fn run(watch: HealthWatch, stop: CancellationToken) {
    let mut running = Running::default();
    let watching = async {
        loop {
            let ticked = running.tick(&watch).await;
            let pause = ticked.map_or_else(
                |error| {
                    tracing::error!(%error, "health checks cannot be made");
                    AFTER_FAILURE
                },
                |()| TICK,
            );
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = watching => {}
    }
    running.end(&watch).await;
}

/// What one process is at.
#[derive(Default)]
struct Running {
    checks: UnderWay<Option<Checked>>,
    /// When new checks were last looked for, and whether there were any to make at all.
    planned: Option<(Millis, bool)>,
}

impl Running {
    async fn tick(&mut self, watch: &HealthWatch) -> Result<(), HealthWatchError> {
        self.checks.forget_ended();
        let now = watch.store.now().await?;
        let fresh = |at: Millis| (0..PLAN_EVERY).contains(&now.0.saturating_sub(at.0));
        let any = match self.planned {
            Some((at, any)) if fresh(at) => any,
            _ => watch.plan(now).await?,
        };
        if self.planned.is_none_or(|(at, _)| !fresh(at)) {
            self.planned = Some((now, any));
        }
        if any {
            let name = watch.name()?;
            watch.start(&name, self, now).await?;
        }
        Ok(())
    }

    /// Drops what is under way and gives it back, so that whoever comes next need not wait for the claims to end.
    async fn end(self, watch: &HealthWatch) {
        for name in self.checks.end().await {
            if let Err(error) = watch.store.give_back_health(&name).await {
                tracing::warn!(%error, "health checks cannot be given back; their claims end by themselves");
            }
        }
    }
}

impl HealthWatch {
    /// A watch of this process; `random` fills a buffer for identifiers.
    pub fn new(
        store: Store,
        connectors: Arc<dyn Connectors>,
        probe: Arc<dyn Probe>,
        reach: Arc<SelfCheck>,
        random: fn(&mut [u8]) -> Result<(), FillError>,
    ) -> Self {
        Self {
            store,
            connectors,
            probe,
            reach,
            troubles: Arc::default(),
            random,
        }
    }

    /// A name of its own for one claim.
    fn name(&self) -> Result<String, FillError> {
        let mut entropy = Entropy::default();
        (self.random)(&mut entropy)?;
        Ok(format!("health-{}", hex::encode(entropy)))
    }

    /// Plans checks of projects that were confirmed since. Says whether there is any project to watch.
    async fn plan(&self, now: Millis) -> Result<bool, StoreError> {
        let projects = self.store.health_projects().await?;
        if projects.is_empty() {
            return Ok(false);
        }
        let planned = self.store.health_names().await?.into_iter();
        let planned: BTreeMap<_, _> = planned
            .map(|(project, name, next_at)| ((project, name), next_at))
            .collect();
        let (mut missing, mut misdated) = (Vec::new(), Vec::new());
        for (project, health) in projects {
            let latest = latest(&health, now);
            for name in names(&health) {
                let latest = latest.get(&name).copied();
                let check = (project.clone(), name);
                match planned.get(&check) {
                    None => missing.push(check),
                    // Break it: leave this out; a clock that is moved back then stops the checks until it has caught up
                    // (`health::story::a_clock_that_is_moved_back_stops_no_check`).
                    Some(next_at) if latest.is_some_and(|latest| *next_at > latest) => {
                        misdated.push(check);
                    }
                    Some(_) => {}
                }
            }
        }
        if !missing.is_empty() {
            self.store.add_health(&missing, now).await?;
        }
        if !misdated.is_empty() {
            tracing::warn!(
                checks = misdated.len(),
                "the clock was moved back: health checks that were planned by it are made now"
            );
            self.store.advance_health(&misdated, now).await?;
        }
        Ok(true)
    }

    /// Claims checks that are due, as many as may run beside those that do, and begins them. Says how many.
    async fn start(
        &self,
        name: &str,
        running: &mut Running,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let room = AT_ONCE.saturating_sub(running.checks.count());
        if room == 0 {
            return Ok(0);
        }
        let claims = self.store.claim_health(name, now, LEASE, room).await?;
        let count = claims.len();
        for claim in claims {
            let watch = self.clone();
            let check = async move { watch.perform(claim, now).await };
            running.checks.begin(name, check);
        }
        Ok(count)
    }

    /// Makes one check. When that is not possible, it is tried again later, and the history says why.
    async fn perform(&self, claim: HealthClaim, now: Millis) -> Option<Checked> {
        match self.check(&claim, now).await {
            Ok(outcome) => outcome.map(|outcome| Checked {
                project: claim.project,
                name: claim.name,
                outcome,
            }),
            Err(trouble) => {
                self.note_trouble(&claim, format!("not asked: {trouble}"), now)
                    .await;
                let later = now.plus_millis(AFTER_TROUBLE);
                if let Err(error) = self.store.release_health(&claim, later).await {
                    tracing::error!(%error, "a health check cannot be given back; its claim ends by itself");
                }
                None
            }
        }
    }

    /// Asks, judges, keeps what it came to, and only then tells it.
    async fn check(&self, claim: &HealthClaim, now: Millis) -> Result<Option<Outcome>, String> {
        let words = |error: StoreError| error.to_string();
        let scoped = self.store.within(&claim.organisation);
        let project = scoped.project(&claim.project).await.map_err(words)?;
        let project = project.ok_or("its project is gone")?;
        let checks = health_checks(project.health.as_bytes(), "the stored checks");
        let checks = checks.map_err(|error| error.to_string())?;
        let check = checks.iter().find(|check| check.name == claim.name);
        let check = check.ok_or("the project has no such check any more")?;
        // Opens the project's credential, which opens only for what a person confirmed.
        // Break it: ask before it; whoever writes into the database then decides what is asked.
        let connector = self.connectors.of(&project).await?;
        let before = HealthState::from_text(&claim.state).map_err(|error| error.to_string())?;
        let outcome = self.ask(check, &before, now).await?;
        let (mut state, transitions) = advance(&before, check, &outcome, now);
        let text = |state: &HealthState| state.to_text().map_err(|error| error.to_string());
        // Kept before it is told: a process that ends in between finds it owed, with the same number.
        if !transitions.is_empty()
            && !self
                .store
                .keep_health(claim, &text(&state)?)
                .await
                .map_err(words)?
        {
            return Ok(None);
        }
        let endpoint = Endpoint {
            project: &project,
            check,
            connector: &*connector,
        };
        self.note_our_outage(&project, check, &before, &outcome, now)
            .await;
        while let Some(transition) = state.owed().first().cloned() {
            if let Err(trouble) = self.tell(&endpoint, &transition, now).await {
                self.note_trouble(claim, format!("not told yet: {trouble}"), now)
                    .await;
                break;
            }
            state.told();
        }
        if state.owed().is_empty() {
            self.troubles()
                .remove(&(claim.project.clone(), claim.name.clone()));
        }
        let next_at = next_at(check, claim, now);
        let rested = self
            .store
            .rest_health(claim, &text(&state)?, next_at)
            .await
            .map_err(words)?;
        Ok(rested.then_some(outcome))
    }

    fn troubles(&self) -> std::sync::MutexGuard<'_, BTreeMap<(ProjectId, String), String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What keeps a check from being made or told stands in the history, once while it lasts.
    async fn note_trouble(&self, claim: &HealthClaim, trouble: String, now: Millis) {
        tracing::warn!(project = %claim.project, check = claim.name, "{trouble}");
        let key = (claim.project.clone(), claim.name.clone());
        let known = self.troubles().insert(key, trouble.clone());
        if known.as_ref() == Some(&trouble) {
            return;
        }
        let event = AuditEvent {
            kind: "health-trouble",
            detail: format!("{}: {trouble}", claim.name),
        };
        let (organisation, project) = (&claim.organisation, Some(&claim.project));
        let recorded = self
            .store
            .record(organisation, None, project, &event, now)
            .await;
        if let Err(error) = recorded {
            tracing::error!(%error, "the project's history cannot be written");
        }
    }

    async fn ask(
        &self,
        check: &HealthCheck,
        before: &HealthState,
        now: Millis,
    ) -> Result<Outcome, String> {
        let follows = !check.expect.status.include_redirects();
        let question = Question {
            method: &check.method(),
            url: check.url.url(),
            headers: &check.header_map(),
            deadline: check.timeout.duration(),
            redirects: if follows { REDIRECTS } else { 0 },
            body: check.reads_body().then_some(BODY_BYTES),
        };
        let asked = self.probe.ask(&question).await;
        // Who proved to be the endpoint has answered through our connection: that is no outage of ours.
        let answered = asked.as_ref().is_ok_and(|answer| answer.authentic);
        let check = check.clone();
        // On a thread of its own: an expression over a large body takes its time, which others must not wait for.
        let judging = tokio::task::spawn_blocking(move || judge(&check, &asked, now));
        let outcome = judging.await.map_err(|error| error.to_string())?;
        Ok(match outcome {
            Outcome::Failed { reason, .. }
                if !answered && before.heeds_failures() && !self.reach.reaches_anything().await =>
            {
                Outcome::OurOutage { reason }
            }
            other => other,
        })
    }

    /// The first check of an outage of our own stands in the history.
    async fn note_our_outage(
        &self,
        project: &Project,
        check: &HealthCheck,
        before: &HealthState,
        outcome: &Outcome,
        now: Millis,
    ) {
        let last = before.last.as_ref().map(|last| last.result);
        let Outcome::OurOutage { reason } = outcome else {
            return;
        };
        if last == Some(LastResult::OurOutage) {
            return;
        }
        let detail = format!(
            "{}: {reason}; nothing else can be reached either, so it counts for nothing",
            check.name
        );
        tracing::warn!(project = %project.id, "{detail}");
        if let Err(error) = self.record(project, "health-unknown", detail, now).await {
            tracing::error!(%error, "the project's history cannot be written");
        }
    }
}

/// The names of stored checks; what is no list of checks has none, and is said when it is read whole.
fn names(health: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let named: Vec<Named> = serde_json::from_str(health).unwrap_or_default();
    let names = named.into_iter().map(|named| named.name);
    // One odd name must not keep every other check from being planned.
    names.filter(|name| !name.contains('\0')).collect()
}

/// When each check is made again at the latest, as far as its interval can be read.
fn latest(health: &str, now: Millis) -> BTreeMap<String, Millis> {
    let checks: Vec<HealthCheck> = serde_json::from_str(health).unwrap_or_default();
    let latest = |check: HealthCheck| {
        let interval = i64::try_from(check.interval.milliseconds()).unwrap_or(i64::MAX / 4);
        let pause = interval.saturating_add(interval / 10).max(AFTER_TROUBLE);
        (
            check.name,
            now.plus_millis(pause).plus_millis(CLOCKS_DIFFER),
        )
    };
    checks.into_iter().map(latest).collect()
}

/// When a check is made again: after its interval, a tenth more or less, so that checks that began together do not stay
/// together. The tenth follows from check and time, not from chance.
fn next_at(check: &HealthCheck, claim: &HealthClaim, now: Millis) -> Millis {
    let seed = format!("{}/{}/{}", claim.project, claim.name, now.0);
    let digest = Sha256Digest::of(seed.as_bytes());
    let byte = digest.as_bytes().first().copied().unwrap_or(0);
    let interval = i64::try_from(check.interval.milliseconds()).unwrap_or(i64::MAX / 2);
    let tenth = interval / 10;
    let shift = tenth * (i64::from(byte) - 128) / 128;
    now.plus_millis(interval.saturating_add(shift))
}
