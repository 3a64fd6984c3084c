//! The two listeners and the way of one request through them.

mod backend;
mod connection;
mod credentials;
mod logs;
mod manifest;
mod pages;
mod push_gate;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{self, Body};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::io::ReaderStream;

use super::api::{self, Call, Reply};
use super::encoding::percent_decoded;
use super::state::{Shared, UnderWay};
use super::traffic::{Act, FaultAction, Origin, RequestRecord};
use connection::{Connection, CuttableListener};

pub(crate) use logs::LogLinks;
pub(crate) use push_gate::install as install_hook;

/// The largest body of a request to the API, in bytes.
const BODY_LIMIT: usize = 10_000_000;
/// The largest answer that can be truncated on request, in bytes.
const TRUNCATABLE: usize = 64_000_000;

/// One of the forge's origins.
#[derive(Clone)]
struct Site {
    shared: Arc<Shared>,
    origin: Origin,
    /// Becomes true, or loses its sender, when the forge stops.
    stopping: watch::Receiver<bool>,
}

/// Serves one origin until the forge stops.
pub(crate) fn serve(
    shared: Arc<Shared>,
    listener: TcpListener,
    origin: Origin,
    stopping: watch::Receiver<bool>,
) -> JoinHandle<()> {
    let site = Site {
        shared,
        origin,
        stopping: stopping.clone(),
    };
    let service = Router::new()
        .fallback(arrive)
        .with_state(site)
        .into_make_service_with_connect_info::<Connection>();
    tokio::spawn(async move {
        // axum's server gives up on nothing: it ends when told to and never with an error.
        let served = axum::serve(CuttableListener(listener), service)
            .with_graceful_shutdown(stopped(stopping))
            .await;
        debug_assert!(served.is_ok());
    })
}

/// Waits for the end of the forge.
async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A lost sender means the forge was dropped: that is the end as well.
    if stopping.wait_for(|stopping| *stopping).await.is_err() {}
}

/// Where every request arrives; when the forge stops, those under way lose their connection.
async fn arrive(
    State(site): State<Site>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    let stopping = site.stopping.clone();
    tokio::select! {
        response = answered(&site, &connection, request) => response,
        () = stopped(stopping) => unsent(&connection),
    }
}

/// A response that is never sent, since its connection is cut.
fn unsent(connection: &Connection) -> Response {
    connection.cut();
    Response::new(Body::empty())
}

/// Notes the request, does to it what a test planned, and answers it.
async fn answered(site: &Site, connection: &Connection, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let traffic = &site.shared.traffic;
    let path = parts.uri.path().to_owned();
    let number = traffic.arrived(RequestRecord {
        origin: site.origin,
        method: parts.method.to_string(),
        path: path.clone(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        authorized: parts.headers.contains_key(header::AUTHORIZATION),
        status: None,
    });
    let credential = header_text(&parts.headers, "authorization").unwrap_or_default();
    let under_way = site.shared.meter.enter(&credential);
    let interventions = traffic.interventions(parts.method.as_str(), &path);
    if let Err(response) = performed(interventions.before).await {
        return response;
    }
    let fault = interventions.fault;
    match &fault {
        Some(FaultAction::Hang) => std::future::pending::<()>().await,
        Some(FaultAction::CloseBeforeEffect) => return unsent(connection),
        Some(FaultAction::Status {
            code,
            body,
            headers,
        }) => {
            traffic.answered(number, *code);
            return planned(*code, body, headers);
        }
        Some(FaultAction::Endless) => {
            traffic.answered(number, 200);
            return endless(site);
        }
        Some(FaultAction::Garbage(bytes)) => {
            traffic.answered(number, 200);
            let mut response = planned(200, "", &[]);
            *response.body_mut() = Body::from(bytes.clone());
            return response;
        }
        Some(FaultAction::Delay(milliseconds)) => {
            tokio::time::sleep(Duration::from_millis(*milliseconds)).await;
        }
        _ => {}
    }
    let response = effect(site, &under_way, parts, body).await;
    if let Err(response) = performed(interventions.after).await {
        return response;
    }
    if fault == Some(FaultAction::CloseAfterEffect) {
        return unsent(connection);
    }
    traffic.answered(number, response.status().as_u16());
    match fault {
        Some(FaultAction::Truncate(length)) => truncated(response, length, connection).await,
        _ => response,
    }
}

/// Performs planned acts one after another; an act that fails makes the request fail visibly.
async fn performed(acts: Vec<Act>) -> Result<(), Response> {
    for act in acts {
        let trouble = match tokio::task::spawn_blocking(act).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        return Err(plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("an act planned for this request failed: {trouble}"),
        ));
    }
    Ok(())
}

/// The answer of a planned fault.
fn planned(code: u16, body: &str, headers: &[(String, String)]) -> Response {
    let mut response = Response::new(Body::from(body.to_owned()));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A short text.
fn plain(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// The decoded parts of a path.
fn segments(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decoded(part, false))
        .collect()
}

/// The decoded pairs of a query.
fn pairs(query: &str) -> Vec<(String, String)> {
    let decoded = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decoded(name, true), percent_decoded(value, true))
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(decoded)
        .collect()
}

