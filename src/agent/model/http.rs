//! A model that is asked by HTTP: one request, one answer.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::{
    Answer, Class, Conversation, LanguageModel, Limits, ModelError, Protocol, Usage, refusal,
};
use crate::clock::Clock;
use crate::https::{self, patience};

/// Most bytes of an answer.
const MOST_BYTES: usize = 4 << 20;
/// Most bytes of a refusal, which only its class is told from.
const MOST_REFUSAL_BYTES: usize = 64 << 10;
/// Bytes taken for a token where the provider does not count.
const BYTES_A_TOKEN: usize = 4;
/// The version of Anthropic's interface.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// Why a model cannot be asked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpModelError {
    /// A key that cannot stand in a header.
    #[error(
        "setting up the model {model}: the key holds characters that no header may hold; look at where it comes from"
    )]
    Key {
        /// Which model.
        model: String,
    },
    /// Clear text beyond this machine, or no base of addresses.
    #[error(
        "setting up the model {model}: base_url is neither https nor http on loopback; keys and code are not sent in clear text"
    )]
    Address {
        /// Which model.
        model: String,
    },
    /// The HTTP client could not be made.
    #[error(
        "setting up the model {model}: the HTTPS client cannot be made ({reason}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client {
        /// Which model.
        model: String,
        /// What is wrong.
        reason: String,
    },
}

/// What a model is asked with.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Whose wire format it speaks.
    pub protocol: Protocol,
    /// Its name, as the provider spells it.
    pub name: String,
    /// The base of its addresses, https or loopback; slashes at its end do not count.
    pub base: Url,
    /// Its key.
    pub key: Option<SecretString>,
    /// What requests ask for.
    pub limits: Limits,
}

/// A model that is asked by HTTP.
pub struct HttpModel {
    shown: String,
    name: String,
    protocol: Protocol,
    url: Url,
    key: Option<(HeaderName, HeaderValue)>,
    limits: Limits,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl HttpModel {
    /// A model; nothing is asked yet. The clock is for dates in `Retry-After`.
    ///
    /// # Errors
    /// A key that is no text of a header, an address in clear text, or no root certificates.
    pub fn new(settings: ModelSettings, clock: Arc<dyn Clock>) -> Result<Self, HttpModelError> {
        let ModelSettings { protocol, name, .. } = settings;
        let shown = format!("{}:{name}", protocol.name());
        let local = https::is_loopback(&settings.base);
        // Break it: take any address; keys and code then cross networks in clear text
        // (`agent::model_asking::clear_text_is_for_loopback_only`).
        let safe = settings.base.scheme() == "https" || settings.base.scheme() == "http" && local;
        let url = below(&settings.base, &protocol.path(&name)).filter(|_| safe);
        let Some(url) = url else {
            return Err(HttpModelError::Address { model: shown });
        };
        let (header, before) = protocol.key_header();
        let key = match &settings.key {
            Some(key) => {
                let value = HeaderValue::from_str(&format!("{before}{}", key.expose_secret()));
                let mut value = value.map_err(|_| HttpModelError::Key {
                    model: shown.clone(),
                })?;
                value.set_sensitive(true);
                Some((HeaderName::from_static(header), value))
            }
            None => None,
        };
        let client = https::builder(local).build();
        let client = client.map_err(|error| HttpModelError::Client {
            model: shown.clone(),
            reason: https::words(error),
        })?;
        Ok(Self {
            shown,
            name,
            protocol,
            url,
            key,
            limits: settings.limits,
            client,
            clock,
        })
    }

    fn failed(&self, class: Class, detail: String) -> ModelError {
        ModelError {
            model: self.shown.clone(),
            class,
            detail,
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        self.failed(Class::Retry, https::words(error))
    }

    async fn refused(&self, response: Response) -> ModelError {
        let status = response.status();
        let header = response.headers().get(RETRY_AFTER);
        let after = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| patience::retry_after(value, self.clock.now()));
        // A refusal that is too long or breaks off is told from its status alone.
        let body = self.body(response, MOST_REFUSAL_BYTES).await;
        let refusal = refusal(status, after, &body.unwrap_or_default());
        self.failed(refusal.class, refusal.detail)
    }

    async fn body(&self, mut response: Response, most: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        loop {
            let piece = response.chunk().await;
            let Some(piece) = piece.map_err(|error| self.unreachable(error))? else {
                return Ok(body);
            };
            // Break it: leave the bound out; an answer that never ends then fills the memory
            // (`agent::model_asking::an_answer_of_gigabytes_is_not_read`).
            if piece.len() > most.saturating_sub(body.len()) {
                let detail = format!("its answer has more than {most} bytes");
                return Err(self.failed(Class::Permanent, detail));
            }
            body.extend_from_slice(&piece);
        }
    }
}

/// The address below a base; each word is one piece of the path, whatever stands in it.
fn below(base: &Url, words: &[String]) -> Option<Url> {
    let mut url = base.clone();
    url.set_path(base.path().trim_end_matches('/'));
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty().extend(words.iter());
    drop(path);
    Some(url)
}

#[async_trait]
impl LanguageModel for HttpModel {
    fn name(&self) -> &str {
        &self.shown
    }

    async fn ask(&self, conversation: &Conversation) -> Result<Answer, ModelError> {
        let body = self
            .protocol
            .request(&self.name, conversation, self.limits)
            .to_string();
        let sent = body.len();
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        if let Some((header, key)) = &self.key {
            request = request.header(header, key.clone());
        }
        if self.protocol == Protocol::Anthropic {
            let (header, version) = VERSION;
            request = request.header(header, version);
        }
        let response = request.send().await;
        let response = response.map_err(|error| self.unreachable(error))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(response).await);
        }
        let bytes = self.body(response, MOST_BYTES).await?;
        let answer = self.protocol.answer(&bytes);
        // What stands between here and a provider answers in its own form when it is overloaded.
        let mut answer = answer.map_err(|error| self.failed(Class::Retry, error.to_string()))?;
        // Break it: count nothing where nothing is counted; the budget of tokens then never ends
        // (`agent::builtin_budget::who_does_not_count_tokens_is_counted_by_bytes`).
        answer.usage.get_or_insert(Usage {
            input: tokens(sent),
            output: tokens(bytes.len()),
        });
        Ok(answer)
    }
}

fn tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(BYTES_A_TOKEN)).unwrap_or(u64::MAX)
}

/// Not the key.
impl std::fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpModel({})", self.shown)
    }
}
