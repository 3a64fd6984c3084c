//! One request, one answer: no retry, no redirect, no cache, a deadline and a size limit on everything.
//!
//! octocrab adds the credential and nothing else. Its own HTTP stack sends a second `User-Agent`, retries changes and has
//! no deadline, so that the requests go out through a client whose habits are set here.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use octocrab::{AuthState, OctoBody, Octocrab, OctocrabBuilder};
use reqwest::redirect::Policy;
use url::Url;

use super::log::HeadAndTail;
use super::options::{GithubOptions, GithubSetupError, Setting, is_loopback};

/// The version of the interface, named in this one place.
const API_VERSION: &str = "2022-11-28";
const MEDIA_TYPE: &str = "application/vnd.github+json";
const AGENT: &str = concat!("caretaker/", env!("CARGO_PKG_VERSION"));

/// The largest answer that is read, in bytes; job logs have their own limit.
pub(super) const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// Why there is no complete answer. Whether a change took effect is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Broken {
    /// Connection, deadline, or an answer cut short.
    Off(String),
    /// The answer is larger than it may be.
    TooLarge,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off(reason) => f.write_str(reason),
            Self::TooLarge => write!(f, "the answer is larger than {ANSWER_LIMIT} bytes"),
        }
    }
}

/// A complete answer, whatever its status.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Where a redirect points, when it does.
    pub(super) fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// An answer that may be a log.
pub(super) enum LogAnswer {
    /// Success: what was kept of the text.
    Text(HeadAndTail),
    /// Anything else.
    Other(Answer),
}

/// The two clients: one with the credential for the interface, one without for links.
pub(super) struct Transport {
    authorised: Octocrab,
    bare: reqwest::Client,
    deadline: Duration,
}

impl Transport {
    /// Must be called inside a tokio runtime: octocrab's queue is a task of it.
    pub(super) fn new(
        options: &GithubOptions,
        setting: &Setting,
    ) -> Result<Self, GithubSetupError> {
        let failed = |reason: String| GithubSetupError::Client { reason };
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(failed(
                "there is no tokio runtime here; make the connector inside one".to_owned(),
            ));
        }
        let bare = bare_client(is_loopback(&setting.api)).map_err(|error| {
            failed(format!(
                "the HTTPS client cannot be made ({}); are root certificates installed (Debian: ca-certificates)?",
                chain(&error)
            ))
        })?;
        let engine = bare.clone();
        let base: Arc<str> = Arc::from(setting.api_text.as_str());
        let service = tower::service_fn(move |request: Request<OctoBody>| {
            dispatch(engine.clone(), Arc::clone(&base), request)
        });
        let built = OctocrabBuilder::new_empty()
            .with_service(service)
            .with_auth(AuthState::AccessToken {
                token: options.token.clone(),
            })
            .build();
        let authorised = match built {
            Ok(octocrab) => octocrab,
            Err(never) => match never {},
        };
        Ok(Self {
            authorised,
            bare,
            deadline: options.deadline,
        })
    }

    /// Sends one request with the credential and reads the whole answer. `path` starts with a slash and is encoded.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<Answer, Broken> {
        let request = request(method, path, body)?;
        self.within(async {
            let response = self.execute(request).await?;
            complete(response).await
        })
        .await
    }

    /// Like [`Self::send`] for a log: a successful answer is kept in part, any other is read like all answers.
    pub(super) async fn send_for_log(&self, path: &str, cap: usize) -> Result<LogAnswer, Broken> {
        let request = request(Method::GET, path, None)?;
        self.within(async {
            let response = self.execute(request).await?;
            if response.status().is_success() {
                kept(response, cap).await.map(LogAnswer::Text)
            } else {
                complete(response).await.map(LogAnswer::Other)
            }
        })
        .await
    }

    /// Fetches a link without the credential.
    pub(super) async fn fetch_link(&self, link: Url, cap: usize) -> Result<LogAnswer, Broken> {
        self.within(async {
            // The link is a credential itself: it must not appear in an error.
            let off = |error: reqwest::Error| Broken::Off(chain(&error.without_url()));
            let response = self.bare.get(link).send().await.map_err(off)?;
            let response = Response::<reqwest::Body>::from(response);
            if response.status().is_success() {
                kept(response, cap).await.map(LogAnswer::Text)
            } else {
                complete(response).await.map(LogAnswer::Other)
            }
        })
        .await
    }

    async fn execute(
        &self,
        request: Request<OctoBody>,
    ) -> Result<Response<impl BodyExt<Data: AsRef<[u8]>, Error = octocrab::Error> + Unpin>, Broken>
    {
        let sent = self.authorised.execute(request).await;
        sent.map_err(|error| Broken::Off(chain(&error)))
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, Broken>>) -> Result<T, Broken> {
        match tokio::time::timeout(self.deadline, call).await {
            Ok(result) => result,
            Err(_) => Err(Broken::Off(format!(
                "no complete answer within {} ms",
                self.deadline.as_millis()
            ))),
        }
    }
}

