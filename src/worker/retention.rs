//! Looking for what has been kept long enough: evidence, the folders of coders' sessions, and the sockets of dead ones.

use std::collections::BTreeMap;

use super::repository::on_disk;
use super::steps::let_go::{cutoff, ended_before};
use super::{Engine, WorkerError};
use crate::clock::Millis;
use crate::hook_gate::{Home, SessionId};
use crate::id::IncidentId;
use crate::incident::StepError;

/// Incidents that one look makes due, and incidents whose sessions one look goes through.
const AT_ONCE: u32 = 50;
/// For how many days the folders of a finished incident's sessions stay where `evidence.keep_days` says nothing. What is evidence of
/// them is in the database, for ever.
pub const SESSION_DAYS: u32 = 30;

/// Makes finished incidents due whose evidence was kept as long as the configuration says; the worker then lets it go like any
/// other step. Returns how many.
///
/// # Errors
/// The database does not answer.
pub async fn sweep_evidence(engine: &Engine) -> Result<u32, WorkerError> {
    let now = engine.now().await?;
    let Some(before) = cutoff(engine.settings.evidence_days, now) else {
        return Ok(0);
    };
    let (store, organisation) = (&engine.store, engine.keys.organisation());
    Ok(store
        .make_evidence_due(organisation, before, now, AT_ONCE)
        .await?)
}

/// Removes the folders of sessions whose incident was resolved or closed long enough ago. Nothing of such an incident runs any more, and
/// what its facts name was stored with them. Sessions of nobody's incident stay. Returns how many went.
///
/// # Errors
/// The database does not answer.
pub async fn sweep_sessions(engine: &Engine) -> Result<u32, WorkerError> {
    let Some(gate) = &engine.gate else {
        return Ok(0);
    };
    let now = engine.now().await?;
    let mut removed = 0;
    let mut looked = 0;
    for (incident, sessions) in by_incident(gate.home.clone()).await {
        if looked >= AT_ONCE {
            break;
        }
        if !is_over(engine, &incident, now).await? {
            continue;
        }
        looked += 1;
        removed += forgotten(gate.home.clone(), sessions).await;
    }
    Ok(removed)
}

/// Removes sockets that a worker which died has left.
pub(super) async fn clear_sockets(engine: &Engine) {
    let Some(gate) = &engine.gate else {
        return;
    };
    let home = gate.home.clone();
    let cleared = on_disk(move || home.clear_sockets().map_err(|error| later(&error))).await;
    if let Err(error) = cleared {
        tracing::warn!(?error, "sockets of sessions that died are still there");
    }
}

async fn is_over(engine: &Engine, incident: &IncidentId, now: Millis) -> Result<bool, WorkerError> {
    let days = engine.settings.evidence_days.unwrap_or(SESSION_DAYS);
    let scoped = engine.store.within(engine.keys.organisation());
    let snapshot = scoped.snapshot(incident, now).await?;
    // Break it: take an incident that runs for one that is over (`worker::remains::a_sessions_folder_stays_as_long_as_it_is_needed`).
    Ok(snapshot.is_some_and(|snapshot| ended_before(&snapshot, days, now)))
}

/// The worker's own sessions: their names begin with their incident's.
async fn by_incident(home: Home) -> BTreeMap<IncidentId, Vec<SessionId>> {
    let found = on_disk(move || home.sessions().map_err(|error| later(&error))).await;
    let sessions = found.unwrap_or_else(|error| {
        tracing::warn!(?error, "folders of sessions are not looked at");
        Vec::new()
    });
    let mut all: BTreeMap<IncidentId, Vec<SessionId>> = BTreeMap::new();
    for session in sessions {
        let mut parts = session.as_str().rsplitn(3, '-');
        let (_, purpose, incident) = (parts.next(), parts.next(), parts.next());
        let incident = incident.and_then(|incident| incident.parse().ok());
        if let (Some("diagnosis" | "fix"), Some(incident)) = (purpose, incident) {
            all.entry(incident).or_default().push(session);
        }
    }
    all
}

async fn forgotten(home: Home, sessions: Vec<SessionId>) -> u32 {
    let removed = on_disk(move || {
        let mut removed = 0;
        for session in &sessions {
            match home.forget(session) {
                Ok(()) => removed += 1,
                Err(error) => tracing::warn!(%error, "a session's folder stays"),
            }
        }
        Ok(removed)
    });
    removed.await.unwrap_or(0)
}

fn later(error: &dyn std::fmt::Display) -> StepError {
    StepError::retry(std::time::Duration::ZERO, error)
}
