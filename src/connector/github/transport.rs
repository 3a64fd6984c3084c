//! One request, one answer: no retry, no redirect, no cache, and a size limit on everything.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::https;

/// The version of the interface, named in this one place.
pub(super) const API_VERSION: &str = "2022-11-28";
/// The media type that every request asks for.
pub(super) const MEDIA_TYPE: &str = "application/vnd.github+json";

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

/// A request with a credential.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a Method,
    pub(super) address: &'a str,
    pub(super) token: &'a SecretString,
    /// The version that is known already.
    pub(super) etag: Option<&'a str>,
    /// JSON.
    pub(super) body: Option<&'a str>,
}

/// A client that follows nothing and repeats nothing. `direct` leaves out any proxy, which would only be in the way of a
/// server on this machine.
pub(super) fn http_client(direct: bool) -> Result<reqwest::Client, String> {
    // A connection that the server may have closed meanwhile would make a merge ambiguous for nothing.
    let builder = https::builder(direct).pool_idle_timeout(Duration::from_secs(10));
    builder.build().map_err(|error| {
        format!(
            "the HTTPS client cannot be made ({}); are root certificates installed (Debian: ca-certificates)?",
            https::words(error)
        )
    })
}

/// Sends a request and waits for the head of its answer.
pub(super) async fn begun(
    client: &reqwest::Client,
    outgoing: Outgoing<'_>,
) -> Result<reqwest::Response, Broken> {
    let unwritable = |what: &str| Broken::Off(format!("{what} that a header cannot carry"));
    let bearer = format!("Bearer {}", outgoing.token.expose_secret());
    let mut bearer =
        HeaderValue::from_str(&bearer).map_err(|_| unwritable("the token holds characters"))?;
    bearer.set_sensitive(true);
    let mut request = client
        .request(outgoing.method.clone(), outgoing.address)
        .header(ACCEPT, HeaderValue::from_static(MEDIA_TYPE))
        .header(
            "x-github-api-version",
            HeaderValue::from_static(API_VERSION),
        )
        .header(AUTHORIZATION, bearer);
    if let Some(etag) = outgoing.etag {
        let etag = HeaderValue::from_str(etag).map_err(|_| unwritable("the ETag is one"))?;
        request = request.header(IF_NONE_MATCH, etag);
    }
    if let Some(body) = outgoing.body {
        request = request
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_owned());
    }
    let sent = request.send().await;
    sent.map_err(|error| Broken::Off(https::words(error)))
}

/// Asks for a link without the credential and without our headers.
pub(super) async fn linked(
    client: &reqwest::Client,
    link: Url,
) -> Result<reqwest::Response, Broken> {
    // The link is a credential itself: it must not appear in an error.
    let sent = client.get(link).send().await;
    sent.map_err(|error| Broken::Off(https::words(error)))
}

/// Reads the whole answer.
pub(super) async fn complete(mut response: reqwest::Response) -> Result<Answer, Broken> {
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(piece) = piece(&mut response).await? {
        if body.len().saturating_add(piece.len()) > ANSWER_LIMIT {
            return Err(Broken::TooLarge);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// The next bytes of an answer; none at its end.
pub(super) async fn piece(
    response: &mut reqwest::Response,
) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]>>, Broken> {
    let read = response.chunk().await;
    read.map_err(|error| {
        let reason = https::words(error);
        Broken::Off(format!("the answer broke off: {reason}"))
    })
}
