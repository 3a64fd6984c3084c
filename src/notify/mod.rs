//! Notifications to people: one JSON document for each message, sent once. Repeating and spacing attempts is the worker's
//! business, never done here.

mod notification;
mod webhook;

use async_trait::async_trait;

pub use notification::{ApprovalLink, Notification};
pub use webhook::{Webhook, WebhookSetupError};

/// Why a message did not reach one receiver. Addresses are shown as scheme and host only: the path of a webhook often is its
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotifyError {
    /// Nothing answered, the answer broke off, or the deadline passed. The message may have arrived.
    #[error(
        "notifying {address}: {reason}; check that the receiver runs and that `notify` names it"
    )]
    Unreachable {
        /// Scheme and host.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The receiver says that it cannot take messages now.
    #[error("notifying {address}: it answered {status}, so it cannot take messages now")]
    Unavailable {
        /// Scheme and host.
        address: String,
        /// The HTTP status.
        status: u16,
    },
    /// The receiver refuses the message, or wants it elsewhere. Redirects are not followed: the message may carry an approval
    /// link, which goes to the configured receiver and to nobody else.
    #[error(
        "notifying {address}: it answered {status}; correct the address under `notify` (redirects are not followed)"
    )]
    Refused {
        /// Scheme and host.
        address: String,
        /// The HTTP status.
        status: u16,
    },
}

impl NotifyError {
    /// Whether the same message may be taken later without anyone doing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Unavailable { .. })
    }
}

/// Somebody who is told.
#[async_trait]
pub trait Notifier: Send + Sync {
    /// Sends one message once. Success means that the receiver has taken it.
    async fn notify(&self, notification: &Notification) -> Result<(), NotifyError>;
}

/// Why a message did not reach every receiver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct DeliveryError {
    /// What each receiver that was not reached said; never empty.
    pub failures: Vec<NotifyError>,
}

impl DeliveryError {
    /// Whether trying again may help without anyone doing anything: true as soon as it may for one receiver.
    pub fn is_transient(&self) -> bool {
        self.failures.iter().any(NotifyError::is_transient)
    }
}

/// Everybody who is told.
#[derive(Default)]
pub struct Notifiers(Vec<Box<dyn Notifier>>);

impl Notifiers {
    /// These, in this order.
    pub fn new(notifiers: Vec<Box<dyn Notifier>>) -> Self {
        Self(notifiers)
    }

    /// Whether nobody is told: messages are then delivered to nobody, successfully.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a message to everybody. One receiver that fails does not keep the message from the others, but the delivery has
    /// failed then; when it is repeated, the others get the message twice.
    ///
    /// # Errors
    /// At least one receiver has not taken the message.
    pub async fn deliver(&self, notification: &Notification) -> Result<(), DeliveryError> {
        let mut failures = Vec::new();
        for notifier in &self.0 {
            if let Err(failure) = notifier.notify(notification).await {
                failures.push(failure);
            }
        }
        if failures.is_empty() {
            Ok(())
        } else {
            Err(DeliveryError { failures })
        }
    }
}

impl std::fmt::Debug for Notifiers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Notifiers({})", self.0.len())
    }
}
