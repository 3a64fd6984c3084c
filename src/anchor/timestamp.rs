//! Timestamp authorities (RFC 3161): somebody who signs that bytes existed at a moment, and never learns which bytes.
//!
//! What is stamped is SHA-256 of [`SignedCheckpoint::without_cosignatures`]. The receipt is the authority's whole answer,
//! so that `openssl ts -verify -data CHECKPOINT -in RECEIPT -CAfile ROOTS` says the same as [`verify_timestamp`].

mod algorithm;
mod certificate;
mod der;
mod info;
mod request;
mod response;
mod token;

use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use url::Url;

pub use certificate::{Roots, RootsError};
pub use request::{Nonce, request};

use super::{Anchor, AnchorError, AnchorKind, LogReader, Receipt};
use crate::audit::{Stamped, TimestampRoots};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::https;
use crate::log::SignedCheckpoint;
use token::Token;

/// The longest answer that is read, in bytes. Real ones have 1,000 to 8,000.
pub const MAX_RESPONSE: usize = 64 * 1024;
/// How far an authority's clock may be from ours, in milliseconds.
pub const CLOCKS_APART: i64 = 5 * 60 * 1000;
/// How long an answer may take, unless somebody says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Why an answer is no timestamp of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// More than is read.
    #[error("the answer has {length} bytes, at most {MAX_RESPONSE} are read")]
    TooLong {
        /// Bytes.
        length: usize,
    },
    /// Not in the form of RFC 3161 and DER.
    #[error("{part} does not have the form of a timestamp (RFC 3161, DER)")]
    Malformed {
        /// Which part.
        part: &'static str,
    },
    /// The authority gave none.
    #[error("the authority gave no timestamp, status {status}: {words}")]
    Rejected {
        /// Its number (`PKIStatus`).
        status: u32,
        /// Its words, made printable.
        words: String,
        /// Whether it may be otherwise later.
        passing: bool,
    },
    /// An algorithm that does not count.
    #[error("{part} uses the algorithm {found}, which does not count here")]
    Algorithm {
        /// Where.
        part: &'static str,
        /// Its object identifier.
        found: String,
    },
    /// An extension that has to be understood.
    #[error("it has the critical extension {oid}, which is not known here")]
    Extension {
        /// Its object identifier.
        oid: String,
    },
    /// Not exactly one signer.
    #[error("it has more than one signer")]
    Signers,
    /// More certificates than are looked at.
    #[error("it brings more certificates than are looked at")]
    Certificates,
    /// An attribute that has to be signed.
    #[error("the signature does not cover the attribute {name}")]
    Attribute {
        /// Its name.
        name: &'static str,
    },
    /// The signer's certificate is not there.
    #[error("it does not bring the certificate that its signature names")]
    NoCertificate,
    /// Not signed by that certificate's key.
    #[error("the signature is not that of the certificate's key over this content")]
    Signature,
    /// A key for something else.
    #[error("the signer's key is not for timestamps alone: its certificate {found}")]
    Purpose {
        /// What it says.
        found: String,
    },
    /// The certificate does not lead to a root, or did not at that moment.
    #[error("the signer's certificate does not lead to a root that you trust: {reason}")]
    Chain {
        /// Why not.
        reason: String,
    },
    /// About something else.
    #[error("it is about other bytes: those with the SHA-256 {found}")]
    Imprint {
        /// What it is about.
        found: Sha256Digest,
    },
}

/// Verifies a timestamp as an authority answered it, over bytes with the SHA-256 `imprint`. It depends on nothing else: a receipt
/// that verified once does so for ever under the same roots.
///
/// # Errors
/// It is no timestamp over these bytes by somebody whose certificate led to one of the roots at the moment that it says.
pub fn verify_timestamp(
    response: &[u8],
    imprint: &Sha256Digest,
    roots: &Roots,
) -> Result<Stamped, TimestampError> {
    let token = Token::parse(response::token(response)?)?;
    let info = token.info()?;
    // Break it: drop this; the timestamp of any bytes is then one of these
    // (`anchor::attacks::a_timestamp_of_other_bytes_is_refused`).
    if info.imprint != *imprint {
        return Err(TimestampError::Imprint {
            found: info.imprint,
        });
    }
    let signer = token.verify(&info, roots)?;
    Ok(Stamped {
        authority: signer.name(),
        key: signer.key(),
        at: info.at,
        accuracy_millis: info.accuracy_millis,
        nonce: info.nonce.map(<[u8]>::to_vec),
        policy: info.policy,
    })
}

