//! The question itself, hop by hop.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::LOCATION;
use http::{HeaderMap, Method};
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, Client, ClientBuilder, Response};
use tokio::time::Instant;
use url::Url;

use super::resolve::Checked;
use super::{AddressRules, Answer, Lookup, Probe, ProbeError, Question, valid_until};
use crate::attest::text::shown;
use crate::https;

const AGENT: &str = concat!("caretaker/", env!("CARGO_PKG_VERSION"), " (health check)");

/// Why endpoints cannot be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "setting up health checks: the HTTPS client cannot be made ({0}); are root certificates installed (Debian: ca-certificates)?"
)]
pub struct ProbeSetupError(String);

/// Asks by HTTP/1.1 over a fresh connection each time, through no proxy.
pub struct HttpProbe {
    /// Connects only to addresses that the rules allow.
    careful: Client,
    /// Asks the operator's own targets.
    plain: Client,
    rules: AddressRules,
}

impl HttpProbe {
    /// A probe under these rules. `roots` (DER) are trusted beside the system's.
    ///
    /// # Errors
    /// No root certificates, or one of `roots` is none.
    pub fn new(
        rules: AddressRules,
        lookup: Arc<dyn Lookup>,
        roots: &[Vec<u8>],
    ) -> Result<Self, ProbeSetupError> {
        let setup = |error: reqwest::Error| ProbeSetupError(words(&error));
        let roots = roots
            .iter()
            .map(|root| Certificate::from_der(root))
            .collect::<Result<Vec<_>, _>>()
            .map_err(setup)?;
        let client = || builder().tls_certs_merge(roots.clone());
        Ok(Self {
            // Break it: leave the resolver out; a name with a private address is then asked.
            careful: client()
                .dns_resolver(Checked { lookup, rules })
                .build()
                .map_err(setup)?,
            plain: client().build().map_err(setup)?,
            rules,
        })
    }

    async fn follow(&self, question: &Question<'_>) -> Result<Answer, ProbeError> {
        let begun = Instant::now();
        let mut url = question.url.clone();
        let own = url.origin();
        let mut hops = 0;
        let response = loop {
            let sent = url.origin() == own;
            let response = self
                .hop(&url, question.method, sent.then_some(question.headers))
                .await?;
            match next(&response, &url, question)? {
                None => break response,
                Some(_) if hops == question.redirects => {
                    return Err(ProbeError::Redirects(question.redirects));
                }
                Some(next) => url = next,
            }
            hops += 1;
        };
        answer(response, &url, question.body, begun).await
    }

    /// One request to one address, which is looked at first. A name is looked at where it is resolved.
    async fn hop(
        &self,
        url: &Url,
        method: &Method,
        headers: Option<&HeaderMap>,
    ) -> Result<Response, ProbeError> {
        // Break it: leave this out; an address that stands in the URL itself meets no resolver.
        if let Some(kind) = self.rules.refusal_of(url) {
            return Err(ProbeError::Refused {
                host: host(url),
                kind,
            });
        }
        let mut request = self.careful.request(method.clone(), url.clone());
        if let Some(headers) = headers {
            request = request.headers(headers.clone());
        }
        let response = request
            .send()
            .await
            .map_err(|error| explained(url, &error))?;
        // Whatever was resolved and checked: this is who answered.
        match response
            .remote_addr()
            .and_then(|address| self.rules.refusal(address.ip()))
        {
            Some(kind) => Err(ProbeError::Refused {
                host: host(url),
                kind,
            }),
            None => Ok(response),
        }
    }
}

#[async_trait]
impl Probe for HttpProbe {
    async fn ask(&self, question: &Question<'_>) -> Result<Answer, ProbeError> {
        tokio::time::timeout(question.deadline, self.follow(question))
            .await
            .unwrap_or(Err(ProbeError::Deadline(question.deadline)))
    }

    async fn reaches(&self, target: &Url, deadline: Duration) -> bool {
        let asked = self.plain.head(target.clone()).send();
        matches!(tokio::time::timeout(deadline, asked).await, Ok(Ok(_)))
    }
}

/// A client that follows nothing by itself, repeats nothing, keeps no connection and knows no proxy: a proxy would resolve names
/// itself.
fn builder() -> ClientBuilder {
    https::builder(true)
        .user_agent(AGENT)
        .pool_max_idle_per_host(0)
        .referer(false)
        .http1_only()
        .tls_info(true)
}

/// Where a redirect leads, if this answer is one that is followed.
fn next(
    response: &Response,
    from: &Url,
    question: &Question<'_>,
) -> Result<Option<Url>, ProbeError> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION);
    let (true, true, Some(location)) = (redirects, question.redirects > 0, location) else {
        return Ok(None);
    };
    let refused = |problem| ProbeError::Redirect {
        host: host(from),
        problem,
    };
    let text = location
        .to_str()
        .map_err(|_| refused("something that is no address"))?;
    let next = from
        .join(text)
        .map_err(|_| refused("something that is no address"))?;
    if !matches!(next.scheme(), "http" | "https") || next.host().is_none() {
        return Err(refused("something that is no web page"));
    }
    if !next.username().is_empty() || next.password().is_some() {
        return Err(refused("an address with a user name or password"));
    }
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(refused("clear text, away from https"));
    }
    Ok(Some(next))
}

/// Reads what is wanted of an answer.
async fn answer(
    mut response: Response,
    url: &Url,
    wanted: Option<usize>,
    begun: Instant,
) -> Result<Answer, ProbeError> {
    let certificate = response
        .extensions()
        .get::<TlsInfo>()
        .and_then(TlsInfo::peer_certificate);
    let (authentic, certificate_ends) = (certificate.is_some(), certificate.and_then(valid_until));
    let mut body = Vec::new();
    if let Some(most) = wanted {
        while let Some(piece) = response
            .chunk()
            .await
            .map_err(|error| explained(url, &error))?
        {
            // Break it: leave the bound out; an endpoint that never ends fills the memory.
            if piece.len() > most.saturating_sub(body.len()) {
                return Err(ProbeError::Large(most));
            }
            body.extend_from_slice(&piece);
        }
    }
    Ok(Answer {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body,
        latency: begun.elapsed(),
        certificate_ends,
        authentic,
    })
}

/// Host and port of a URL, which may be shown.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map_or_else(String::new, |port| format!(":{port}"));
    shown(&format!("{host}{port}"))
}

/// What the client says. What our own resolver said lies among the causes.
fn explained(url: &Url, error: &reqwest::Error) -> ProbeError {
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(ours) = next.downcast_ref::<ProbeError>() {
            return ours.clone();
        }
        cause = next.source();
    }
    ProbeError::Unreachable {
        host: host(url),
        reason: words(error),
    }
}

/// The causes of an error, each said once and clipped, without the URL, whose query may be a secret.
fn words(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&words);
        }
        cause = next.source();
    }
    if text.is_empty() {
        "the connection broke off".clone_into(&mut text);
    }
    shown(&text)
}
