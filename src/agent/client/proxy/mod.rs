//! The way from a sandboxed client to its model: a Unix socket of one task, behind which the key is added.
//!
//! The client speaks to it as to its model's server. What is not the protocol's own request is refused, of its headers only what a
//! model needs goes on, and the key is put in here, outside of the sandbox. Requests, tokens, sizes and time are bounded.

mod answer;
mod listen;
mod route;
mod usage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::answer::{Refused, late, refusal, returned};
use crate::https;
use crate::incident::{Money, MoneyBudget};
pub use listen::LONGEST_SOCKET_PATH;
pub(super) use listen::check_length;
pub use route::{Protocol, Route, reaches_beyond};
pub use usage::{Tokens, UsageReader};

/// Largest request, in bytes: a conversation with files in it.
pub const LARGEST_REQUEST: usize = 32 << 20;
/// Largest answer, in bytes; a longer one is cut off.
pub const LARGEST_ANSWER: u64 = 64 << 20;
/// Most bytes of an answer that says why it is none.
const LARGEST_REFUSAL: usize = 256 << 10;
/// How long the server may say nothing.
const SILENCE: Duration = Duration::from_mins(5);
/// Requests at once; others wait.
const AT_ONCE: u32 = 8;
/// How long what is under way may take to end when the proxy does.
const END_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer on their way to the client.
const ON_THE_WAY: usize = 64 << 10;

/// Bytes that are taken for a token where the server counts none.
const BYTES_A_TOKEN: u64 = 4;

/// Headers of a request that go on. Whatever could be a credential is not among them.
const FORWARDED: [&str; 5] = [
    "accept",
    "content-type",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
];
/// The server behind a client.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its address; the protocol's paths are meant below it.
    pub base: Url,
    /// The key, which stays in this process.
    pub key: Option<SecretString>,
}

/// How much one task may use.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    /// Requests, failed ones included.
    pub requests: u64,
    /// Tokens sent and received together, as the server counts them. What is under way when they are used up still ends.
    pub tokens: u64,
    /// What they cost and may cost, where prices are configured. Nothing more goes on once it is spent.
    pub money: Option<MoneyBudget>,
    /// When everything ends.
    pub deadline: Instant,
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests that went on to the server.
    pub requests: u64,
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
    /// What it cost, with four bytes for a token where the server counted nothing; none without prices.
    pub cost: Option<Money>,
}

/// Why there is no proxy.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The socket.
    #[error("listening for the client at {path}: {reason}")]
    Listen {
        /// Where.
        path: String,
        /// Why not, and the mend.
        reason: String,
    },
    /// The key cannot stand in a header.
    #[error(
        "the model's key holds characters that no header may hold; look at where agent.model.api_key comes from"
    )]
    Key,
    /// The HTTPS client cannot be made.
    #[error(
        "the HTTPS client cannot be made ({0}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client(String),
}

/// A proxy that listens until it is dropped.
pub struct ModelProxy {
    proxy: Arc<Proxy>,
}

struct Proxy {
    upstream: Upstream,
    /// The key as a header, with its name.
    credential: Option<(HeaderName, HeaderValue)>,
    client: reqwest::Client,
    allowance: Allowance,
    requests: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
    /// The same of what the server did not count, as estimated.
    uncounted: (AtomicU64, AtomicU64),
    /// Each request holds one of these until its answer has passed.
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

impl ModelProxy {
    /// Listens at `socket`, which must not exist yet, until the value is dropped. Called where a runtime is.
    ///
    /// # Errors
    /// [`ProxyError`].
    pub fn start(
        socket: &Path,
        upstream: Upstream,
        allowance: Allowance,
    ) -> Result<Self, ProxyError> {
        let credential = credential(&upstream)?;
        let client = https::builder(https::is_loopback(&upstream.base))
            .read_timeout(SILENCE)
            .build()
            .map_err(|error| ProxyError::Client(https::words(error)))?;
        let listener = listen::OwnUser::bind(socket)?;
        let stop = CancellationToken::new();
        let proxy = Arc::new(Proxy {
            upstream,
            credential,
            client,
            allowance,
            requests: AtomicU64::new(0),
            input: AtomicU64::new(0),
            output: AtomicU64::new(0),
            uncounted: (AtomicU64::new(0), AtomicU64::new(0)),
            places: Arc::new(Semaphore::new(AT_ONCE as usize)),
            stop: stop.clone(),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&proxy));
        tokio::spawn(async move {
            tokio::select! {
                // It ends only when it is stopped.
                ended = std::future::IntoFuture::into_future(axum::serve(listener, router)) => drop(ended),
                () = stop.cancelled() => {}
            }
        });
        Ok(Self { proxy })
    }

    /// What was used so far.
    pub fn used(&self) -> Used {
        self.proxy.used()
    }

