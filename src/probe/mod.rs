//! One question to an endpoint by HTTP: only addresses that may be asked, redirects looked at one by one, one deadline over all
//! of it, a bound on what is read. What the answer means is the watch's business.

mod address;
mod certificate;
mod client;
mod resolve;

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Method};
use url::Url;

pub use address::AddressRules;
pub use certificate::valid_until;
pub use client::{HttpProbe, ProbeSetupError};
pub use resolve::{Lookup, SystemLookup};

use crate::clock::Millis;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// How.
    pub method: &'a Method,
    /// What; http or https, without user name and password.
    pub url: &'a Url,
    /// Sent along; to the endpoint's own origin only, never to where it redirects.
    pub headers: &'a HeaderMap,
    /// How long everything may take, names and redirects included.
    pub deadline: Duration,
    /// How many redirects are followed; the one after that is an error, with 0 a redirect is an answer like any other.
    pub redirects: u32,
    /// How many bytes of the body are read at most; none reads nothing of it.
    pub body: Option<usize>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, whole; empty when it was not asked for.
    pub body: Vec<u8>,
    /// How long it took.
    pub latency: Duration,
    /// When the certificate of the host that answered ends; none without TLS, or when it cannot be read.
    pub certificate_ends: Option<Millis>,
    /// Whether whoever answered proved with a certificate that it is the host that was asked.
    pub authentic: bool,
}

/// Why there is no answer. No message repeats a query, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The address is not asked.
    #[error("{host} is {kind}, so it is not asked")]
    Refused {
        /// The host, with its address.
        host: String,
        /// What is wrong with the address.
        kind: &'static str,
    },
    /// A redirect to what is no address to ask.
    #[error("{host} redirects to {problem}")]
    Redirect {
        /// Who redirects.
        host: String,
        /// Where to, and why that is not followed.
        problem: &'static str,
    },
    /// A chain of redirects that does not end.
    #[error("more than {0} redirects")]
    Redirects(u32),
    /// The name has no address, or nobody says.
    #[error("the name {host} cannot be resolved: {reason}")]
    Name {
        /// The name.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// No connection, no trusted certificate, or no HTTP.
    #[error("{host}: {reason}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// What happened.
        reason: String,
    },
    /// The deadline passed.
    #[error("no answer within {} ms", .0.as_millis())]
    Deadline(Duration),
    /// The body is longer than is read.
    #[error("the answer is longer than {0} bytes")]
    Large(usize),
}

/// Asks endpoints.
#[async_trait]
pub trait Probe: Send + Sync {
    /// Asks once. Nothing is repeated.
    async fn ask(&self, question: &Question<'_>) -> Result<Answer, ProbeError>;
    /// Whether anything at all answers by HTTP at an address that the operator has named; its address is not judged.
    async fn reaches(&self, target: &Url, deadline: Duration) -> bool;
}
