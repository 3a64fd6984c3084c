//! Who acts, and with which tool, as tokens and receipts name them.

use std::fmt;

use thiserror::Error;

use crate::attest::text::shown;
use crate::change::Sha256Digest;

/// Why a text names no agent, tool or token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Not an agent.
    #[error(
        "`{found}` names no agent: `agent:` and 1 to 128 of a-z, 0-9, _, - and dots between them were expected, beginning with a letter or digit (agent:fixer.tests)"
    )]
    Agent {
        /// What was found, made printable.
        found: String,
    },
    /// Not a tool.
    #[error(
        "`{found}` names no tool: 1 to 128 of A-Z, a-z, 0-9, _, -, . and / were expected, beginning with a letter or digit"
    )]
    Tool {
        /// What was found, made printable.
        found: String,
    },
    /// Not a token.
    #[error("`{found}` names no token: `cap:` and 24 lower-case hexadecimal digits were expected")]
    Token {
        /// What was found, made printable.
        found: String,
    },
}

/// An agent, `agent:` and dotted parts. `agent:fixer.tests` is a descendant of `agent:fixer`; `agent:fixer-tests` is none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(String);

impl AgentId {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 134;

    /// Takes `name`, refusing what the published format does not have.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let sound = name.strip_prefix("agent:").is_some_and(|tail| {
            let bytes = tail.as_bytes();
            let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let follows = |place: usize| bytes.get(place + 1).is_some_and(|next| plain(*next));
            let inside = |(place, byte): (usize, &u8)| match byte {
                b'.' => follows(place),
                b'_' | b'-' => true,
                byte => plain(*byte),
            };
            (1..=128).contains(&bytes.len())
                && bytes.first().is_some_and(|first| plain(*first))
                && bytes.iter().enumerate().all(inside)
                // The format's last place of 128 takes letters and digits only.
                && (bytes.len() < 128 || bytes.last().is_some_and(|last| plain(*last)))
        });
        if sound {
            Ok(Self(name.to_owned()))
        } else {
            Err(NameError::Agent { found: shown(name) })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `other` or one below it.
    pub fn is_within(&self, other: &Self) -> bool {
        // Break it: leave the dot out; `receipts::gate::a_name_that_only_begins_like_the_agents_is_another_agent` fails.
        self == other
            || self
                .0
                .strip_prefix(&other.0)
                .is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(String);

impl ToolName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Takes `name`, refusing what the published format does not have.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let bytes = name.as_bytes();
        let inside =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
        let sound = bytes.len() <= Self::MAX_BYTES
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(inside);
        if sound {
            Ok(Self(name.to_owned()))
        } else {
            Err(NameError::Tool { found: shown(name) })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What names a token: `cap:` and the first 24 hexadecimal digits of the SHA-256 of what is signed of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(String);

impl TokenId {
    /// Takes `name`, refusing every other spelling.
    pub fn parse(name: &str) -> Result<Self, NameError> {
        let digits = name.strip_prefix("cap:");
        let sound = digits.is_some_and(|digits| {
            digits.len() == 24
                && digits
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        if sound {
            Ok(Self(name.to_owned()))
        } else {
            Err(NameError::Token { found: shown(name) })
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a token whose signed body has this digest.
    pub(super) fn of(body: &Sha256Digest) -> Self {
        let digits = body.to_string();
        Self(format!("cap:{}", digits.get(..24).unwrap_or_default()))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
