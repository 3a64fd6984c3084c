//! Where a repository is fetched from and pushed to.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

use super::GitError;

/// The user name under which GitHub takes a token as the password.
pub(super) const USER: &str = "x-access-token";

/// An address that git may talk to, and the credential for it, which is sent to that host only.
#[derive(Clone)]
pub struct Remote {
    address: Url,
    token: Option<SecretString>,
}

impl Remote {
    /// Accepts `https`, `http` on this machine only, and `file` without a credential.
    pub fn new(address: &str, token: Option<SecretString>) -> Result<Self, GitError> {
        let refuse = |reason: &str| GitError::BadAddress {
            address: shown(address),
            reason: reason.to_owned(),
        };
        let parsed = Url::parse(address)
            .map_err(|reason| refuse(&format!("it is not an address: {reason}")))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(refuse(
                "it carries a credential; configure the credential by itself",
            ));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(refuse(
                "it has a query or a fragment, which no repository address has",
            ));
        }
        match parsed.scheme() {
            "http" if !is_this_machine(parsed.host().as_ref()) => {
                return Err(refuse(
                    "without encryption only this machine is talked to; use https",
                ));
            }
            "file" if parsed.host().is_some() => {
                return Err(refuse("it names another machine's files"));
            }
            "file" if token.is_some() => return Err(refuse("files need no credential; remove it")),
            "https" | "http" | "file" => {}
            _ => {
                return Err(refuse(
                    "only https, http on this machine, and file are supported",
                ));
            }
        }
        if token
            .as_ref()
            .is_some_and(|token| !is_one_word(token.expose_secret()))
        {
            return Err(refuse("its credential is empty or not one printable word"));
        }
        Ok(Self {
            address: parsed,
            token,
        })
    }

    /// The address, which holds no credential.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    pub(super) fn protocol(&self) -> &str {
        self.address.scheme()
    }

    pub(super) fn token(&self) -> Option<&SecretString> {
        self.token.as_ref()
    }

    /// Whether `other`, an address in one of git's questions, is on the same host as this one.
    pub(super) fn is_same_host(&self, other: &str) -> bool {
        Url::parse(other).is_ok_and(|other| {
            other.scheme() == self.address.scheme()
                && other.host() == self.address.host()
                && other.port_or_known_default() == self.address.port_or_known_default()
        })
    }

    /// `text` without the credential and without control characters, at most 2,000 bytes of it.
    pub(super) fn redact(&self, text: &str) -> String {
        let hidden = match &self.token {
            Some(token) => text.replace(token.expose_secret(), "[hidden]"),
            None => text.to_owned(),
        };
        tidy(&hidden)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Remote")
            .field("address", &self.address.as_str())
            .field("token", &self.token.as_ref().map(|_| "[hidden]"))
            .finish()
    }
}

/// `text` on as many lines, without control characters, at most 2,000 bytes of it.
pub(super) fn tidy(text: &str) -> String {
    let mut tidied = String::new();
    for character in text
        .trim()
        .chars()
        .filter(|character| !character.is_control() || *character == '\n')
    {
        if tidied.len() + character.len_utf8() > 2000 {
            tidied.push_str(" [cut]");
            break;
        }
        tidied.push(character);
    }
    tidied
}

/// An address for a message: what might be a credential in it is left out.
fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    tidy(&format!(
        "{scheme}://{host}{}",
        rest[end..].split(['?', '#']).next().unwrap_or_default()
    ))
}

fn is_this_machine(host: Option<&Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => *name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Git reads a credential up to the end of a line.
fn is_one_word(token: &str) -> bool {
    !token.is_empty() && token.chars().all(|character| character.is_ascii_graphic())
}
