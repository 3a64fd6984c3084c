//! Embedders that are asked by HTTP in the form of `OpenAI`'s interface: `POST {base}/embeddings`.

pub mod answer;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{EmbedError, Embedder, MOST_TEXTS};
use crate::clock::Clock;
use crate::https;
pub use crate::https::patience::{self, Patience};
use crate::intent::{EmbedderId, Outage};

/// Requests under way at once.
const AT_ONCE: usize = 16;
/// Which of several organisations of one key pays, `OpenAI` asks in this header.
const ORGANISATION: HeaderName = HeaderName::from_static("openai-organization");

/// Why an embedder cannot be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpEmbedderError {
    /// What cannot stand in a header.
    #[error(
        "setting up the embedder {embedder}: the {what} holds characters that no header may hold; look at the variable that it comes from"
    )]
    Header {
        /// Which embedder.
        embedder: EmbedderId,
        /// `key` or `organisation`.
        what: &'static str,
    },
    /// Clear text beyond this machine, or no base of addresses.
    #[error(
        "setting up the embedder {embedder}: base_url is neither https nor http on loopback; keys and texts are not sent in clear text"
    )]
    Address {
        /// Which embedder.
        embedder: EmbedderId,
    },
    /// The HTTP client could not be made.
    #[error(
        "setting up the embedder {embedder}: the HTTPS client cannot be made ({reason}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client {
        /// Which embedder.
        embedder: EmbedderId,
        /// What is wrong.
        reason: String,
    },
}

/// What an embedder is asked with.
#[derive(Debug, Clone)]
pub struct HttpEmbedderSettings {
    /// Its id.
    pub id: EmbedderId,
    /// The model, as the provider names it.
    pub model: String,
    /// The base of its addresses, https or loopback; slashes at its end do not count.
    pub base: Url,
    /// Sent as `Authorization: Bearer`.
    pub key: Option<SecretString>,
    /// Sent as `OpenAI-Organization`.
    pub organisation: Option<String>,
    /// How long it is waited for.
    pub patience: Patience,
}

/// An embedder that is asked by HTTP.
pub struct HttpEmbedder {
    id: EmbedderId,
    model: String,
    url: Url,
    client: Client,
    key: Option<HeaderValue>,
    organisation: Option<HeaderValue>,
    patience: Patience,
    clock: Arc<dyn Clock>,
    random: fn() -> u64,
    dimension: OnceLock<usize>,
    turns: Semaphore,
}

impl HttpEmbedder {
    /// An embedder; nothing is asked yet. `random` gives bits for the pauses between requests.
    ///
    /// # Errors
    /// A key that is no text of a header, an address in clear text, or no root certificates.
    pub fn new(
        settings: HttpEmbedderSettings,
        clock: Arc<dyn Clock>,
        random: fn() -> u64,
    ) -> Result<Self, HttpEmbedderError> {
        let HttpEmbedderSettings { id, patience, .. } = settings;
        let local = https::is_loopback(&settings.base);
        let base = settings.base.as_str().trim_end_matches('/');
        // Break it: take any address; texts and keys then cross networks in clear text
        // (`embedder::asking::clear_text_is_for_loopback_only`).
        let safe = settings.base.scheme() == "https" || settings.base.scheme() == "http" && local;
        let url = Url::parse(&format!("{base}/embeddings")).ok();
        let Some(url) = url.filter(|_| safe) else {
            return Err(HttpEmbedderError::Address { embedder: id });
        };
        let header = |text: &str, what| {
            let header = HeaderValue::from_str(text);
            header.map_err(|_| HttpEmbedderError::Header {
                embedder: id.clone(),
                what,
            })
        };
        let mut key = match &settings.key {
            Some(key) => Some(header(&format!("Bearer {}", key.expose_secret()), "key")?),
            None => None,
        };
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        let organisation = settings.organisation.as_deref();
        let organisation = organisation
            .map(|name| header(name, "organisation"))
            .transpose()?;
        let client = https::builder(local).build();
        let client = client.map_err(|error| HttpEmbedderError::Client {
            embedder: id.clone(),
            reason: https::words(error),
        })?;
        Ok(Self {
            id,
            model: settings.model,
            url,
            client,
            key,
            organisation,
            patience,
            clock,
            random,
            dimension: OnceLock::new(),
            turns: Semaphore::new(AT_ONCE),
        })
    }

    fn failed(&self, outage: Outage, detail: String) -> Failed {
        Failed {
            error: EmbedError {
                embedder: self.id.clone(),
                outage,
                detail,
            },
            again: None,
        }
    }

    /// The same, of something that may pass.
    fn passing(&self, outage: Outage, detail: String, wait: Option<Duration>) -> Failed {
        Failed {
            again: Some(wait.unwrap_or_default()),
            ..self.failed(outage, detail)
        }
    }

    fn late(&self) -> Failed {
        let waited = self.patience.deadline.as_millis();
        self.failed(
            Outage::Deadline,
            format!("no answer within {waited} ms; is it overloaded?"),
        )
    }

