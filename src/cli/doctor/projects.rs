//! Each project: whether its credential opens, what the provider says of it, and how watching goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::super::hosting::Hosting;
use super::super::installation::Installation;
use super::{Finding, branch};
use crate::attest::text::shown;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::config::{BranchAnchor, PollSchedule};
use crate::connector::{Access, Condition, Connector, ConnectorError};
use crate::id::ProjectId;
use crate::onboard::{access_notes, draft_digest, replacing};
use crate::signer::CredentialSeal;
use crate::store::{Project, ProjectState, Store, WatchState};

/// How many projects the provider is asked about side by side.
// Break it: 1; a hundred projects at a slow provider then take minutes, and most are not asked about
// (`onboard::doctor::projects_are_asked_about_side_by_side_and_shown_in_their_order`).
const AT_ONCE: usize = 8;
/// How long asking about all of them may take.
const ALL_WITHIN: Duration = Duration::from_mins(1);
/// By how much a look may seem to be still to come, in seconds: clocks differ.
const AHEAD_SECONDS: i64 = 120;

/// One project.
#[derive(Debug, Serialize)]
pub(super) struct Block {
    id: ProjectId,
    full_name: String,
    state: ProjectState,
    /// What the provider says of its credential, when it was asked and answered.
    credential: Option<Credential>,
    pub(super) checks: Vec<Finding>,
}

/// What the provider says of a credential.
#[derive(Debug, Serialize)]
struct Credential {
    kind: String,
    granted: Option<Vec<String>>,
    missing: Vec<String>,
    unneeded: Vec<String>,
    untold: Vec<String>,
    expires_at: Option<String>,
}

impl From<Access> for Credential {
    fn from(access: Access) -> Self {
        Self {
            kind: access.kind,
            granted: access.granted,
            missing: access.missing,
            unneeded: access.unneeded,
            untold: access.untold,
            expires_at: access.expires_at.map(|at| at.to_string()),
        }
    }
}

impl Block {
    pub(super) fn title(&self) -> String {
        format!(
            "project {} {} ({})",
            self.id,
            shown(&self.full_name),
            self.state.as_str()
        )
    }
}

/// Every project of the database that is there. A database or keys that cannot be read are others' findings.
pub(super) async fn look(installation: &Installation, offline: bool) -> Vec<Block> {
    let Ok((store, organisation)) = installation.open_database().await else {
        return Vec::new();
    };
    let scoped = store.within(&organisation);
    let (Ok(projects), Ok(states)) = (scoped.projects().await, scoped.watch_states().await) else {
        return Vec::new();
    };
    let seal = CredentialSeal::read(&installation.configuration).ok();
    let (hosting, mut recorder) = Hosting::of(installation);
    let means = Arc::new(Means {
        hosting: (!offline).then_some(hosting),
        anchor: installation.configuration.anchor.branch.clone(),
        now: store.now().await.unwrap_or_else(|_| SystemClock.now()),
        store,
        seal,
        deadline: Instant::now() + ALL_WITHIN,
        places: Semaphore::new(AT_ONCE),
    });
    let mut looks = JoinSet::new();
    for (place, project) in projects.into_iter().enumerate() {
        let state = states.iter().find(|state| state.project == project.id);
        let (means, state) = (Arc::clone(&means), state.cloned());
        looks.spawn(async move { (place, one(&means, &project, state.as_ref()).await) });
    }
    let mut blocks = BTreeMap::new();
    while let Some(look) = looks.join_next().await {
        blocks.extend(look);
    }
    recorder.flush(&means.store, &organisation).await;
    blocks.into_values().collect()
}

/// What looking at projects needs.
struct Means {
    /// None when the provider is not asked.
    hosting: Option<Hosting>,
    /// The branch that holds checkpoints, where one is configured.
    anchor: Option<BranchAnchor>,
    now: Millis,
    store: Store,
    seal: Option<CredentialSeal>,
    deadline: Instant,
    places: Semaphore,
}

async fn one(means: &Means, project: &Project, state: Option<&WatchState>) -> Block {
    let mut block = Block {
        id: project.id.clone(),
        full_name: project.full_name.clone(),
        state: project.state,
        credential: None,
        checks: Vec::new(),
    };
    let asked = async {
        let _place = means.places.acquire().await;
        let Some(seal) = &means.seal else { return };
        let hosting = means.hosting.as_ref();
        let connector = credential(hosting, &means.store, project, seal, &mut block).await;
        if let (Some(connector), Some(anchor)) = (connector, &means.anchor)
            && branch::holds(anchor, project)
        {
            block.checks.push(branch::look(&*connector, anchor).await);
        }
    };
    if tokio::time::timeout_at(means.deadline, asked)
        .await
        .is_err()
    {
        let found = format!(
            "what it may do is not known: the provider did not answer for every project within {} s; look at the network and at github.api_url",
            ALL_WITHIN.as_secs()
        );
        block.checks.push(Finding::warning("credential", found));
    }
    block
        .checks
        .extend(state.and_then(|state| ahead(state, means.now)));
    block.checks.extend(passed(project, means.now));
    block.checks.extend(state.and_then(condition));
    if let Some(reason) = &project.frozen {
        let found = format!(
            "nothing is merged: {}; look at what landed, then run: caretaker project unfreeze {}",
            shown(reason),
            project.id
        );
        block.checks.push(Finding::warning("frozen", found));
    }
    block
}

