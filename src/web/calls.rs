//! Calls of tools that wait for a person: `GET /approvals/queue` and `POST /approvals/{id}/resolve` for programs, and the form of the
//! page.
//!
//! Whoever may read the queue may answer it, since it tells the nonce that an answer repeats. With tokens configured, a request
//! brings one of them; without, the request has to come from this machine's own pages or programs.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::WebState;
use super::answer::is_foreign;
use super::api::Part;
use super::failure::Refusal;
use crate::approvals::{Approvals, AskError};
use crate::attest::text::shown;
use crate::change::Sha256Digest;
use crate::id::ToolCallId;
use crate::store::{CallAnswer, CallDecision, Resolved, ToolCall};
use crate::tool_gate::decider::{AuthMethod, Decider};

/// Who decides at this machine when no tokens are configured.
const OPERATOR: &str = "dashboard-operator";

/// A token that may answer.
#[derive(Clone)]
pub struct ScopedToken {
    /// Whose answers they are.
    pub principal: String,
    /// SHA-256 of the token.
    pub hash: Sha256Digest,
}

/// The queue, and who may answer it over HTTP.
#[derive(Clone)]
pub struct ToolCalls {
    /// The queue.
    pub approvals: Approvals,
    /// Tokens; with none, whoever is at this machine.
    pub tokens: Arc<[ScopedToken]>,
}

/// Why a request is not answered as asked: the status and the words.
type Refused = (StatusCode, &'static str);

const NO_QUEUE: Refused = (
    StatusCode::SERVICE_UNAVAILABLE,
    "tool calls cannot be answered here: the audit stream could not be opened; the server's log says why",
);
const UNNAMED: Refused = (
    StatusCode::UNAUTHORIZED,
    "send one of approvals.tokens as `Authorization: Bearer TOKEN`",
);
const ELSEWHERE: Refused = (
    StatusCode::UNAUTHORIZED,
    "without approvals.tokens the queue is for this machine's own address only",
);
const NOT_AN_ID: Refused = (
    StatusCode::BAD_REQUEST,
    "that is not an approval's id; copy it from GET /approvals/queue",
);
const UNKNOWN: Refused = (StatusCode::NOT_FOUND, "there is no such approval");
const WRONG_NONCE: Refused = (
    StatusCode::CONFLICT,
    "the nonce is missing or is another one; read the queue again",
);
const GONE: Refused = (
    StatusCode::GONE,
    "it was resolved already, or its time is over; nothing was written",
);
const MALFORMED: Refused = (
    StatusCode::UNPROCESSABLE_ENTITY,
    "send a JSON object with decision (allow, reject or always), nonce, and perhaps reason (at most 500 bytes) and pattern",
);
const BAD_PATTERN: Refused = (
    StatusCode::UNPROCESSABLE_ENTITY,
    "the pattern is not taken, so nothing was decided: it goes with decision always, has to stand for this very call, and is a path from the worktree's top (src/*.rs, docs/**) or a command's plain words (cargo test *); docs/tool-approvals.md says what it may not hold",
);
const TOO_LARGE: Refused = (
    StatusCode::PAYLOAD_TOO_LARGE,
    "more was sent than an answer can hold",
);
const UNAVAILABLE: Refused = (
    StatusCode::SERVICE_UNAVAILABLE,
    "nothing was decided: the database or the audit stream cannot be written; the server's log says why",
);

fn refusal((status, why): Refused) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

/// The queue, if it is there.
pub(super) fn queue_of(state: &WebState) -> Result<&ToolCalls, Refused> {
    state.tool_calls.as_ref().ok_or(NO_QUEUE)
}

/// Who asks. There is no default: who cannot be named cannot resolve.
fn decider(calls: &ToolCalls, state: &WebState, headers: &HeaderMap) -> Result<Decider, Refused> {
    if calls.tokens.is_empty() {
        return operator(state, headers);
    }
    let sent = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or(UNNAMED)?;
    // Hashes are compared, so how long a comparison takes tells nothing of the token.
    let hash = Sha256Digest::of(sent.trim().as_bytes());
    // Break it: let whoever sends no token be the operator (`web::calls::with_tokens_nobody_answers_without_one`).
    let token = calls.tokens.iter().find(|token| token.hash == hash);
    let token = token.ok_or(UNNAMED)?;
    let grant = format!("token:{}", &token.hash.to_string()[..16]);
    Decider::person(&token.principal, AuthMethod::ScopedToken, Some(&grant)).map_err(|_| UNNAMED)
}

/// The person at this machine. A page of another site that has its name lead here is told by the name that it uses; by the public
/// name others come, too.
pub(super) fn operator(state: &WebState, headers: &HeaderMap) -> Result<Decider, Refused> {
    if is_foreign(headers, state.public_url.as_deref()) {
        return Err(ELSEWHERE);
    }
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) {
            name
        } else {
            host
        }
    });
    // Break it: take any host (`web::calls::a_name_that_leads_here_is_not_this_machine`).
    if !matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        return Err(ELSEWHERE);
    }
    Decider::person(OPERATOR, AuthMethod::Loopback, None).map_err(|_| ELSEWHERE)
}

#[derive(Deserialize)]
pub(super) struct Asked {
    session_id: Option<String>,
}

