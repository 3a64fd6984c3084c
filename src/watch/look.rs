//! One look at one project: its runs, now and then the repository itself and its workflows, and what follows for the next look.

mod telling;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) use self::telling::LimitsTold;
use self::telling::tell;
use super::memory::Memory;
use super::pace::{Allowance, Shown, next_look};
use super::poll::{PollReport, WatchError, is_due, poll};
use super::record::StoreObservations;
use super::silence;
use super::standing::{Standing, of_error, of_repository};
use crate::attest::keys::FillError;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::config::{Poll, PollSchedule, rules_from_yaml};
use crate::connector::{Condition, Connector, ConnectorError, Usage};
use crate::gate::Rules;
use crate::id::{Entropy, IncidentId};
use crate::store::{Look, Looked, Project, Store, StoreError, WatchMode};
use crate::worker::{Connectors, Time};

/// How often the repository itself is looked at, in milliseconds.
const REPOSITORY_EVERY: i64 = 10 * 60 * 1000;
/// How often its workflows are looked at, in milliseconds.
const WORKFLOWS_EVERY: i64 = 15 * 60 * 1000;
/// How often a look that goes on says so, unless another pace is asked for.
pub(super) const KEEP_EVERY: Duration = Duration::from_secs(20);
/// How many looks in a row may fail for the moment before that is shown.
const PATIENCE: u32 = 3;

/// What a look needs.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) store: Store,
    pub(super) connectors: Arc<dyn Connectors>,
    pub(super) random: fn(&mut [u8]) -> Result<(), FillError>,
    pub(super) poll: Poll,
    pub(super) time: Time,
    /// How often a look that goes on says so.
    pub(super) keep_every: Duration,
    pub(super) limits_told: Arc<LimitsTold>,
}

impl Means {
    pub(super) async fn now(&self) -> Result<Millis, StoreError> {
        match &self.time {
            Time::Database => self.store.now().await,
            Time::Clock(clock) => Ok(clock.now()),
        }
    }

    pub(super) fn new_id(&self, now: Millis) -> Result<IncidentId, FillError> {
        let mut entropy = Entropy::default();
        (self.random)(&mut entropy)?;
        Ok(IncidentId::new(now, entropy))
    }

    /// Any number; without randomness projects come at the same time, which is no reason to fail.
    fn chance(&self) -> u32 {
        let mut bytes = [0; 4];
        (self.random)(&mut bytes).map_or(0, |()| u32::from_be_bytes(bytes))
    }
}

/// What is remembered of a project between two looks.
#[derive(Default)]
pub(super) struct Watched {
    memory: Memory,
    /// The watched branch, by the digest of the rules that say so.
    base: Option<(Sha256Digest, String)>,
    allowance: Option<Allowance>,
    failures: u32,
    /// How the repository said it was, and when.
    repository: Option<(Standing, Millis)>,
    workflows_at: Option<Millis>,
    /// People were told of the limit that lasts.
    limit_told: bool,
    /// When the newest scheduled run of each workflow began.
    pub(super) scheduled: BTreeMap<u64, Millis>,
}

impl Watched {
    /// When the project may be looked at: its own schedule is its limit, without one its allowance is.
    pub(super) fn allowed_at(&self, poll: &Poll, project: &Project, now: Millis) -> Millis {
        if project.schedule.is_some() || poll.schedule.is_some() {
            return now;
        }
        self.allowance
            .map_or(now, |allowance| allowance.spent(poll, now).ready_at(poll))
    }

    /// How the repository itself said it was.
    fn standing(&self) -> Standing {
        let said = self.repository.as_ref();
        said.map_or_else(Standing::default, |(standing, _)| standing.clone())
    }

    /// The newest run that was seen.
    pub(super) fn newest(&self) -> u64 {
        self.memory.newest().unwrap_or_default()
    }
}

/// A look that has ended.
pub(super) struct Finished {
    pub(super) look: Look,
    pub(super) watched: Watched,
    pub(super) looked: Looked,
    pub(super) report: Option<PollReport>,
}

/// Why a look showed nothing.
struct Trouble {
    standing: Standing,
    /// Not to be looked at before.
    until: Option<Millis>,
    /// It may pass by itself.
    transient: bool,
}