/// Judges the credential; gives what acts for the project if the provider answered.
async fn credential(
    hosting: Option<&Hosting>,
    store: &Store,
    project: &Project,
    seal: &CredentialSeal,
    block: &mut Block,
) -> Option<Arc<dyn Connector>> {
    const CHECK: &str = "credential";
    let connector = match connector(hosting, store, project, seal).await {
        Ok(Some(connector)) => connector,
        Ok(None) => {
            let found = "opens; what it may do was not asked (--offline)";
            block.checks.push(Finding::ok(CHECK, found));
            return None;
        }
        Err(found) => {
            block.checks.push(Finding::failed(CHECK, found));
            return None;
        }
    };
    match connector.access().await {
        Ok(access) => {
            block
                .checks
                .extend(judged(&access, &project.id, SystemClock.now()));
            block.credential = Some(access.into());
            Some(connector)
        }
        Err(error) => {
            block.checks.push(unanswered(&error, &project.id));
            None
        }
    }
}

/// What acts for the project; `None` when the provider is not asked.
async fn connector(
    hosting: Option<&Hosting>,
    store: &Store,
    project: &Project,
    seal: &CredentialSeal,
) -> Result<Option<Arc<dyn Connector>>, String> {
    let sealed = store.credential(&project.id).await;
    let sealed = sealed.map_err(|error| error.to_string())?;
    let token = seal
        .open(
            &project.id,
            &draft_digest(project),
            &sealed.unwrap_or_default(),
        )
        .map_err(|error| error.to_string())?;
    hosting
        .map(|hosting| hosting.connector_of(project, token))
        .transpose()
}

/// What follows for a credential from a provider that does not say what it may do. Most errors come with their own mend.
fn unanswered(error: &ConnectorError, project: &ProjectId) -> Finding {
    const CHECK: &str = "credential";
    // Break it: let it be a failure; `onboard::as_app::doctor_does_not_blame_the_credential_for_what_is_not_its_fault` then fails.
    if error.is_transient() {
        let found = format!("opens; what it may do is not known: {error}");
        return Finding::warning(CHECK, shown(&found));
    }
    let mend = match error {
        ConnectorError::Absent { .. } => format!("; {}", replacing(project)),
        _ => String::new(),
    };
    Finding::failed(CHECK, format!("{}{mend}", shown(&error.to_string())))
}

/// What the provider says of a credential, each with its mend.
fn judged(access: &Access, project: &ProjectId, now: Millis) -> Vec<Finding> {
    let notes = access_notes(access, now, &replacing(project));
    let until = access
        .expires_at
        .map_or_else(|| "no end is known".to_owned(), |end| format!("ends {end}"));
    let what = access.granted.as_ref().map_or_else(String::new, |granted| {
        if granted.is_empty() {
            " without any scope".to_owned()
        } else {
            format!(" with {}", shown(&granted.join(", ")))
        }
    });
    let mut findings = vec![match notes.ending {
        Some(ending) => Finding::warning("credential", ending),
        None => Finding::ok("credential", format!("a {}{what}; {until}", access.kind)),
    }];
    let escaped = |text: String| shown(&text);
    match notes.missing {
        Some(missing) => findings.push(Finding::failed("missing", escaped(missing))),
        None if access.granted.is_some() => {
            findings.push(Finding::ok("missing", "nothing"));
        }
        None => {}
    }
    match notes.unneeded {
        Some(unneeded) => findings.push(Finding::warning("unneeded", escaped(unneeded))),
        None if access.granted.is_some() => {
            findings.push(Finding::ok("unneeded", "nothing"));
        }
        None => {}
    }
    let untold = notes.untold.into_iter().map(escaped);
    findings.extend(untold.map(|text| Finding::ok("untold", text)));
    findings
}

/// A last look that is still to come: the clock was moved back since.
fn ahead(state: &WatchState, now: Millis) -> Option<Finding> {
    let looked = state
        .looked_at
        .filter(|at| *at > now.plus_seconds(AHEAD_SECONDS))?;
    // Break it: say nothing (`commands::doctor::a_look_that_is_still_to_come_is_said_to_be_the_clocks_fault`).
    let found = format!(
        "its last look, at {looked}, is still to come: the database's clock was moved back. It is looked at again by itself while `caretaker serve` runs; keep the clock by a time service"
    );
    Some(Finding::warning("clock", found))
}

/// A schedule of its own that does not come any more, so that it is never looked at again.
fn passed(project: &Project, now: Millis) -> Option<Finding> {
    let schedule: PollSchedule = project.schedule.as_deref()?.parse().ok()?;
    // Break it: say nothing; a project whose schedule has an end is then watched no more, without a word
    // (`commands::doctor::a_schedule_that_has_passed_is_said`).
    let error = schedule.comes_after(now).err()?;
    let found = format!(
        "it is not looked at any more: {error} (its schedule is {}); remove it and register it again with another: caretaker project remove {}",
        shown(&schedule.to_string()),
        project.id
    );
    Some(Finding::failed("schedule", found))
}

/// How the repository can be reached, as the watch found it, unless that is fine.
fn condition(state: &WatchState) -> Option<Finding> {
    (state.condition != Condition::Fine).then(|| {
        let mut found = state.condition.as_str().to_owned();
        for (before, text) in [(": ", &state.detail), ("; ", &state.mend)] {
            if let Some(text) = text {
                found.push_str(before);
                found.push_str(&shown(text));
            }
        }
        if state.condition.passes_by_itself() {
            Finding::warning("condition", found)
        } else {
            Finding::failed("condition", found)
        }
    })
}
