//! `GET /approvals`: the calls of tools that wait for a person.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::super::WebState;
use super::super::calls::{operator, queue_of};
use super::super::failure::Refusal;
use super::super::shown::{Moment, Shown};
use super::page;
use crate::store::ToolCall;

#[derive(Template)]
#[template(path = "calls.html")]
struct CallsPage {
    calls: Vec<CallView>,
    /// Whether this page may answer: it cannot where answers need a token.
    answers: bool,
    read_at: Moment,
}

struct CallView {
    id: String,
    tool: Shown,
    session: Shown,
    task: Shown,
    role: Shown,
    arguments: Shown,
    asked: Moment,
    until: Moment,
    nonce: String,
}

/// The page of the queue.
pub(in super::super) async fn calls(
    State(state): State<WebState>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let calls = queue_of(&state).map_err(|_| Refusal::Unavailable)?;
    // Where tokens answer, nobody sees arguments or a nonce without one.
    let answers = calls.tokens.is_empty();
    let pending = if answers {
        operator(&state, &headers).map_err(|_| Refusal::Foreign)?;
        calls.approvals.pending().await?
    } else {
        Vec::new()
    };
    page(&CallsPage {
        calls: pending.into_iter().map(view).collect(),
        answers,
        read_at: Moment(calls.approvals.now()),
    })
}

fn view(call: ToolCall) -> CallView {
    let readable = serde_json::from_str::<serde_json::Value>(&call.arguments)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or(call.arguments);
    CallView {
        id: call.id.to_string(),
        tool: Shown::line(call.tool),
        session: Shown::line(call.session),
        task: Shown::line(call.task),
        role: Shown::line(call.role),
        arguments: Shown::block(&readable),
        asked: Moment(call.created_at),
        until: Moment(call.expires_at),
        nonce: call.nonce,
    }
}