/// Looks at a project.
pub(super) async fn look(
    means: Arc<Means>,
    look: Look,
    mut watched: Watched,
    began: Millis,
) -> Finished {
    let project = &look.project;
    let connector = means.connectors.of(project).await;
    let usage = || {
        connector
            .as_ref()
            .map_or_else(|_| Usage::default(), |it| it.usage())
    };
    let before = usage();
    let mut report = None;
    let outcome = match &connector {
        Ok(connector) => {
            let connector = &**connector;
            let seen = seen(&means, project, &mut watched, connector, began, &mut report);
            keeping(&means, &look, seen).await
        }
        Err(reason) => Err(own_fault(reason.clone())),
    };
    let usage = usage();
    // Break it: count all requests; a worker that merges meanwhile then spends the allowance of the watch
    // (`watch::leases::what_a_worker_asks_meanwhile_is_not_counted_as_watching`).
    let requests = usage.watching.saturating_sub(before.watching);
    let now = means.now().await.unwrap_or(began);
    let allowance = watched.allowance.get_or_insert(Allowance::full(now));
    allowance.spend(&means.poll, requests, now);
    let allowed_at = allowance.ready_at(&means.poll);
    let (standing, until) = settled(&look, &mut watched, outcome);
    let credential = usage.credential.as_deref();
    let told = (&standing, until, credential.unwrap_or(project.id.as_str()));
    tell(&means, &look, &mut watched, told, report.as_ref(), now).await;
    let own: Option<PollSchedule> = project
        .schedule
        .as_deref()
        .and_then(|text| text.parse().ok());
    let shown = Shown {
        busy: watched.memory.is_busy(),
        // The runs were read: whatever else was not, they are read again as soon as ever.
        condition: if report.is_some() {
            watched.standing().condition
        } else {
            at_least_failing(&standing)
        },
        failures: watched.failures,
        until,
    };
    let mut next_at = next_look(&means.poll, own.as_ref(), shown, now, means.chance());
    if own.is_none() && means.poll.schedule.is_none() {
        next_at = next_at.max(allowed_at);
    }
    let looked = Looked {
        began,
        now,
        next_at,
        answered: report.is_some(),
        condition: standing.condition,
        detail: standing.detail,
        mend: standing.mend,
        lag: report.as_ref().and_then(|report| report.lag),
        requests,
        unchanged: usage.unchanged.saturating_sub(before.unchanged),
        budget: usage,
    };
    Finished {
        look,
        watched,
        looked,
        report,
    }
}

/// A look that takes its time keeps its project meanwhile: another process would take it over, take its time too, and nothing
/// would ever be shown.
async fn keeping<T>(means: &Means, look: &Look, seen: impl Future<Output = T>) -> T {
    let keep = async {
        loop {
            tokio::time::sleep(means.keep_every).await;
            let kept = match means.now().await {
                Ok(now) => means.store.keep_look(look, now).await,
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                tracing::warn!(project = %look.project.id, %error, "another process may take the project over");
            }
        }
    };
    // Break it: only await what is seen; another process takes a project over whose look takes longer than a minute
    // (`watch::leases::a_long_look_says_again_and_again_that_it_goes_on`).
    tokio::select! {
        seen = seen => seen,
        () = keep => std::future::pending().await,
    }
}

/// How the project stands after a look, and before when it is not to be looked at again.
fn settled(
    look: &Look,
    watched: &mut Watched,
    outcome: Result<(), Trouble>,
) -> (Standing, Option<Millis>) {
    let Err(trouble) = outcome else {
        watched.failures = 0;
        return (watched.standing(), None);
    };
    watched.failures = watched.failures.saturating_add(1);
    let shown = !trouble.transient || watched.failures >= PATIENCE;
    let standing = if shown {
        trouble.standing
    } else {
        remembered(look)
    };
    (standing, trouble.until)
}

/// A first failure is not shown yet, but the pace follows it.
fn at_least_failing(standing: &Standing) -> Condition {
    match standing.condition {
        Condition::Fine => Condition::Unreachable,
        other => other,
    }
}

fn remembered(look: &Look) -> Standing {
    Standing {
        condition: look.condition,
        detail: look.detail.clone(),
        mend: look.mend.clone(),
    }
}

/// Everything that one look reads and writes. What the poll did is reported even when something after it fails.
async fn seen(
    means: &Means,
    project: &Project,
    watched: &mut Watched,
    connector: &dyn Connector,
    now: Millis,
    report: &mut Option<PollReport>,
) -> Result<(), Trouble> {
    let base = base(project, watched).map_err(own_fault)?;
    let due = |at: Option<Millis>, every| at.is_none_or(|at| is_due(at, every, now));
    if due(
        watched.repository.as_ref().map(|(_, at)| *at),
        REPOSITORY_EVERY,
    ) {
        let view = connector.repository().await;
        let view = view.map_err(|error| trouble(project, &error))?;
        watched.repository = Some((of_repository(project, &view), now));
    }
    if project.watch == WatchMode::Health {
        *report = Some(PollReport::default());
        return Ok(());
    }
    let polled = runs(means, project, watched, (connector, &base), now).await?;
    keep_newest(&mut watched.scheduled, &polled.scheduled);
    let unanswered = polled.unanswered.clone();
    // Break it: report it at the end only; what the runs said of themselves is then never told
    // (`watch::conditions::what_the_runs_said_is_told_though_the_workflows_do_not_answer`).
    let report = report.insert(polled);
    if due(watched.workflows_at, WORKFLOWS_EVERY) {
        let mut odd = Vec::new();
        let place = (connector, base.as_str());
        let looked = silence::look(means, project, watched, place, now, &mut odd).await;
        // Break it: leave it to the log; nobody then learns that a workflow's silence is not watched
        // (`watch::silence::a_workflow_that_cannot_be_numbered_is_said_once`).
        odd.retain(|words| watched.memory.is_news(words));
        let remark = |words: &String| format!("{words}; whether it falls silent is not watched");
        report.remarks.extend(odd.iter().map(remark));
        looked.map_err(|error| of_watch(project, &error))?;
        watched.workflows_at = Some(now);
    }
    unanswered.map_or(Ok(()), |error| Err(trouble(project, &error)))
}

