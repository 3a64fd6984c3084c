//! One POST a message.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use url::Url;

use super::{Notification, Notifier, NotifyError};
use crate::https;

/// How much of an answer is read, in bytes, and thrown away: enough for a receiver that says thank you to be listened to.
const ANSWER_BYTES: usize = 64 * 1024;

/// Why a webhook cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookSetupError {
    /// A deadline of zero.
    #[error("setting up a webhook: the deadline of a message must be longer than zero")]
    Deadline,
    /// The HTTP client could not be made.
    #[error(
        "setting up a webhook: the HTTPS client cannot be made ({0}); are root certificates installed (Debian: ca-certificates)?"
    )]
    Client(String),
}

/// A receiver of one JSON POST a message. Statuses 200 to 299 mean that it took the message.
pub struct Webhook {
    client: reqwest::Client,
    url: Url,
    deadline: Duration,
}

impl Webhook {
    /// A webhook at an address from the configuration; `deadline` is how long one message may take, its answer included.
    ///
    /// # Errors
    /// A deadline of zero, or no root certificates.
    pub fn new(url: Url, deadline: Duration) -> Result<Self, WebhookSetupError> {
        if deadline.is_zero() {
            return Err(WebhookSetupError::Deadline);
        }
        let client =
            https::client(&url).map_err(|error| WebhookSetupError::Client(https::words(error)))?;
        Ok(Self {
            client,
            url,
            deadline,
        })
    }

    /// Scheme and host, the part of the address that may be shown.
    fn address(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self
            .url
            .port()
            .map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{host}{port}/…", self.url.scheme())
    }

    fn unreachable(&self, reason: String) -> NotifyError {
        NotifyError::Unreachable {
            address: self.address(),
            reason,
        }
    }

    async fn send(&self, body: String) -> Result<reqwest::Response, NotifyError> {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        // Break it: leave `without_url` out; the webhook's secret path then stands in logs and audit events
        // (`notify::no_secret_of_address_or_message_shows_in_errors_or_debugging`).
        request
            .send()
            .await
            .map_err(|error| self.unreachable(https::words(error)))
    }

    fn taken(&self, status: StatusCode) -> Result<(), NotifyError> {
        let address = self.address();
        let number = status.as_u16();
        if status.is_success() {
            Ok(())
        } else if https::may_pass(status) {
            Err(NotifyError::Unavailable {
                address,
                status: number,
            })
        } else {
            Err(NotifyError::Refused {
                address,
                status: number,
            })
        }
    }
}

#[async_trait]
impl Notifier for Webhook {
    async fn notify(&self, notification: &Notification) -> Result<(), NotifyError> {
        let body = serde_json::to_string(notification)
            .map_err(|error| self.unreachable(format!("the message is no JSON: {error}")))?;
        let end = tokio::time::Instant::now() + self.deadline;
        let response = tokio::time::timeout_at(end, self.send(body))
            .await
            .unwrap_or_else(|_| {
                let milliseconds = self.deadline.as_millis();
                Err(self.unreachable(format!("no answer within {milliseconds} ms")))
            })?;
        let status = response.status();
        // The status has said it all; an answer that does not end in time changes nothing.
        drop(tokio::time::timeout_at(end, swallow(response)).await);
        self.taken(status)
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webhook({})", self.address())
    }
}

/// Reads an answer to its end, but not without bound, so that a receiver that writes one does not meet a broken pipe. What it
/// says is not kept: it may repeat the message, which may carry an approval link.
async fn swallow(mut response: reqwest::Response) {
    let mut read = 0_usize;
    while read < ANSWER_BYTES
        && let Ok(Some(piece)) = response.chunk().await
    {
        read = read.saturating_add(piece.len());
    }
}
