//! What the headers of a delivery say. They are outside of the signature: bounded in length and alphabet, and otherwise
//! taken for no more than a label.

use std::fmt;
use std::str::FromStr;

/// A header that is not what the service sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Not the identifier of a delivery.
    #[error("X-GitHub-Delivery is not a GUID (8 to 64 hexadecimal digits and hyphens)")]
    Delivery,
    /// Not the name of an event.
    #[error("X-GitHub-Event is not the name of an event (1 to 64 of a-z, 0-9 and _)")]
    Event,
}

/// The identifier of a delivery, from `X-GitHub-Delivery`. The service keeps it when it sends the delivery again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryId(String);

impl FromStr for DeliveryId {
    type Err = HeaderError;

    fn from_str(text: &str) -> Result<Self, HeaderError> {
        let allowed = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        if (8..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(HeaderError::Delivery)
        }
    }
}

impl DeliveryId {
    /// The identifier, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an event, from `X-GitHub-Event`; any word, since the service adds new ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventName(String);

impl FromStr for EventName {
    type Err = HeaderError;

    fn from_str(text: &str) -> Result<Self, HeaderError> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(HeaderError::Event)
        }
    }
}

impl EventName {
    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