/// `GET /approvals/queue`: what waits, with the nonce that an answer repeats.
pub(super) async fn queue(
    State(state): State<WebState>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let found = async {
        let calls = queue_of(&state)?;
        decider(calls, &state, &headers)?;
        let session = asked.map_err(|_| MALFORMED)?.0.session_id;
        let pending = calls
            .approvals
            .pending()
            .await
            .map_err(|error| unavailable(&error))?;
        let wanted = |call: &&ToolCall| {
            session
                .as_ref()
                .is_none_or(|session| *session == call.session)
        };
        let pending: Vec<Value> = pending.iter().filter(wanted).map(document).collect();
        Ok(Json(json!({ "pending": pending })).into_response())
    };
    found.await.unwrap_or_else(refusal)
}

fn document(call: &ToolCall) -> Value {
    // As JSON where it is whole, else its beginning as text.
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
    json!({
        "id": call.id.as_str(),
        "session_id": call.session,
        "task_id": call.task,
        "agent_role": call.role,
        "tool_name": call.tool,
        "tool_args": arguments,
        "created_at": call.created_at.to_string(),
        "expires_at": call.expires_at.to_string(),
        "ttl_seconds": (call.expires_at.0 - call.created_at.0) / 1000,
        "nonce": call.nonce,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    decision: CallDecision,
    nonce: Option<String>,
    reason: Option<String>,
    pattern: Option<String>,
}

/// `POST /approvals/{id}/resolve`.
pub(super) async fn resolve(
    State(state): State<WebState>,
    part: Part,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let done = async {
        let calls = queue_of(&state)?;
        let decider = decider(calls, &state, &headers)?;
        let id = call_id(part)?;
        let body = body.map_err(|_| TOO_LARGE)?;
        let sent: Sent = serde_json::from_slice(&body).map_err(|_| MALFORMED)?;
        let answer = CallAnswer {
            decision: sent.decision,
            nonce: sent.nonce.as_deref(),
            decider: &decider,
            reason: sent.reason.as_deref(),
            pattern: sent.pattern.as_deref(),
        };
        answered(calls, &id, &answer).await?;
        let decision = sent.decision;
        Ok(
            Json(json!({ "status": "resolved", "id": id.as_str(), "decision": decision }))
                .into_response(),
        )
    };
    done.await.unwrap_or_else(refusal)
}

/// `POST /approvals/{id}/answer`: the page's own form.
pub(super) async fn answer(
    State(state): State<WebState>,
    part: Part,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refusal> {
    let refused = |(status, why): Refused| match status {
        StatusCode::GONE => Refusal::Gone("It was resolved already, or its time is over."),
        StatusCode::SERVICE_UNAVAILABLE => Refusal::Unavailable,
        StatusCode::UNAUTHORIZED => Refusal::Foreign,
        _ => Refusal::Malformed(why.to_owned()),
    };
    let calls = queue_of(&state).map_err(refused)?;
    if !calls.tokens.is_empty() {
        return Err(Refusal::Foreign);
    }
    let decider = operator(&state, &headers).map_err(refused)?;
    let id = call_id(part).map_err(refused)?;
    let body = body.map_err(|_| Refusal::TooLarge)?;
    let mut sent = (None, None, None);
    let mut pattern = None;
    for (name, value) in url::form_urlencoded::parse(&body) {
        match name.as_ref() {
            "decision" => sent.0 = Some(value.into_owned()),
            "nonce" => sent.1 = Some(value.into_owned()),
            "pattern" => pattern = Some(value.trim().to_owned()),
            "reason" => sent.2 = Some(value.trim().to_owned()).filter(|reason| !reason.is_empty()),
            _ => {}
        }
    }
    let decision = match sent.0.as_deref() {
        Some("allow") => CallDecision::Allow,
        Some("reject") => CallDecision::Reject,
        Some("always" | "pattern") => CallDecision::Always,
        _ => return Err(refused(MALFORMED)),
    };
    let answer = CallAnswer {
        decision,
        nonce: sent.1.as_deref(),
        decider: &decider,
        reason: sent.2.as_deref(),
        // What stands in the field counts with its own button alone.
        pattern: pattern
            .as_deref()
            .filter(|_| sent.0.as_deref() == Some("pattern")),
    };
    answered(calls, &id, &answer).await.map_err(refused)?;
    Ok(Redirect::to("/approvals").into_response())
}

fn call_id(part: Part) -> Result<ToolCallId, Refused> {
    let Path(text) = part.map_err(|_| NOT_AN_ID)?;
    text.parse().map_err(|_| NOT_AN_ID)
}

async fn answered(
    calls: &ToolCalls,
    id: &ToolCallId,
    answer: &CallAnswer<'_>,
) -> Result<(), Refused> {
    if answer.reason.is_some_and(|reason| reason.len() > 500) {
        return Err(MALFORMED);
    }
    let resolved = calls.approvals.resolve(id, answer).await;
    let failed = |error: AskError| match error {
        AskError::Pattern(_) => BAD_PATTERN,
        other => unavailable(&other),
    };
    match resolved.map_err(failed)? {
        Resolved::Done(call) => {
            tracing::info!(%id, by = answer.decider.identifier(), tool = %shown(&call.tool), "a tool call was answered");
            Ok(())
        }
        Resolved::Unknown => Err(UNKNOWN),
        Resolved::WrongNonce => Err(WRONG_NONCE),
        Resolved::Gone => Err(GONE),
    }
}

fn unavailable(error: &dyn std::error::Error) -> Refused {
    tracing::error!(%error, "a tool call could not be answered");
    UNAVAILABLE
}
