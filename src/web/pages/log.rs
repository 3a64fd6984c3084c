//! `GET /log`: how long the log is, what is signed of it, and who else holds that.

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::super::WebState;
use super::super::failure::Refusal;
use super::super::shown::{Moment, Shown};
use super::page;
use crate::log::SignedCheckpoint;
use crate::store::{StoredAnchor, StoredCheckpoint};

/// Receipts that are looked through: anchors that answered none of them are not listed.
const MOST_RECEIPTS: u32 = 500;

#[derive(Template)]
#[template(path = "log.html")]
struct LogPage {
    newest: Option<CheckpointView>,
    logged: u64,
    /// Whether there is more in the log than the checkpoint covers.
    behind: bool,
    anchors: Vec<AnchorView>,
    trust_roots: Vec<TrustRootView>,
    read_at: Moment,
}

struct CheckpointView {
    origin: Shown,
    size: u64,
    root: Shown,
    made_at: Moment,
}

struct AnchorView {
    kind: Shown,
    name: Shown,
    size: u64,
    anchored_at: Moment,
}

struct TrustRootView {
    version: u64,
    digest: String,
}

/// The page of the log.
pub(in super::super) async fn log(State(state): State<WebState>) -> Result<Response, Refusal> {
    let scoped = state.store.within(&state.organisation);
    let newest = scoped.newest_checkpoint().await?;
    let receipts = scoped.anchors(0, MOST_RECEIPTS).await?;
    let trust_roots = state.trust.versions().map(|root| TrustRootView {
        version: root.document().version,
        digest: root.digest().to_string(),
    });
    let logged = scoped.log_frontier().await?.size();
    page(&LogPage {
        behind: newest.as_ref().is_some_and(|newest| newest.size < logged),
        newest: newest.map(|newest| checkpoint(&newest)).transpose()?,
        logged,
        anchors: last_of_each(receipts),
        trust_roots: trust_roots.collect(),
        read_at: Moment(state.now().await?),
    })
}

fn checkpoint(stored: &StoredCheckpoint) -> Result<CheckpointView, Refusal> {
    let signed = SignedCheckpoint::parse(stored.note.as_bytes()).map_err(|error| {
        tracing::error!(%error, "the newest checkpoint of the log cannot be read");
        Refusal::Unreadable
    })?;
    let claimed = signed.claimed();
    Ok(CheckpointView {
        origin: Shown::line(claimed.origin().as_str()),
        size: claimed.head().size(),
        root: Shown::line(claimed.head().root().to_digest().to_string()),
        made_at: Moment(stored.made_at),
    })
}

/// The newest receipt of each anchor; they come newest first.
fn last_of_each(receipts: Vec<StoredAnchor>) -> Vec<AnchorView> {
    let mut seen = BTreeSet::new();
    let mut anchors: Vec<AnchorView> = Vec::new();
    for receipt in receipts {
        if seen.insert((receipt.kind.clone(), receipt.name.clone())) {
            anchors.push(AnchorView {
                kind: Shown::line(receipt.kind),
                name: Shown::line(receipt.name),
                size: receipt.size,
                anchored_at: Moment(receipt.anchored_at),
            });
        }
    }
    anchors
}
