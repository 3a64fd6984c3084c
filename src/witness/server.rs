//! `POST /add-checkpoint` for logs, `GET /` for people.

use std::future::{Future, IntoFuture as _};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::connections::Bounded;
use super::{Answer, MAX_BODY, Witness};
use crate::clock::Clock;

/// How long requests under way may go on after the stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// What everybody together may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; others wait.
    pub connections: usize,
    /// How long a connection lasts, whatever goes over it.
    pub patience: Duration,
}

impl Default for Limits {
    /// 64 connections of a minute each.
    fn default() -> Self {
        Self {
            connections: 64,
            patience: Duration::from_mins(1),
        }
    }
}

#[derive(Clone)]
struct Serving {
    witness: Arc<Witness>,
    clock: Arc<dyn Clock>,
}

/// Everything that is served.
pub fn router(witness: Arc<Witness>, clock: Arc<dyn Clock>) -> Router {
    Router::new()
        .route("/add-checkpoint", post(add_checkpoint))
        .route("/", get(page))
        .with_state(Serving { witness, clock })
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

/// Serves until `shutdown` is ready; requests under way then have a few seconds to end.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listener = Bounded::new(listener, limits.connections, limits.patience);
    let (stop, stopped) = oneshot::channel();
    let graceful = axum::serve(listener, router).with_graceful_shutdown(async move {
        stopped.await.unwrap_or(());
    });
    let mut serving = pin!(graceful.into_future());
    tokio::select! {
        ended = &mut serving => return ended,
        () = shutdown => {}
    }
    // The receiver is gone only when serving has ended by itself.
    stop.send(()).unwrap_or(());
    let ended = tokio::time::timeout(FAREWELL, serving).await;
    ended.unwrap_or(Ok(()))
}

async fn add_checkpoint(
    State(serving): State<Serving>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return rejection.into_response(),
    };
    let Serving { witness, clock } = serving;
    // It waits for the disk.
    let answered =
        tokio::task::spawn_blocking(move || witness.add_checkpoint(&body, clock.now())).await;
    respond(answered.unwrap_or_else(|_| Answer::Failed("the request was given up".to_owned())))
}

/// The status and body that C2SP tlog-witness names.
fn respond(answer: Answer) -> Response {
    let text = |status, text: String| (status, format!("{text}\n")).into_response();
    match answer {
        Answer::Cosigned(signature) => text(StatusCode::OK, signature.to_string()),
        Answer::Malformed(error) => text(StatusCode::BAD_REQUEST, error.to_string()),
        Answer::Untrusted(error) => text(StatusCode::FORBIDDEN, error.to_string()),
        Answer::UnknownLog => text(
            StatusCode::NOT_FOUND,
            "this witness does not know that log".to_owned(),
        ),
        Answer::Conflict { size } => {
            let kind = HeaderValue::from_static("text/x.tlog.size");
            let mut response = text(StatusCode::CONFLICT, size.to_string());
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        Answer::Inconsistent(error) => text(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
        Answer::Failed(reason) => {
            // Files and their places are the auditor's business alone.
            tracing::error!(
                reason,
                "a checkpoint could not be remembered, so it was not cosigned"
            );
            text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "this witness cannot remember checkpoints at the moment".to_owned(),
            )
        }
    }
}

/// For people, in plain text.
async fn page(State(serving): State<Serving>) -> String {
    let witness = serving.witness;
    let mut lines = vec![format!("witness {}", witness.key()), String::new()];
    for (name, seen) in witness.logs() {
        lines.push(match seen {
            Some(seen) => format!(
                "{name}: {} leaves, root {}, cosigned at {}",
                seen.head.size(),
                seen.head.root(),
                seen.at
            ),
            None => format!("{name}: nothing cosigned yet"),
        });
    }
    for name in witness.retired() {
        lines.push(format!("{name}: not served any more"));
    }
    lines.join("\n") + "\n"
}