    /// Ends what is under way, and says what was used.
    pub async fn finish(self) -> Used {
        self.proxy.stop.cancel();
        let ended = self.proxy.places.acquire_many(AT_ONCE);
        // What does not end in time is not counted.
        drop(tokio::time::timeout(END_WITHIN, ended).await);
        self.proxy.used()
    }
}

impl Drop for ModelProxy {
    fn drop(&mut self) {
        self.proxy.stop.cancel();
    }
}

fn credential(upstream: &Upstream) -> Result<Option<(HeaderName, HeaderValue)>, ProxyError> {
    let Some(key) = &upstream.key else {
        return Ok(None);
    };
    let key = key.expose_secret();
    let (name, text) = match upstream.protocol {
        Protocol::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Protocol::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        Protocol::OpenAi | Protocol::Ollama => (header::AUTHORIZATION, format!("Bearer {key}")),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| ProxyError::Key)?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

fn add(to: &AtomicU64, more: u64) {
    let added = |sum: u64| Some(sum.saturating_add(more));
    let _before = to.fetch_update(Ordering::SeqCst, Ordering::SeqCst, added);
}

impl Proxy {
    fn used(&self) -> Used {
        let (input, output) = self.priced();
        Used {
            requests: self.requests.load(Ordering::SeqCst),
            input: self.input.load(Ordering::SeqCst),
            output: self.output.load(Ordering::SeqCst),
            cost: self
                .allowance
                .money
                .map(|money| money.prices.cost(input, output)),
        }
    }

    /// The tokens that cost something: those that were counted, and those that were estimated.
    fn priced(&self) -> (u64, u64) {
        let sum = |counted: &AtomicU64, estimated: &AtomicU64| {
            let counted = counted.load(Ordering::SeqCst);
            counted.saturating_add(estimated.load(Ordering::SeqCst))
        };
        (
            sum(&self.input, &self.uncounted.0),
            sum(&self.output, &self.uncounted.1),
        )
    }

    /// Refuses more once the money is spent.
    fn affordable(&self) -> Result<(), Refused> {
        let Some(money) = &self.allowance.money else {
            return Ok(());
        };
        let (input, output) = self.priced();
        // One token more is the least that a request costs.
        // Break it: allow it; `agent::client::proxy::once_the_money_is_spent_nothing_goes_on` fails.
        money
            .allows(input.saturating_add(1), output)
            .map_err(|budget| {
                refusal(
                    StatusCode::FORBIDDEN,
                    &format!("this task has used up its budget of {budget}"),
                )
            })
    }

    /// Takes one request from what is allowed.
    fn take(&self) -> Result<(), Refused> {
        let used = self.used();
        let (most, tokens) = (self.allowance.requests, self.allowance.tokens);
        if used.input.saturating_add(used.output) >= tokens {
            return Err(refusal(
                StatusCode::FORBIDDEN,
                &format!("this task has used up its {tokens} tokens"),
            ));
        }
        self.affordable()?;
        // Break it: always take one; `agent::client::proxy::requests_and_tokens_are_bounded` fails.
        let one_more = |requests: u64| (requests < most).then_some(requests + 1);
        self.requests
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more)
            .map(drop)
            .map_err(|_| {
                refusal(
                    StatusCode::FORBIDDEN,
                    &format!("this task has used up its {most} requests"),
                )
            })
    }

    fn count(&self, tokens: Tokens) {
        add(&self.input, tokens.input);
        add(&self.output, tokens.output);
    }

    /// Counts what the server did not: so many bytes sent and received.
    fn estimate(&self, sent: u64, received: u64) {
        add(&self.uncounted.0, sent.div_ceil(BYTES_A_TOKEN));
        add(&self.uncounted.1, received.div_ceil(BYTES_A_TOKEN));
    }

    /// The answer of the server, its body on its way.
    async fn forward(
        self: &Arc<Self>,
        request: Request,
        place: OwnedSemaphorePermit,
    ) -> Result<Response, Refused> {
        let (parts, body) = request.into_parts();
        let route = self
            .upstream
            .protocol
            .route(&parts.method, parts.uri.path(), parts.uri.query())
            .ok_or_else(|| {
                refusal(
                    StatusCode::NOT_FOUND,
                    "only the model's own requests are carried on",
                )
            })?;
        let body = self.body(&parts, body).await?;
        self.take()?;
        // Questions about models and counts of tokens cost nothing.
        let bytes = (parts.method == Method::POST && !route.counts()).then_some(body.len() as u64);
        let sent = self.request(&parts.method, &route, &parts.headers, body);
        let answered = timeout_at(self.allowance.deadline, sent.send()).await;
        if !matches!(answered, Ok(Ok(_))) {
            self.estimate(bytes.unwrap_or(0), 0);
        }
        let answered = answered.map_err(|_| late())?.map_err(|error| {
            let reason = https::words(error);
            refusal(
                StatusCode::BAD_GATEWAY,
                &format!("the model's server: {reason}"),
            )
        })?;
        if answered.status().is_success() {
            Ok(self.stream(answered, place, bytes))
        } else {
            self.estimate(bytes.unwrap_or(0), 0);
            Ok(self.failed(answered).await)
        }
    }

    /// The whole body of a request, looked into.
    async fn body(&self, parts: &Parts, body: Body) -> Result<axum::body::Bytes, Refused> {
        // A body that cannot be read cannot be looked into.
        if parts.headers.contains_key(header::CONTENT_ENCODING) {
            return Err(refusal(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "requests are not compressed here",
            ));
        }
        // Break it: give it no limit; `agent::client::proxy::a_request_that_is_too_large_is_refused` fails.
        let body = axum::body::to_bytes(body, LARGEST_REQUEST);
        let body = timeout_at(self.allowance.deadline, body)
            .await
            .map_err(|_| late())?
            .map_err(|_| {
                refusal(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    &format!("the request broke off, or has more than {LARGEST_REQUEST} bytes"),
                )
            })?;
        if parts.method == Method::POST {
            let asked: Value = serde_json::from_slice(&body)
                .map_err(|_| refusal(StatusCode::BAD_REQUEST, "the request is not JSON"))?;
            // Break it: leave this out; `agent::client::proxy::tools_that_the_server_would_run_are_refused` fails.
            if let Some(what) = reaches_beyond(&asked) {
                let shown: String = what.chars().take(40).collect();
                return Err(refusal(
                    StatusCode::FORBIDDEN,
                    &format!(
                        "{shown:?} would run on the model's side and reach beyond the sandbox; only the client's own tools are carried on"
                    ),
                ));
            }
        }
        Ok(body)
    }

    fn request(
        &self,
        method: &Method,
        route: &Route,
        headers: &HeaderMap,
        body: axum::body::Bytes,
    ) -> reqwest::RequestBuilder {
        let base = self.upstream.base.as_str().trim_end_matches('/');
        let query = route
            .query
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let url = format!("{base}{}{query}", route.path);
        let mut request = self.client.request(method.clone(), url);
        // Break it: forward every header; `agent::client::proxy::the_key_is_added_and_foreign_credentials_are_dropped` fails.
        for name in FORWARDED {
            if let Some(value) = headers.get(name) {
                request = request.header(name, value.clone());
            }
        }
        if let Some((name, value)) = &self.credential {
            request = request.header(name.clone(), value.clone());
        }
        if *method == Method::POST {
            request = request.body(body);
        }
        request
    }

    /// An answer that says why it is none; should the key stand in it, it does not go in.
    async fn failed(&self, mut answered: reqwest::Response) -> Response {
        let (status, headers) = (answered.status(), returned(answered.headers()));
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(piece)) = answered.chunk().await {
                let room = LARGEST_REFUSAL - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if body.len() == LARGEST_REFUSAL {
                    break;
                }
            }
        };
        // What came in time is what is passed on.
        drop(timeout_at(self.allowance.deadline, read).await);
        let mut text = String::from_utf8_lossy(&body).into_owned();
        if let Some(key) = &self.upstream.key {
            text = text.replace(key.expose_secret(), "[key]");
        }
        (status, headers, text).into_response()
    }

    /// Passes an answer on as it comes. When the client breaks off, the server is told so by the closed connection.
    fn stream(
        self: &Arc<Self>,
        mut answered: reqwest::Response,
        place: OwnedSemaphorePermit,
        sent: Option<u64>,
    ) -> Response {
        let (status, headers) = (answered.status(), returned(answered.headers()));
        let streams = headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.contains("event-stream") || kind.contains("ndjson"));
        let (mut to, from) = tokio::io::duplex(ON_THE_WAY);
        let proxy = Arc::clone(self);
        tokio::spawn(async move {
            let mut usage = UsageReader::new(streams);
            let mut passed = 0_u64;
            let pass = async {
                while let Ok(Some(piece)) = answered.chunk().await {
                    usage.read(&piece);
                    passed = passed.saturating_add(piece.len() as u64);
                    // Break it: pass everything; `agent::client::proxy::an_answer_that_does_not_end_is_cut_off` fails.
                    if passed > LARGEST_ANSWER || to.write_all(&piece).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = pass => {}
                () = tokio::time::sleep_until(proxy.allowance.deadline) => {}
                () = proxy.stop.cancelled() => {}
            }
            let tokens = usage.tokens();
            proxy.count(tokens);
            // Break it: leave this out; `agent::client::proxy::who_counts_nothing_is_estimated_by_bytes` fails.
            if let (Some(sent), true) = (sent, tokens == Tokens::default()) {
                proxy.estimate(sent, passed);
            }
            drop(place);
        });
        (status, headers, Body::from_stream(ReaderStream::new(from))).into_response()
    }
}

async fn answer(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    // It is closed never.
    let Ok(place) = Arc::clone(&proxy.places).acquire_owned().await else {
        return late().into_response();
    };
    tokio::select! {
        answered = proxy.forward(request, place) => answered.unwrap_or_else(IntoResponse::into_response),
        () = proxy.stop.cancelled() => late().into_response(),
    }
}
