//! `GET /incidents/{id}/ledger`: every signed event, and what a verification of this very read says.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::super::WebState;
use super::super::api::{Part, incident_id};
use super::super::failure::Refusal;
use super::super::shown::{Moment, Shown};
use super::{Badge, page, stage_badge, verdict_badge};
use crate::attest::SignedDocument;
use crate::attest::chain::EventReport;
use crate::audit::{self, LedgerRow, StoredLedger};
use crate::clock::Millis;
use crate::store::StoreError;

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage {
    id: String,
    stage: Badge,
    read_at: Moment,
    verdict: Badge,
    /// The trust root's version that was verified against.
    trust_root: u64,
    events: Vec<EventView>,
    failures: Vec<FailureView>,
    /// What signed gaps admit to be gone.
    gone: Vec<(u64, Shown)>,
    drafted: u64,
    /// Whether there is a bundle to download.
    exportable: bool,
}

/// One row as it is stored, and the verdict on it.
struct EventView {
    seq: i64,
    kind: Shown,
    role: Shown,
    keyid: Shown,
    event_id: Shown,
    digest: Shown,
    prev: Shown,
    occurred_at: Moment,
    verdict: Badge,
    sound: bool,
    reason: Shown,
    statement: Shown,
}

/// One thing that does not hold.
struct FailureView {
    seq: u64,
    rule: &'static str,
    expected: Shown,
    found: Shown,
}

/// A ledger that cannot even be read.
#[derive(Template)]
#[template(path = "ledger_unreadable.html")]
struct UnreadablePage {
    id: String,
    read_at: Moment,
}

/// The page of a ledger. Nothing of an earlier read is used.
pub(in super::super) async fn ledger(
    State(state): State<WebState>,
    part: Part,
) -> Result<Response, Refusal> {
    let incident = incident_id(part)?;
    let now = state.now().await?;
    match state
        .store
        .within(&state.organisation)
        .ledger(&incident)
        .await
    {
        Ok(Some(ledger)) => page(&view(&state, &ledger, now)),
        Ok(None) => Err(Refusal::NoSuchIncident),
        // A column that does not even have the right form was changed by someone else: that is a verdict, too.
        Err(error @ StoreError::Unreadable { .. }) => {
            tracing::error!(%error, "a ledger cannot be read");
            page(&UnreadablePage {
                id: incident.to_string(),
                read_at: Moment(now),
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn view(state: &WebState, ledger: &StoredLedger, now: Millis) -> LedgerPage {
    // Break it: keep the report of an earlier read; `web::ledgers::a_changed_column_shows_at_the_next_look` then fails.
    let report = audit::verify(&state.trust, ledger);
    let failures = report.failures.iter().map(|failure| FailureView {
        seq: failure.seq,
        rule: failure.rule.name(),
        expected: Shown::line(&failure.expected),
        found: Shown::line(&failure.found),
    });
    let admissions = report.admissions().into_iter();
    let gone = admissions.map(|(seq, line)| (seq, Shown::line(line)));
    let rows = ledger.rows.iter().zip(&report.events);
    LedgerPage {
        id: ledger.incident.to_string(),
        stage: stage_badge(ledger.stage),
        read_at: Moment(now),
        verdict: verdict_badge(report.verdict),
        trust_root: state.trust.newest().reference().version,
        events: rows.map(|(row, event)| view_row(row, event)).collect(),
        failures: failures.collect(),
        gone: gone.collect(),
        drafted: ledger.drafted,
        exportable: report.verdict == crate::attest::chain::Verdict::Valid,
    }
}

fn view_row(row: &LedgerRow, event: &EventReport) -> EventView {
    EventView {
        seq: row.seq,
        kind: Shown::line(&row.kind),
        role: Shown::line(&row.role),
        keyid: Shown::line(&row.keyid),
        event_id: Shown::line(&row.event_id),
        digest: Shown::line(&row.pae),
        prev: Shown::line(row.prev.as_deref().unwrap_or_default()),
        occurred_at: Moment(Millis(row.occurred_at)),
        verdict: verdict_badge(event.verdict),
        sound: event.verdict == crate::attest::chain::Verdict::Valid,
        reason: Shown::line(event.reason.as_deref().unwrap_or_default()),
        statement: statement(&row.envelope),
    }
}

/// What the envelope says, indented; nothing when it says nothing that can be read.
fn statement(envelope: &[u8]) -> Shown {
    let document = SignedDocument::parse(envelope).ok();
    let payload = document.as_ref().map(SignedDocument::unverified_payload);
    let value =
        payload.and_then(|payload| serde_json::from_slice::<serde_json::Value>(payload).ok());
    let text = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    Shown::block(&text.unwrap_or_default())
}
