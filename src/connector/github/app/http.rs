//! One request, one answer, with a deadline and a cap; nothing is followed and nothing is sent twice.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method};
use secrecy::{ExposeSecret as _, SecretString};

use super::super::options::{GithubSetupError, check_base};
use super::super::transport::{API_VERSION, Answer, MEDIA_TYPE, complete, http_client};
use crate::https;

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
        // A proxy would only be in the way of a server on this machine.
        let client = http_client(https::is_loopback(&base))
            .map_err(|reason| GithubSetupError::Client { reason })?;
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
            outgoing = outgoing.header(CONTENT_TYPE, "application/json").body(body);
        }
        match tokio::time::timeout(self.deadline, answered(outgoing)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!(
                "no complete answer within {} ms",
                self.deadline.as_millis()
            )),
        }
    }
}

async fn answered(outgoing: reqwest::RequestBuilder) -> Result<Answer, String> {
    let sent = outgoing.send().await;
    let response = sent.map_err(https::words)?;
    complete(response)
        .await
        .map_err(|broken| broken.to_string())
}
