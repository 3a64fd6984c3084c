//! A project with how watching it goes and what happened to it.

use serde_json::{Value, json};

use crate::audit::AuditRecord;
use crate::clock::Millis;
use crate::connector::Usage;
use crate::id::{OrganisationId, ProjectId};
use crate::onboard;
use crate::store::{Project, Store, WatchState};

/// Events of a project's history that are shown.
const EVENTS: u32 = 50;
/// One hour, in milliseconds.
const HOUR_MILLIS: i64 = 60 * 60 * 1000;

/// A project, and how watching it goes once it was looked at.
pub(super) struct Watching {
    pub(super) project: Project,
    pub(super) state: Option<WatchState>,
}

/// The same with the project's history, newest first.
pub(super) struct Record {
    pub(super) watching: Watching,
    pub(super) events: Vec<AuditRecord>,
}

pub(super) async fn read(
    store: &Store,
    organisation: &OrganisationId,
) -> anyhow::Result<Vec<Watching>> {
    let scoped = store.within(organisation);
    let mut states = scoped.watch_states().await?;
    let projects = scoped.projects().await?.into_iter();
    Ok(projects
        .map(|project| Watching {
            state: states
                .iter()
                .position(|state| state.project == project.id)
                .map(|place| states.swap_remove(place)),
            project,
        })
        .collect())
}

pub(super) async fn record(
    store: &Store,
    organisation: &OrganisationId,
    id: &ProjectId,
) -> anyhow::Result<Record> {
    let project = onboard::find(store, organisation, id).await?;
    let scoped = store.within(organisation);
    let states = scoped.watch_states().await?;
    let state = states.into_iter().find(|state| state.project == *id);
    Ok(Record {
        watching: Watching { project, state },
        events: scoped.project_events(id, EVENTS).await?,
    })
}

/// Requests of the present hour, and how many of them were answered with "not modified".
pub(super) fn this_hour(state: &WatchState, now: Millis) -> (u64, u64) {
    // What was counted in an hour that is over says nothing about this one.
    if now.0.saturating_sub(state.counted_from.0) < HOUR_MILLIS {
        (state.requests, state.unchanged)
    } else {
        (0, 0)
    }
}

/// What is left of the credential's limits; nothing where it is not known.
pub(super) fn budget(state: &WatchState) -> Usage {
    let text = state.budget.as_deref().unwrap_or("{}");
    serde_json::from_str(text).unwrap_or_default()
}

/// Everything that is known of the watch, for scripts.
pub(super) fn document(state: &WatchState, now: Millis) -> Value {
    let time = |at: Option<Millis>| at.map(|at| at.to_string());
    let (requests, unchanged) = this_hour(state, now);
    let budget = budget(state);
    json!({
        "next_at": state.next_at.to_string(),
        "looked_at": time(state.looked_at),
        "answered_at": time(state.answered_at),
        "condition": state.condition,
        "since": time(state.since),
        "detail": state.detail,
        "mend": state.mend,
        "lag_ms": state.lag,
        "requests": requests,
        "unchanged": unchanged,
        "counted_from": state.counted_from.to_string(),
        "budget": {
            "limit": budget.limit,
            "remaining": budget.remaining,
            "resets_at": time(budget.resets_at),
            "paused_until": time(budget.paused_until),
            "paused_for": budget.paused_for,
        },
    })
}
