//! Object ids: complete ones only.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::hexadecimal::{Digits, fill, read};

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ObjectFormat {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl ObjectFormat {
    /// Git's name of the format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Length of an id in bytes.
    pub const fn width(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// A text that is not a complete object id. An abbreviated id is the fault that made an honest comparison fail once: it can
/// not be represented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "object id {found:?} has {length} characters; a complete id has 40 or 64 lower-case hexadecimal digits (git: --no-abbrev)"
)]
pub struct OidError {
    found: String,
    length: usize,
}

/// A complete object id (commit, tree or blob).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid {
    format: ObjectFormat,
    bytes: [u8; 32],
}

impl Oid {
    /// The all-zero id that stands for "nothing".
    pub const fn zero(format: ObjectFormat) -> Self {
        Self {
            format,
            bytes: [0; 32],
        }
    }

    /// An id from its raw bytes.
    ///
    /// # Errors
    /// Any length other than 20 or 32.
    pub fn from_bytes(raw: &[u8]) -> Result<Self, OidError> {
        let format = match raw.len() {
            20 => ObjectFormat::Sha1,
            32 => ObjectFormat::Sha256,
            length => {
                return Err(OidError {
                    found: "raw bytes".to_owned(),
                    length,
                });
            }
        };
        let mut bytes = [0; 32];
        for (target, source) in bytes.iter_mut().zip(raw) {
            *target = *source;
        }
        Ok(Self { format, bytes })
    }

    /// The raw bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.format.width()).unwrap_or(&self.bytes)
    }

    /// The object format.
    pub const fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Whether this is the all-zero id.
    pub fn is_zero(&self) -> bool {
        self.bytes == [0; 32]
    }
}

impl std::str::FromStr for Oid {
    type Err = OidError;

    fn from_str(text: &str) -> Result<Self, OidError> {
        let error = || OidError {
            found: text.chars().take(80).collect(),
            length: text.len(),
        };
        let mut raw = [0; 32];
        let width = text.len() / 2;
        let raw = raw.get_mut(..width).filter(|_| matches!(width, 20 | 32));
        let raw = raw.ok_or_else(error)?;
        if !fill(text, raw) {
            return Err(error());
        }
        Self::from_bytes(raw)
    }
}

impl Serialize for Oid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Digits::of(self.as_bytes()).as_str())
    }
}

impl<'de> Deserialize<'de> for Oid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Digits::of(self.as_bytes()).as_str())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
