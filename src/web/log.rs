//! The organisation's log as C2SP tlog-tiles describes it, below `/log`, and bundles of single incidents. Everything is computed
//! from the database at each request; whoever fetches verifies it without believing this server.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use super::WebState;
use super::api::{Part, incident_id};
use super::failure::Refusal;
use crate::attest::chain::Verdict;
use crate::audit;
use crate::log::{SignedCheckpoint, TileId};

/// `GET /log/checkpoint`: the newest one, with what witnesses have said of it so far.
pub(super) async fn checkpoint(State(state): State<WebState>) -> Result<Response, Refusal> {
    let newest = newest(&state).await?;
    Ok(plain(newest.to_string()))
}

/// `GET /log/tile/…`: a tile of hashes or a bundle of entries, within the newest checkpoint.
pub(super) async fn tile(State(state): State<WebState>, part: Part) -> Result<Response, Refusal> {
    let Path(rest) = part.map_err(|_| Refusal::NoSuchPage)?;
    let tile = TileId::parse(&format!("tile/{rest}")).map_err(|_| Refusal::NoSuchPage)?;
    let size = newest(&state).await?.claimed().head().size();
    // Only what the checkpoint covers: a leaf that is not signed for could still be withdrawn.
    if !tile.is_within(size) {
        return Err(Refusal::NoSuchPage);
    }
    let scoped = state.store.within(&state.organisation);
    let bytes = scoped.log_file(tile).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

/// `GET /log/root/<version>.json`: a version of the trust root. Whoever pins one by its digest can take it from anywhere.
pub(super) async fn trust_root(
    State(state): State<WebState>,
    part: Part,
) -> Result<Response, Refusal> {
    let Path(name) = part.map_err(|_| Refusal::NoSuchPage)?;
    let found = state
        .trust
        .versions()
        .find(|root| name == format!("{}.json", root.document().version));
    let bytes = found.and_then(|root| root.to_bytes().ok());
    let bytes = bytes.ok_or(Refusal::NoSuchPage)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response())
}

/// `GET /incidents/{id}/ledger.caretaker`: what a stranger needs to verify it. Only of a ledger that verifies.
pub(super) async fn bundle(State(state): State<WebState>, part: Part) -> Result<Response, Refusal> {
    let incident = incident_id(part)?;
    let scoped = state.store.within(&state.organisation);
    let ledger = scoped.ledger(&incident).await?;
    let ledger = ledger.ok_or(Refusal::NoSuchIncident)?;
    let report = audit::verify(&state.trust, &ledger);
    if report.verdict != Verdict::Valid {
        return Err(Refusal::NotValid);
    }
    let places = scoped.log_places(&incident).await?;
    let needed = places.iter().map(|(_, place)| place + 1).max().unwrap_or(0);
    // What witnesses have seen is worth more than what is newest.
    let checkpoint = match scoped.best_cosigned(needed).await? {
        Some(cosigned) => cosigned,
        None => newest(&state).await?,
    };
    if places.len() != ledger.rows.len() || needed > checkpoint.claimed().head().size() {
        return Err(Refusal::NotLogged);
    }
    let documents = ledger.evidence.documents();
    let mut contents = scoped.bundle(&ledger, documents, &checkpoint).await?;
    for root in state.trust.versions() {
        let bytes = root.to_bytes().map_err(|_| Refusal::Unreadable)?;
        contents.trust_roots.push((root.document().version, bytes));
    }
    let bytes = contents.write().map_err(|_| Refusal::Unreadable)?;
    let disposition = format!("attachment; filename=\"{incident}.caretaker\"");
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, bytes).into_response())
}

async fn newest(state: &WebState) -> Result<SignedCheckpoint, Refusal> {
    let scoped = state.store.within(&state.organisation);
    let newest = scoped.newest_checkpoint().await?;
    let newest = newest.ok_or(Refusal::NotLogged)?;
    Ok(scoped.cosigned(&newest).await?)
}

fn plain(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
