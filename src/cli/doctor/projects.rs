//! Each project: whether its credential opens, what the provider says of it, and how watching goes.

use serde::Serialize;

use super::super::hosting::Hosting;
use super::super::installation::Installation;
use super::Finding;
use crate::attest::text::shown;
use crate::clock::{Clock as _, Millis, SystemClock};
use crate::connector::{Access, Condition, ConnectorError};
use crate::id::ProjectId;
use crate::onboard::{access_notes, draft_digest, replacing};
use crate::signer::CredentialSeal;
use crate::store::{Project, ProjectState, Store, WatchState};

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
    let hosting = (!offline).then_some(&hosting);
    let mut blocks = Vec::new();
    for project in projects {
        let state = states.iter().find(|state| state.project == project.id);
        let seal = seal.as_ref();
        blocks.push(one(hosting, &store, &project, state, seal).await);
    }
    recorder.flush(&store, &organisation).await;
    blocks
}

async fn one(
    hosting: Option<&Hosting>,
    store: &Store,
    project: &Project,
    state: Option<&WatchState>,
    seal: Option<&CredentialSeal>,
) -> Block {
    let mut block = Block {
        id: project.id.clone(),
        full_name: project.full_name.clone(),
        state: project.state,
        credential: None,
        checks: Vec::new(),
    };
    if let Some(seal) = seal {
        credential(hosting, store, project, seal, &mut block).await;
    }
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

async fn credential(
    hosting: Option<&Hosting>,
    store: &Store,
    project: &Project,
    seal: &CredentialSeal,
    block: &mut Block,
) {
    const CHECK: &str = "credential";
    let failed = |found: String| Finding::failed(CHECK, found);
    let sealed = match store.credential(&project.id).await {
        Ok(sealed) => sealed.unwrap_or_default(),
        Err(error) => return block.checks.push(failed(error.to_string())),
    };
    let opened = seal.open(&project.id, &draft_digest(project), &sealed);
    let token = match opened {
        Ok(token) => token,
        Err(error) => return block.checks.push(failed(error.to_string())),
    };
    let Some(hosting) = hosting else {
        let found = "opens; what it may do was not asked (--offline)";
        return block.checks.push(Finding::ok(CHECK, found));
    };
    let connector = match hosting.connector_of(project, token) {
        Ok(connector) => connector,
        Err(reason) => return block.checks.push(failed(reason)),
    };
    match connector.access().await {
        Ok(access) => {
            block
                .checks
                .extend(judged(&access, &project.id, SystemClock.now()));
            block.credential = Some(access.into());
        }
        Err(error) => block.checks.push(unanswered(&error, &project.id)),
    }
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