/// An old run that is seen late takes no newer one's place.
fn keep_newest(known: &mut BTreeMap<u64, Millis>, seen: &BTreeMap<u64, Millis>) {
    for (workflow, at) in seen {
        let newest = known.entry(*workflow).or_insert(*at);
        *newest = (*newest).max(*at);
    }
}

async fn runs(
    means: &Means,
    project: &Project,
    watched: &mut Watched,
    (connector, base): (&dyn Connector, &str),
    now: Millis,
) -> Result<PollReport, Trouble> {
    let observations = StoreObservations {
        store: &means.store,
        project,
    };
    let new_id = || means.new_id(now);
    let memory = &mut watched.memory;
    let polled = poll(
        &project.id,
        base,
        connector,
        &observations,
        memory,
        now,
        &new_id,
    );
    let error = match polled.await {
        Ok(report) => return Ok(report),
        Err(error) => error,
    };
    // Break it: leave this out; whoever lacks a permission is then told that the repository is gone
    // (`watch::conditions::a_repository_whose_runs_are_hidden_is_not_said_to_be_gone`).
    if let WatchError::Provider { source, .. } = &error
        && matches!(source, ConnectorError::Absent { .. })
    {
        // The runs may be hidden while the repository is there: what it says of itself tells more.
        watched.repository = None;
        return Err(match connector.repository().await {
            Err(error) => trouble(project, &error),
            Ok(_) => hidden_runs(project),
        });
    }
    Err(of_watch(project, &error))
}

/// The watched branch. Rules are read once; they are part of what was confirmed, and stay as they are.
fn base(project: &Project, watched: &mut Watched) -> Result<String, String> {
    let source = project.rules.as_bytes();
    let digest = Sha256Digest::of(source);
    if let Some((known, base)) = &watched.base
        && *known == digest
    {
        return Ok(base.clone());
    }
    let name = format!("rules of {}", project.id);
    let document = rules_from_yaml(source, &name).map_err(|error| error.to_string())?;
    let rules = Rules::compile(document, source).map_err(|error| format!("{name}: {error}"))?;
    let base = rules.document().base.0.clone();
    watched.base = Some((digest, base.clone()));
    Ok(base)
}

fn own_fault(reason: String) -> Trouble {
    Trouble {
        standing: Standing::new(Condition::Failing, reason, None),
        until: None,
        transient: false,
    }
}

/// The repository can be seen and its runs cannot.
fn hidden_runs(project: &Project) -> Trouble {
    let mend = format!(
        "give the token the permission to read Actions, or give another one: `caretaker project credential {} --token-env VAR`",
        project.id
    );
    let detail = format!("{} can be seen, its runs cannot", project.full_name);
    Trouble {
        standing: Standing::new(Condition::PermissionMissing, detail, Some(mend)),
        until: None,
        transient: false,
    }
}

fn trouble(project: &Project, error: &ConnectorError) -> Trouble {
    let until = match error {
        ConnectorError::Limited { until, .. } => Some(*until),
        _ => None,
    };
    Trouble {
        standing: of_error(project, error),
        until,
        transient: error.is_transient() && until.is_none(),
    }
}

fn of_watch(project: &Project, error: &WatchError) -> Trouble {
    match error {
        WatchError::Provider { source, .. } => trouble(project, source),
        WatchError::Record { .. } => own_fault(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_scheduled_run_that_is_seen_late_takes_no_newer_ones_place() {
        let mut known = BTreeMap::from([(1, Millis(50)), (2, Millis(50))]);
        let seen = BTreeMap::from([(1, Millis(40)), (2, Millis(60)), (3, Millis(10))]);
        keep_newest(&mut known, &seen);
        let newest = BTreeMap::from([(1, Millis(50)), (2, Millis(60)), (3, Millis(10))]);
        assert_eq!(known, newest);
    }
}
