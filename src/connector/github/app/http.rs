//! One request, one answer, with a deadline and a cap; nothing is followed and nothing is sent twice.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Method};
use reqwest::redirect::Policy;
use secrecy::{ExposeSecret as _, SecretString};

use super::super::options::{GithubSetupError, check_base, is_loopback};
use super::super::transport::{API_VERSION, Answer};

/// The largest answer that is read, in bytes.
const ANSWER_LIMIT: usize = 1 << 20;
const MEDIA_TYPE: &str = "application/vnd.github+json";
const AGENT: &str = concat!("caretaker/", env!("CARGO_PKG_VERSION"));

/// A request to the REST interface.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    /// Below the interface's base, encoded, starting with a slash.
    pub(super) path: String,
    pub(super) bearer: Option<&'a SecretString>,
    pub(super) body: Option<String>,
    /// A further header.
    pub(super) header: Option<(&'static str, &'static str)>,
}

/// A client for one interface.
pub(super) struct Http {
    client: reqwest::Client,
    base: String,
    deadline: Duration,
}

impl Http {
    /// Checks the base address and makes the client.
    pub(super) fn new(api_url: &str, deadline: Duration) -> Result<Self, GithubSetupError> {
        let base = check_base("api_url", api_url, &["https", "http"])?;
        if deadline.is_zero() {
            return Err(GithubSetupError::Deadline);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Losing the race to another thread leaves a provider installed, which is all that is needed.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let builder = reqwest::Client::builder()
            .user_agent(AGENT)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .pool_idle_timeout(Duration::from_secs(10));
        // A proxy would only be in the way of a server on this machine.
        let builder = if is_loopback(&base) {
            builder.no_proxy()
        } else {
            builder
        };
        let client = builder.build().map_err(|error| GithubSetupError::Client {
            reason: format!("the HTTPS client cannot be made ({})", words(&error)),
        })?;
        Ok(Self {
            client,
            base: base.as_str().trim_end_matches('/').to_owned(),
            deadline,
        })
    }

    /// The interface's base, for messages.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Sends once and reads the whole answer, whatever its status. The error says why there is none, without the address,
    /// which may hold a code.
    pub(super) async fn send(&self, request: Request<'_>) -> Result<Answer, String> {
        let mut outgoing = self
            .client
            .request(request.method, format!("{}{}", self.base, request.path))
            .header(ACCEPT, MEDIA_TYPE)
            .header("x-github-api-version", API_VERSION);
        if let Some((name, value)) = request.header {
            outgoing = outgoing.header(name, value);
        }
        if let Some(token) = request.bearer {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
                .map_err(|_| "the token has characters that a header cannot carry".to_owned())?;
            value.set_sensitive(true);
            outgoing = outgoing.header(AUTHORIZATION, value);
        }
        if let Some(body) = request.body {
            outgoing = outgoing
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(body);
        }
        match tokio::time::timeout(self.deadline, complete(outgoing)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!(
                "no complete answer within {} ms",
                self.deadline.as_millis()
            )),
        }
    }
}

async fn complete(outgoing: reqwest::RequestBuilder) -> Result<Answer, String> {
    let off = |error: reqwest::Error| words(&error.without_url());
    let mut response = outgoing.send().await.map_err(off)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(off)? {
        if body.len().saturating_add(chunk.len()) > ANSWER_LIMIT {
            return Err(format!("the answer is larger than {ANSWER_LIMIT} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// An error with its causes, each said once.
fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = next.source();
    }
    text
}
