//! `POST /a/{token}`: the one request that changes something.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};

use super::WebState;
use super::api::Part;
use super::failure::Refusal;
use crate::approve::{ApprovalToken, HumanDecision};
use crate::change::Sha256Digest;
use crate::store::{ApprovalState, ApprovalView, Consumed};

/// The largest form: a remark of 500 bytes, each of them three characters long on the way, and the fields' names.
pub(super) const LARGEST_FORM: usize = 8 << 10;
/// The longest remark, in bytes: what a signed statement takes.
const LONGEST_COMMENT: usize = 500;

/// Answers the question of a link, once.
pub(super) async fn answer(
    State(state): State<WebState>,
    part: Part,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    if is_foreign(&headers, state.public_url.as_deref()) {
        return Err(Refusal::Foreign);
    }
    let token = token(part)?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge,
        _ => Refusal::Malformed("The form was cut off.".to_owned()),
    })?;
    let view = view(&state, &token).await?;
    let form = Form::read(&headers, &body)?;
    if let Some(gone) = gone(view.state) {
        return Err(gone);
    }
    // Break it: drop this comparison; `web::answers::a_form_for_another_question_answers_nothing` then fails.
    if form.request != view.request.digest() {
        let what = "The form is not for the question that this link asks.";
        return Err(Refusal::Malformed(what.to_owned()));
    }
    let now = state.now().await?;
    let comment = form.comment.as_deref();
    // What was looked at above may be over by now: only the store's one conditional update decides.
    match state
        .store
        .consume(&token, form.decision, comment, now)
        .await?
    {
        Consumed::Done { incident } => {
            tracing::info!(%incident, decision = form.decision.as_str(), "an approval link was used");
            Ok(Redirect::to(&format!("/incidents/{incident}#approve")).into_response())
        }
        Consumed::Gone => Err(Refusal::Gone(USED)),
        Consumed::Unknown => Err(Refusal::NoSuchLink),
    }
}

const USED: &str = "This link cannot be used any more: it was used, replaced, or has expired.";

/// What a link that is not live answers.
pub(super) const fn gone(state: ApprovalState) -> Option<Refusal> {
    match state {
        ApprovalState::Live => None,
        ApprovalState::Used => Some(Refusal::Gone("This link was used already.")),
        ApprovalState::Revoked => Some(Refusal::Gone(
            "This link was revoked: a newer one replaces it, or the incident is over.",
        )),
        ApprovalState::Expired => Some(Refusal::Gone(
            "This link has expired; nobody answered in time.",
        )),
    }
}

/// The hash of the token in a path; the token itself goes no further.
pub(super) fn token(part: Part) -> Result<ApprovalToken, Refusal> {
    let malformed = || {
        let what = "This is not an approval link: what comes after /a/ has to be 43 letters, digits, - and _.";
        Refusal::Malformed(what.to_owned())
    };
    let Path(text) = part.map_err(|_| malformed())?;
    text.parse().map_err(|_| malformed())
}

/// What a link is for. A link of another organisation is not known here.
pub(super) async fn view(state: &WebState, token: &ApprovalToken) -> Result<ApprovalView, Refusal> {
    let now = state.now().await?;
    let view = state.store.approval_by_token(&token.hash(), now).await?;
    view.filter(|view| view.organisation == state.organisation)
        .ok_or(Refusal::NoSuchLink)
}

/// Whether a browser says that the form comes from elsewhere. Since no referrer is sent, browsers name the origin of our own
/// forms `null`; then what they say of the sites in `Sec-Fetch-Site` counts.
pub(super) fn is_foreign(headers: &HeaderMap, public_url: Option<&str>) -> bool {
    let text =
        |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    if !matches!(site, None | Some("same-origin" | "none")) {
        return true;
    }
    match text(header::ORIGIN) {
        None | Some("null") => false,
        Some(origin) => {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let public = public_url.is_some_and(|public| origin == public.trim_end_matches('/'));
            !public && (authority.is_none() || authority != text(header::HOST))
        }
    }
}

/// The fields of the form; unknown ones are passed over.
#[derive(Debug)]
struct Form {
    decision: HumanDecision,
    request: Sha256Digest,
    comment: Option<String>,
}

impl Form {
    fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal> {
        let kind = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
        if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
        {
            return malformed("The answer is not a form (application/x-www-form-urlencoded).");
        }
        let fields: Vec<(String, String)> =
            url::form_urlencoded::parse(body).into_owned().collect();
        let only = |name: &str| {
            let mut found = fields.iter().filter(|(field, _)| field == name);
            match (found.next(), found.next()) {
                (Some(_), Some(_)) => malformed(&format!("The field `{name}` is there twice.")),
                (found, _) => Ok(found.map(|(_, value)| value.as_str())),
            }
        };
        let decision = match only("decision")? {
            Some("approve") => HumanDecision::Approve,
            Some("reject") => HumanDecision::Reject,
            _ => return malformed("The field `decision` has to be `approve` or `reject`."),
        };
        let request = only("request")?.and_then(|text| text.parse().ok());
        let Some(request) = request else {
            return malformed(
                "The field `request` has to be the digest of the question, as the form has it.",
            );
        };
        Ok(Self {
            decision,
            request,
            comment: comment(only("comment")?)?,
        })
    }
}

/// A remark as it is kept: line breaks as everywhere else, nothing around it, nothing when it is empty.
fn comment(text: Option<&str>) -> Result<Option<String>, Refusal> {
    let text = text.unwrap_or_default().replace("\r\n", "\n");
    let text = text.trim();
    if text.len() > LONGEST_COMMENT {
        return malformed(&format!(
            "The remark has {} bytes; at most {LONGEST_COMMENT} are signed.",
            text.len()
        ));
    }
    if text.contains('\0') {
        return malformed("The remark contains a NUL.");
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn malformed<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::Malformed(what.to_owned()))
}
