//! Who decided.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that does not name a principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading principal {found:?}: {reason}; write mailto:NAME@HOST, github:LOGIN, oidc:ISSUER#SUBJECT or local:USER"
)]
pub struct PrincipalError {
    found: String,
    reason: &'static str,
}

/// A named decider: `scheme:name`, at most 200 bytes. `system:` is reserved for decisions that software made and cannot be
/// parsed, so that none of them can be read as a person's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Principal(String);

impl Principal {
    /// `scheme:name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Principal {
    type Err = PrincipalError;

    fn from_str(text: &str) -> Result<Self, PrincipalError> {
        let refuse = |reason| {
            Err(PrincipalError {
                found: text.chars().take(80).collect(),
                reason,
            })
        };
        if text.len() > 200
            || text
                .chars()
                .any(|character| !character.is_alphanumeric() && !character.is_ascii_graphic())
        {
            return refuse(
                "longer than 200 bytes, or with characters beside letters, digits and ASCII signs",
            );
        }
        match text.split_once(':') {
            Some(("mailto" | "github" | "oidc" | "local", name)) if !name.is_empty() => {
                Ok(Self(text.to_owned()))
            }
            Some(("system", _)) => {
                refuse("the system: namespace is reserved for decisions that no person made")
            }
            Some(_) => refuse("unknown scheme or empty name"),
            // A bare address means mailto: (interfaces, Configuration).
            None if text
                .split_once('@')
                .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()) =>
            {
                Ok(Self(format!("mailto:{text}")))
            }
            None => refuse("no scheme"),
        }
    }
}

impl TryFrom<String> for Principal {
    type Error = PrincipalError;
    fn try_from(text: String) -> Result<Self, PrincipalError> {
        text.parse()
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
