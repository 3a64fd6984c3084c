//! Addresses: what to listen on, and the bases of services that are called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};
use url::Url;

use crate::https::is_loopback;

/// Why a text is not a usable address. The text is not repeated: it may hold a password or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address to listen on.
    #[error("this is not an address to listen on; write one such as 127.0.0.1:8080")]
    Listen,
    /// Not a URL.
    #[error("this is not a URL ({0}); write it in full, as in https://api.example.com")]
    Url(String),
    /// Neither http nor https.
    #[error("the scheme {0} is not supported; use https, or http on loopback")]
    Scheme(String),
    /// Clear text beyond this machine.
    #[error("http to {0} would send tokens in clear text; use https (http is for loopback only)")]
    Clear(String),
    /// Name or password in the URL.
    #[error("the URL holds a user name or password; remove it")]
    Credentials,
    /// A query or a fragment.
    #[error("the URL holds a query or a fragment; remove what starts with ? or #")]
    Tail,
}

/// An address to listen on. `localhost` stands for 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress(pub SocketAddr);

impl ListenAddress {
    /// Whether only this machine can reach it.
    pub const fn is_loopback(&self) -> bool {
        self.0.ip().is_loopback()
    }
}

impl Default for ListenAddress {
    fn default() -> Self {
        Self(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080))
    }
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let numeric = text
            .strip_prefix("localhost:")
            .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
        numeric.parse().map(Self).map_err(|_| AddressError::Listen)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn parse(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|error| AddressError::Url(error.to_string()))?;
    let loopback = is_loopback(&url);
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        "http" => {
            return Err(AddressError::Clear(
                url.host_str().unwrap_or_default().to_owned(),
            ));
        }
        other => return Err(AddressError::Scheme(other.chars().take(20).collect())),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(AddressError::Tail);
    }
    Ok(url)
}

/// The base of a service: https anywhere, http on loopback only; without credentials, query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUrl(Url);

impl ServiceUrl {
    /// The base without a slash at its end, so that `{base}/path` is right.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// The parsed URL.
    pub const fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for ServiceUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = parse(text)?;
        if url.query().is_some() {
            Err(AddressError::Tail)
        } else {
            Ok(Self(url))
        }
    }
}

impl fmt::Display for ServiceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The address of a webhook. Its path often is the secret, so it shows as scheme and host only.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl(Url);

impl WebhookUrl {
    /// The whole address, for the request itself and for nothing else.
    pub const fn secret(&self) -> &Url {
        &self.0
    }
}

impl FromStr for WebhookUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map(Self)
    }
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}/…", self.0.scheme(), self.0.authority())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! written_as_text {
    ($($name:ident by $text:expr;)*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text: fn(&Self) -> String = $text;
                serializer.serialize_str(&text(self))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

written_as_text! {
    ListenAddress by ToString::to_string;
    ServiceUrl by |url| url.0.to_string();
    WebhookUrl by |url| url.0.to_string();
}