    /// Asks until there is an answer, or no point in asking again.
    async fn persist(&self, texts: &[&str], end: Instant) -> Result<Vec<Vec<f32>>, Failed> {
        let body = serde_json::json!({"model": self.model, "input": texts}).to_string();
        let mut asked = 0;
        loop {
            let attempt = end.min(Instant::now() + self.patience.attempt);
            let tried = timeout_at(attempt, self.ask(&body, texts.len())).await;
            let failed = match tried {
                Ok(Ok(vectors)) => return Ok(vectors),
                Ok(Err(failed)) => failed,
                Err(_) => Failed {
                    again: Some(Duration::ZERO),
                    ..self.late()
                },
            };
            asked += 1;
            let left = end.saturating_duration_since(Instant::now());
            let pause = failed
                .again
                .and_then(|server| self.patience.pause(asked, server, left, (self.random)()));
            let Some(pause) = pause else {
                return Err(failed);
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// One request and its answer.
    async fn ask(&self, body: &str, texts: usize) -> Result<Vec<Vec<f32>>, Failed> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_owned());
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        if let Some(organisation) = &self.organisation {
            request = request.header(ORGANISATION, organisation.clone());
        }
        let sent = request.send().await;
        let response =
            sent.map_err(|error| self.passing(Outage::Unreachable, https::words(error), None))?;
        let status = response.status();
        if status != StatusCode::OK {
            return Err(self.refused(status, &response));
        }
        let bytes = self.body(response).await?;
        let known = self.dimension.get().copied();
        let vectors = answer::read(&bytes, texts, known)
            .map_err(|error| self.failed(error.outage(), error.to_string()))?;
        let found = vectors.first().map_or(0, Vec::len);
        // Two first answers at once may differ.
        let expected = *self.dimension.get_or_init(|| found);
        if expected == found {
            Ok(vectors)
        } else {
            let error = answer::AnswerError::Dimension { expected, found };
            Err(self.failed(error.outage(), error.to_string()))
        }
    }

    /// What a status means. Its words, which are the provider's, are not read.
    fn refused(&self, status: StatusCode, response: &Response) -> Failed {
        let number = status.as_u16();
        let outage = match status {
            StatusCode::TOO_MANY_REQUESTS => Outage::RateLimited,
            status if status.is_server_error() => Outage::Failing,
            status if status.is_client_error() => Outage::Refused,
            _ => Outage::Redirected,
        };
        let mend = match number {
            401 | 403 => "is the key right?",
            404 => "are base_url and model right?",
            429 => "it wants fewer requests",
            300..=399 => "redirects are not followed; set base_url to where it is",
            500..=599 => "it is failing",
            _ => "does it have this model, and take texts of this length?",
        };
        let detail = format!("it answered with status {number}; {mend}");
        if !https::may_pass(status) {
            return self.failed(outage, detail);
        }
        let header = response.headers().get(RETRY_AFTER);
        let wait = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| patience::retry_after(value, self.clock.now()));
        self.passing(outage, detail, wait)
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failed> {
        let mut body = Vec::new();
        loop {
            let piece = response.chunk().await;
            let piece = piece
                .map_err(|error| self.passing(Outage::Unreachable, https::words(error), None))?;
            let Some(piece) = piece else {
                return Ok(body);
            };
            // Break it: leave the bound out; an answer that never ends then fills the memory
            // (`embedder::asking::an_answer_of_gigabytes_is_not_read`).
            if piece.len() > answer::MOST_BYTES.saturating_sub(body.len()) {
                let detail = format!("its answer has more than {} bytes", answer::MOST_BYTES);
                return Err(self.failed(Outage::Oversized, detail));
            }
            body.extend_from_slice(&piece);
        }
    }
}

/// A failed request; if it may be repeated, after how long at least.
struct Failed {
    error: EmbedError,
    again: Option<Duration>,
}

#[async_trait]
impl Embedder for HttpEmbedder {
    fn id(&self) -> &EmbedderId {
        &self.id
    }

    fn dimension(&self) -> Option<usize> {
        self.dimension.get().copied()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        if texts.len() > MOST_TEXTS {
            let detail = format!("more than {MOST_TEXTS} texts at once");
            return Err(self.failed(Outage::Count, detail).error);
        }
        let end = Instant::now() + self.patience.deadline;
        let asked = timeout_at(end, async {
            let _turn = self.turns.acquire().await;
            self.persist(texts, end).await
        });
        // Break it: wait without the deadline; an embedder that hangs then holds the task
        // (`embedder::asking::an_embedder_that_hangs_is_given_up`).
        let answered = asked.await.unwrap_or_else(|_| Err(self.late()));
        answered.map_err(|failed| failed.error)
    }
}

/// Neither key nor organisation.
impl std::fmt::Debug for HttpEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpEmbedder({})", self.id)
    }
}
