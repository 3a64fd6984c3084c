//! `GET /`: the list.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::super::WebState;
use super::super::failure::Refusal;
use super::super::shown::{Moment, Shown};
use super::{Badge, page, stage_badge};
use crate::clock::Millis;
use crate::id::ProjectId;
use crate::store::IncidentRow;

/// How many incidents the page lists; the JSON list has all of them.
const LISTED: usize = 200;

#[derive(Template)]
#[template(path = "incidents.html")]
struct IncidentsPage {
    lines: Vec<Line>,
    /// How many older ones are not listed.
    left_out: usize,
    /// How many of the listed ones wait for a person.
    waiting: usize,
    projects: usize,
}

struct Line {
    id: String,
    title: Shown,
    project: Shown,
    stage: Badge,
    closed_reason: Option<&'static str>,
    opened_at: Moment,
    age: String,
}

/// The list of incidents.
pub(in super::super) async fn incidents(
    State(state): State<WebState>,
) -> Result<Response, Refusal> {
    let scope = state.store.within(&state.organisation);
    let now = state.now().await?;
    let rows = scope.incidents().await?;
    let projects = scope.projects().await?;
    let names: BTreeMap<&ProjectId, &str> = projects
        .iter()
        .map(|project| (&project.id, project.full_name.as_str()))
        .collect();
    let listed = rows.iter().take(LISTED);
    let lines: Vec<Line> = listed.map(|row| line(row, &names, now)).collect();
    page(&IncidentsPage {
        left_out: rows.len() - lines.len(),
        waiting: lines
            .iter()
            .filter(|line| {
                matches!(
                    line.stage.word,
                    "awaiting-approval" | "escalated" | "blocked"
                )
            })
            .count(),
        projects: projects.len(),
        lines,
    })
}

fn line(row: &IncidentRow, names: &BTreeMap<&ProjectId, &str>, now: Millis) -> Line {
    let opened_at = Moment(row.opened_at);
    let name = names.get(&row.project).copied();
    Line {
        id: row.id.to_string(),
        title: title(&row.failure),
        project: Shown::line(name.unwrap_or(row.project.as_str())),
        stage: stage_badge(row.stage),
        closed_reason: row.closed_reason.map(crate::incident::ClosedReason::as_str),
        opened_at,
        age: opened_at.distance(now),
    }
}

/// What failed where, as a title.
pub(super) fn title(failure: &crate::incident::Failure) -> Shown {
    let what = failure.job.as_deref().or(failure.workflow.as_deref());
    let what = what.unwrap_or("A run");
    Shown::line(format!("{what} failed on {}", failure.base_ref))
}