/// A client that follows nothing and repeats nothing.
pub(super) fn bare_client(loopback: bool) -> Result<reqwest::Client, reqwest::Error> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race to another thread leaves a provider installed, which is all that is needed.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let builder = reqwest::Client::builder()
        .user_agent(AGENT)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        // A connection that the server may have closed meanwhile would make a merge ambiguous for nothing.
        .pool_idle_timeout(Duration::from_secs(10));
    // A proxy would only be in the way of a server on this machine.
    let builder = if loopback {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build()
}

async fn dispatch(
    engine: reqwest::Client,
    base: Arc<str>,
    request: Request<OctoBody>,
) -> Result<Response<reqwest::Body>, reqwest::Error> {
    let (parts, body) = request.into_parts();
    let address = format!("{base}{}", parts.uri);
    let mut outgoing = engine
        .request(parts.method, address)
        .headers(parts.headers.clone());
    if parts.headers.contains_key(CONTENT_LENGTH) {
        outgoing = outgoing.body(reqwest::Body::wrap(body));
    }
    outgoing.send().await.map(Response::from)
}

fn request(method: Method, path: &str, body: Option<String>) -> Result<Request<OctoBody>, Broken> {
    let mut builder = Request::builder()
        .method(method)
        .uri(path)
        .header(ACCEPT, MEDIA_TYPE)
        .header(USER_AGENT, AGENT)
        .header("x-github-api-version", API_VERSION);
    if let Some(text) = &body {
        builder = builder
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(CONTENT_LENGTH, text.len());
    }
    builder
        .body(body.map_or_else(OctoBody::empty, OctoBody::from))
        .map_err(|error| Broken::Off(format!("the request cannot be written: {error}")))
}

async fn complete<B>(response: Response<B>) -> Result<Answer, Broken>
where
    B: BodyExt<Data: AsRef<[u8]>, Error: std::error::Error> + Unpin,
{
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| cut_short(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len().saturating_add(data.as_ref().len()) > ANSWER_LIMIT {
            return Err(Broken::TooLarge);
        }
        bytes.extend_from_slice(data.as_ref());
    }
    Ok(Answer {
        status: parts.status,
        headers: parts.headers,
        body: bytes,
    })
}

async fn kept<B>(response: Response<B>, cap: usize) -> Result<HeadAndTail, Broken>
where
    B: BodyExt<Data: AsRef<[u8]>, Error: std::error::Error> + Unpin,
{
    let mut body = response.into_body();
    let mut kept = HeadAndTail::new(cap);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| cut_short(&error))?;
        if let Ok(data) = frame.into_data() {
            kept.push(data.as_ref());
        }
    }
    Ok(kept)
}

fn cut_short(error: &dyn std::error::Error) -> Broken {
    Broken::Off(format!("the answer broke off: {}", chain(error)))
}

/// An error with its causes, each said once.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}