/// What the request does, and its whole answer.
async fn effect(site: &Site, under_way: &UnderWay, parts: Parts, body: Body) -> Response {
    let together = under_way.together;
    if site.origin == Origin::Logs {
        return logs::download(&site.shared, &parts);
    }
    let mut segments = segments(parts.uri.path());
    if let Some(service) = backend::Service::of(&segments, parts.uri.query().unwrap_or_default()) {
        return backend::answer(&site.shared, service, parts, body).await;
    }
    // An Enterprise Server has its API below a path of its own, everything else has pages and API side by side.
    let prefixed = !site.shared.profile.api_path().is_empty();
    let is_api =
        !prefixed || matches!(segments.as_slice(), [api, v3, ..] if api == "api" && v3 == "v3");
    if prefixed && is_api {
        segments.drain(..2);
    }
    let Ok(body) = body::to_bytes(body, BODY_LIMIT).await else {
        return plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {BODY_LIMIT} bytes or ended early"),
        );
    };
    let shared = Arc::clone(&site.shared);
    let work = move || {
        let method = parts.method.as_str();
        let query = parts.uri.query().unwrap_or_default();
        if !is_api {
            return pages::page(&shared, method, &segments)
                .or_else(|| manifest::submitted(&shared, method, &segments, query, &body))
                .unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "Not found\n".to_owned()));
        }
        let page = (!prefixed)
            .then(|| {
                pages::page(&shared, method, &segments)
                    .or_else(|| manifest::submitted(&shared, method, &segments, query, &body))
            })
            .flatten();
        page.unwrap_or_else(|| {
            let call = Call {
                together,
                ..call_of(&shared, &parts, segments, body.to_vec())
            };
            response_of(api::answer(&shared, &call))
        })
    };
    let failed = |_| {
        plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the forge failed while it answered".to_owned(),
        )
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(failed)
}

fn call_of(shared: &Shared, parts: &Parts, segments: Vec<String>, body: Vec<u8>) -> Call {
    let headers = &parts.headers;
    let method = if parts.method.as_str() == "HEAD" {
        "GET"
    } else {
        parts.method.as_str()
    };
    Call {
        method: method.to_owned(),
        segments,
        query: pairs(parts.uri.query().unwrap_or_default()),
        accept: header_text(headers, "accept").unwrap_or_default(),
        if_none_match: header_text(headers, "if-none-match"),
        version: api::version_for(
            shared.profile,
            header_text(headers, "x-github-api-version").as_deref(),
        ),
        api_version: header_text(headers, "x-github-api-version"),
        has_user_agent: header_text(headers, "user-agent").is_some_and(|agent| !agent.is_empty()),
        credentials: credentials::of(headers, shared),
        stateless_token: header_text(headers, "x-github-stateless-s2s-token"),
        path: parts.uri.path().to_owned(),
        together: 1,
        body,
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

fn response_of(reply: Reply) -> Response {
    let (body, content_type) = match reply.body {
        api::Body::Nothing => (Body::empty(), None),
        api::Body::Json(value) => (
            Body::from(value.to_string()),
            Some("application/json; charset=utf-8"),
        ),
        api::Body::Text(text, _) => (Body::from(text), Some("application/json; charset=utf-8")),
        api::Body::Raw(bytes) => (
            Body::from(bytes),
            Some("application/vnd.github.raw; charset=utf-8"),
        ),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(content_type) = content_type {
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// The same response, whose connection ends after so many bytes of the body although the headers promise all of it.
async fn truncated(response: Response, length: usize, connection: &Connection) -> Response {
    let (mut parts, whole) = response.into_parts();
    let Ok(whole) = body::to_bytes(whole, TRUNCATABLE).await else {
        return unsent(connection);
    };
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len()));
    let beginning = whole.slice(..length.min(whole.len()));
    let reader = Beginning {
        bytes: beginning,
        connection: connection.clone(),
    };
    Response::from_parts(parts, Body::from_stream(ReaderStream::new(reader)))
}

/// A response whose body goes on until its client is gone or the forge stops.
fn endless(site: &Site) -> Response {
    let reader = Spring {
        stopping: site.stopping.clone(),
    };
    let mut response = planned(200, "", &[]);
    *response.body_mut() = Body::from_stream(ReaderStream::new(reader));
    response
}

/// Gives spaces, which may stand before any JSON.
struct Spring {
    stopping: watch::Receiver<bool>,
}

impl AsyncRead for Spring {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        // A lost sender is an end as well.
        if self.stopping.has_changed().is_err() || *self.stopping.borrow() {
            return std::task::Poll::Ready(Err(std::io::Error::other("the forge stops")));
        }
        let spaces = [b' '; 4_096];
        let length = buffer.remaining().min(spaces.len());
        buffer.put_slice(&spaces[..length]);
        std::task::Poll::Ready(Ok(()))
    }
}

/// Gives some bytes, then cuts the connection as soon as they are on their way.
struct Beginning {
    bytes: body::Bytes,
    connection: Connection,
}

impl AsyncRead for Beginning {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        if self.bytes.is_empty() {
            // Never ready again: the server flushes what it has, and the flush fails.
            self.connection.cut_after_flush();
            return std::task::Poll::Pending;
        }
        let length = buffer.remaining().min(self.bytes.len());
        buffer.put_slice(&self.bytes.split_to(length));
        std::task::Poll::Ready(Ok(()))
    }
}