impl TimestampRoots for Roots {
    fn verify(&self, response: &[u8], imprint: &Sha256Digest) -> Result<Stamped, String> {
        verify_timestamp(response, imprint, self).map_err(|error| error.to_string())
    }
}

/// Why an authority cannot be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampSetupError {
    /// A deadline of zero.
    #[error("setting up a timestamp authority: the deadline of an answer must be longer than zero")]
    Deadline,
    /// The HTTP client could not be made.
    #[error(
        "setting up a timestamp authority: the HTTPS client cannot be made ({0}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client(String),
}

/// Where the bits of a nonce come from; an error says in words why there are none.
type Random = Box<dyn Fn() -> Result<u64, String> + Send + Sync>;

/// A timestamp authority.
pub struct Timestamp {
    name: String,
    url: Url,
    roots: Roots,
    deadline: Duration,
    client: reqwest::Client,
    random: Random,
}

impl Timestamp {
    /// The authority at an address from the configuration, whose certificate has to lead to `roots`; `deadline` is how long an
    /// answer may take, to its end.
    ///
    /// # Errors
    /// A deadline of zero, or no root certificates for HTTPS.
    pub fn new(
        name: String,
        url: Url,
        roots: Roots,
        deadline: Duration,
    ) -> Result<Self, TimestampSetupError> {
        if deadline.is_zero() {
            return Err(TimestampSetupError::Deadline);
        }
        let client = https::client(&url);
        let client = client.map_err(|error| TimestampSetupError::Client(https::words(error)))?;
        let random = || getrandom::u64().map_err(|error| error.to_string());
        Ok(Self {
            name,
            url,
            roots,
            deadline,
            client,
            random: Box::new(random),
        })
    }

    /// With other random bits than the system's.
    #[must_use]
    pub fn with_random(
        mut self,
        random: impl Fn() -> Result<u64, String> + Send + Sync + 'static,
    ) -> Self {
        self.random = Box::new(random);
        self
    }

    fn action(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("asking the timestamp authority {} at {host}", self.name)
    }

    fn unanswered(&self, reason: String) -> AnchorError {
        AnchorError::Unanswered {
            action: self.action(),
            reason,
        }
    }

    fn refused(&self, reason: String, mend: &str) -> AnchorError {
        AnchorError::Refused {
            action: self.action(),
            reason,
            mend: mend.to_owned(),
        }
    }

    /// The answer to a request, whole.
    async fn ask(&self, request: Vec<u8>) -> Result<Vec<u8>, AnchorError> {
        let query = HeaderValue::from_static("application/timestamp-query");
        let sent = self.client.post(self.url.clone());
        let sent = sent.header(CONTENT_TYPE, query).body(request).send().await;
        let mut response = sent.map_err(|error| self.unanswered(https::words(error)))?;
        let status = response.status();
        if https::may_pass(status) {
            return Err(self.unanswered(format!("it answered {status}")));
        }
        if status != StatusCode::OK {
            let mend = "look whether the address in anchor.timestamps is the authority's";
            return Err(self.refused(format!("it answered {status}"), mend));
        }
        let mut body = Vec::new();
        loop {
            let piece = response.chunk().await;
            let Some(piece) = piece.map_err(|error| self.unanswered(https::words(error)))? else {
                return Ok(body);
            };
            // Break it: leave the bound out; an answer that never ends then fills the memory
            // (`anchor::timestamp::an_answer_without_end_is_not_read_to_it`).
            if piece.len() > MAX_RESPONSE.saturating_sub(body.len()) {
                let reason = format!("its answer has more than {MAX_RESPONSE} bytes");
                return Err(self.refused(reason, NOT_AN_AUTHORITY));
            }
            body.extend_from_slice(&piece);
        }
    }

