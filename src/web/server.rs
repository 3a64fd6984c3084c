//! Addresses, limits, and the loop that serves them.

use std::future::{Future, IntoFuture as _};
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{any, get, post};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::answer::{LARGEST_FORM, answer};
use super::failure::Refusal;
use super::{WebState, api, calls, headers, hooks, log, pages};

/// How long one request may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long requests under way may go on after the stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// Everything that is served.
pub fn router(state: WebState) -> Router {
    let api = Router::new()
        .route("/incidents", get(api::incidents))
        .route("/incidents/{id}", get(api::incident))
        .route("/incidents/{id}/ledger", get(api::ledger))
        .fallback(any(api::nothing))
        .method_not_allowed_fallback(|| async { Refusal::Method.json() });
    // Without a secret there is nothing that a delivery could be checked with, and no address for it.
    // Break it: add the route always; `hooks::http::nothing_but_post_is_taken_and_nothing_at_all_without_a_secret` then fails.
    let hooks = match &state.webhooks {
        Some(_) => Router::new().route("/webhooks/github", post(hooks::receive)),
        None => Router::new(),
    };
    Router::new()
        .merge(hooks)
        .route("/", get(pages::incidents))
        .route("/incidents/{id}", get(pages::incident))
        .route("/incidents/{id}/ledger", get(pages::ledger))
        .route("/incidents/{id}/ledger.caretaker", get(log::bundle))
        .route("/log", get(pages::log))
        .route("/log/checkpoint", get(log::checkpoint))
        .route("/log/tile/{*tile}", get(log::tile))
        .route("/log/root/{name}", get(log::trust_root))
        .route("/a/{token}", get(pages::approval).post(answer))
        .route("/approvals", get(pages::calls))
        .route("/approvals/queue", get(calls::queue))
        .route("/approvals/{id}/resolve", post(calls::resolve))
        .route("/approvals/{id}/answer", post(calls::answer))
        .route("/assets/caretaker.css", get(pages::style))
        .nest("/api/v1", api)
        .route("/healthz", get(api::alive))
        .route("/readyz", get(api::ready))
        .fallback(|| async { Refusal::NoSuchPage })
        .method_not_allowed_fallback(|| async { Refusal::Method })
        .with_state(state)
        .layer(DefaultBodyLimit::max(LARGEST_FORM))
        .layer(middleware::from_fn(patient))
        .layer(middleware::map_response(headers::secured))
}

/// Gives up on a request that takes too long, a body that trickles in included.
async fn patient(request: Request, next: Next) -> Response {
    let answer = tokio::time::timeout(PATIENCE, next.run(request)).await;
    answer.unwrap_or_else(|_| Refusal::Slow.page())
}

/// Serves until `shutdown` is ready; requests under way then have a few seconds to end.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    state: WebState,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (stop, stopped) = oneshot::channel();
    let graceful = axum::serve(listener, router(state)).with_graceful_shutdown(async move {
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
