//! `GET /a/{token}`: exactly what an answer would approve. Looking changes nothing, whoever looks and however often.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::super::answer::{gone, token, view as view_of};
use super::super::api::Part;
use super::super::failure::Refusal;
use super::super::shown::{Link, Moment, Shown};
use super::super::{IncidentRecord, WebState};
use super::change::ChangeView;
use super::gate::GateView;
use super::incident::{project, pull_request};
use super::investigation::DiagnosisView;
use super::page;
use super::patch::{self, PatchLine};
use super::proof::{self, RunView};
use crate::attest::chain::Verdict;
use crate::audit;
use crate::clock::Millis;
use crate::store::ApprovalView;

#[derive(Template)]
#[template(path = "approval.html")]
struct ApprovalPage {
    incident: String,
    principal: Shown,
    project: Shown,
    repository: Option<Link>,
    repository_id: Shown,
    host: Shown,
    pull_request: Option<Link>,
    number: u64,
    base_ref: Shown,
    merge_base: String,
    head_ref: Shown,
    head_commit: String,
    head_tree: String,
    method: &'static str,
    title: Shown,
    body: Shown,
    change: ChangeView,
    gate: Option<GateView>,
    diagnosis: Option<DiagnosisView>,
    intent: Shown,
    patch: Vec<PatchLine>,
    runs: Vec<RunView>,
    proven: bool,
    ledger_is_valid: bool,
    expires_at: Moment,
    expires_in: String,
    request: String,
}

/// A link that cannot be used any more.
#[derive(Template)]
#[template(path = "approval_gone.html")]
struct GonePage {
    incident: String,
    title: Shown,
    digest: String,
    answer: Option<&'static str>,
    why: &'static str,
}

/// The page of a link.
pub(in super::super) async fn approval(
    State(state): State<WebState>,
    part: Part,
) -> Result<Response, Refusal> {
    let token = token(part)?;
    let link = view_of(&state, &token).await?;
    if let Some(Refusal::Gone(why)) = gone(link.state) {
        let page = page(&gone_page(&link, why))?;
        return Ok((StatusCode::GONE, page).into_response());
    }
    let now = state.now().await?;
    let scope = state.store.within(&state.organisation);
    let record = IncidentRecord::read(scope, &link.incident, now).await?;
    let record = record.ok_or(Refusal::NoSuchLink)?;
    let tests = record.snapshot.fix().map(|fix| fix.tests.clone());
    let runs = proof::runs(scope, &state.trust, &tests.unwrap_or_default()).await?;
    let valid = audit::verify(&state.trust, &record.ledger).verdict == Verdict::Valid;
    let patch = patch::patch(scope, record.snapshot.fix()).await?;
    page(&view(&link, &record, patch, runs, valid, now))
}

fn gone_page(link: &ApprovalView, why: &'static str) -> GonePage {
    GonePage {
        incident: link.incident.to_string(),
        title: Shown::line(&link.request.binding.title),
        digest: link.request.binding.change_digest().to_string(),
        answer: link.decision.map(|decision| match decision {
            crate::approve::HumanDecision::Approve => "approved",
            crate::approve::HumanDecision::Reject => "rejected",
        }),
        why,
    }
}

fn view(
    link: &ApprovalView,
    record: &IncidentRecord,
    patch: Vec<PatchLine>,
    runs: Vec<RunView>,
    ledger_is_valid: bool,
    now: Millis,
) -> ApprovalPage {
    let (request, binding) = (&link.request, &link.request.binding);
    let registered = record.project.as_ref();
    ApprovalPage {
        incident: link.incident.to_string(),
        principal: Shown::line(&request.principal),
        project: project(record),
        repository: registered.map(|project| Link::plain(&project.url)),
        repository_id: Shown::line(&binding.repository_id),
        host: Shown::line(&binding.host),
        pull_request: pull_request(record),
        number: binding.pull_request,
        base_ref: Shown::line(&binding.base_ref),
        merge_base: binding.merge_base.to_string(),
        head_ref: Shown::line(&binding.head_ref),
        head_commit: binding.head_commit.to_string(),
        head_tree: binding.head_tree.to_string(),
        method: binding.merge_method.as_str(),
        title: Shown::line(&binding.title),
        body: Shown::block(&binding.body),
        change: ChangeView::from(&binding.change),
        gate: record.snapshot.decision().map(GateView::new),
        diagnosis: record.snapshot.diagnosis().map(DiagnosisView::from),
        intent: Shown::block(registered.map_or("", |project| project.intent.as_str())),
        patch,
        proven: proof::proven(&runs),
        runs,
        ledger_is_valid,
        expires_at: Moment(link.expires_at),
        expires_in: Moment(link.expires_at).distance(now),
        request: request.digest().to_string(),
    }
}