    /// An answer is a timestamp of what was asked for, made now.
    fn check(
        &self,
        response: &[u8],
        imprint: &Sha256Digest,
        nonce: Nonce,
        now: Millis,
    ) -> Result<(), AnchorError> {
        let stamped = verify_timestamp(response, imprint, &self.roots);
        let stamped = stamped.map_err(|error| match error {
            TimestampError::Rejected { passing: true, .. } => self.unanswered(error.to_string()),
            error => self.refused(error.to_string(), mend(&error)),
        })?;
        // Break it: drop this; the answer to an earlier request then passes for one to this
        // (`anchor::timestamp::the_answer_to_another_request_is_refused`).
        if stamped.nonce.as_deref() != Some(nonce.octets()) {
            let reason = "it is the answer to another request: its nonce is not ours";
            return Err(self.refused(
                reason.to_owned(),
                "somebody between may repeat old answers; ask it by https",
            ));
        }
        // Break it: drop this; an authority whose clock is wrong then dates everything wrong
        // (`anchor::timestamp::a_clock_that_is_far_from_ours_is_refused`).
        if stamped.at.0.abs_diff(now.0) > CLOCKS_APART.unsigned_abs() {
            let reason = format!("it says that it is {}, our clock says {now}", stamped.at);
            return Err(self.refused(reason, "look which of the clocks is wrong"));
        }
        Ok(())
    }
}

/// What is stamped of a checkpoint.
fn imprint(checkpoint: &SignedCheckpoint) -> Sha256Digest {
    Sha256Digest::of(checkpoint.without_cosignatures().as_bytes())
}

const NOT_AN_AUTHORITY: &str =
    "look whether the address in anchor.timestamps is that of a timestamp authority";

/// What a person does about an answer that is no good.
const fn mend(error: &TimestampError) -> &'static str {
    match error {
        TimestampError::TooLong { .. } | TimestampError::Malformed { .. } => NOT_AN_AUTHORITY,
        TimestampError::Chain { .. } => {
            "put the authority's root certificate into the file that anchor.timestamps names as roots"
        }
        TimestampError::Rejected { .. } => "ask whoever runs it what it serves",
        _ => "use another authority, and tell whoever runs this one",
    }
}

#[async_trait]
impl Anchor for Timestamp {
    fn kind(&self) -> AnchorKind {
        AnchorKind::Timestamp
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn confirm(
        &self,
        checkpoint: &SignedCheckpoint,
        receipt: &Receipt,
    ) -> Result<(), AnchorError> {
        let stamped = verify_timestamp(&receipt.bytes, &imprint(checkpoint), &self.roots);
        stamped
            .map(drop)
            .map_err(|error| self.refused(error.to_string(), mend(&error)))
    }

    async fn anchor(
        &self,
        checkpoint: &SignedCheckpoint,
        _log: &dyn LogReader,
        _last: Option<&Receipt>,
        now: Millis,
    ) -> Result<Receipt, AnchorError> {
        let imprint = imprint(checkpoint);
        let nonce = (self.random)().map(Nonce::of);
        let nonce = nonce.map_err(|reason| self.unanswered(reason))?;
        let asked = self.ask(request(&imprint, nonce));
        let bytes = tokio::time::timeout(self.deadline, asked).await;
        let bytes = bytes.unwrap_or_else(|_| {
            let milliseconds = self.deadline.as_millis();
            Err(self.unanswered(format!("no whole answer within {milliseconds} ms")))
        })?;
        self.check(&bytes, &imprint, nonce, now)?;
        Ok(Receipt {
            size: checkpoint.claimed().head().size(),
            bytes,
        })
    }
}

impl std::fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Timestamp({} at {})",
            self.name,
            self.url.host_str().unwrap_or_default()
        )
    }
}
