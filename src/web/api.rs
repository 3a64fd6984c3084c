//! The same as the pages, as JSON.

use axum::Json;
use axum::extract::{Path, State, rejection::PathRejection};
use axum::response::{IntoResponse as _, Response};

use super::failure::Refusal;
use super::{IncidentRecord, WebState, incident_document, incidents_document, ledger_document};
use crate::id::IncidentId;

/// A path's part, or why it has none.
pub(super) type Part = Result<Path<String>, PathRejection>;

/// An incident's id in a path. One that cannot be an id is not known either.
pub(super) fn incident_id(part: Part) -> Result<IncidentId, Refusal> {
    let Path(text) = part.map_err(|_| Refusal::NoSuchIncident)?;
    text.parse().map_err(|_| Refusal::NoSuchIncident)
}

/// Reads the incident that a path names.
pub(super) async fn record(state: &WebState, part: Part) -> Result<IncidentRecord, Refusal> {
    let incident = incident_id(part)?;
    let now = state.now().await?;
    let scope = state.store.within(&state.organisation);
    let record = IncidentRecord::read(scope, &incident, now).await?;
    record.ok_or(Refusal::NoSuchIncident)
}

fn answered(answer: Result<Response, Refusal>) -> Response {
    answer.unwrap_or_else(|refusal| refusal.json())
}

/// `GET /api/v1/incidents`.
pub(super) async fn incidents(State(state): State<WebState>) -> Response {
    let rows = state.store.within(&state.organisation).incidents().await;
    answered(
        rows.map(|rows| Json(incidents_document(&rows)).into_response())
            .map_err(Refusal::from),
    )
}

/// `GET /api/v1/incidents/{id}`.
pub(super) async fn incident(State(state): State<WebState>, part: Part) -> Response {
    let record = record(&state, part).await;
    answered(record.map(|record| Json(incident_document(&record)).into_response()))
}

/// `GET /api/v1/incidents/{id}/ledger`: verified now.
pub(super) async fn ledger(State(state): State<WebState>, part: Part) -> Response {
    let found = async {
        let incident = incident_id(part)?;
        let scope = state.store.within(&state.organisation);
        let ledger = scope.ledger(&incident).await?;
        let ledger = ledger.ok_or(Refusal::NoSuchIncident)?;
        Ok(Json(ledger_document(&state.trust, &ledger)).into_response())
    };
    answered(found.await)
}

/// `GET /healthz`: the process answers.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the database can be written, too.
pub(super) async fn ready(State(state): State<WebState>) -> Response {
    match state.store.ready().await {
        Ok(()) => "ready\n".into_response(),
        Err(error) => Refusal::from(error).json(),
    }
}

/// Anything else below `/api`.
pub(super) async fn nothing() -> Response {
    Refusal::NoSuchPage.json()
}
