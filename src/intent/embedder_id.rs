//! Which embedder made a score.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest id, in bytes.
const MOST: usize = 200;

/// Not the id of an embedder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no id of an embedder; it is PROVIDER:MODEL of at most {MOST} visible ASCII characters, as in openai:text-embedding-3-small"
)]
pub struct EmbedderIdError;

/// Names an embedder: `PROVIDER:MODEL`, and for weights on this machine `@` and the beginning of their SHA-256. Scores and thresholds
/// of different embedders have nothing to do with each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EmbedderId(String);

impl EmbedderId {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EmbedderId {
    type Err = EmbedderIdError;

    fn from_str(text: &str) -> Result<Self, EmbedderIdError> {
        let named = text
            .split_once(':')
            .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty());
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        if named && plain && text.len() <= MOST {
            Ok(Self(text.to_owned()))
        } else {
            Err(EmbedderIdError)
        }
    }
}

impl TryFrom<String> for EmbedderId {
    type Error = EmbedderIdError;

    fn try_from(text: String) -> Result<Self, EmbedderIdError> {
        text.parse()
    }
}

impl From<EmbedderId> for String {
    fn from(id: EmbedderId) -> Self {
        id.0
    }
}

impl fmt::Display for EmbedderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
