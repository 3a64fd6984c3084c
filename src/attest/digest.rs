//! Digests and git object names as they stand in signed documents: lower-case hexadecimal, whole, never abbreviated.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::text::shown;

/// Why a text is not a digest or a git object name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DigestError {
    /// Not a SHA-256 digest.
    #[error("{found} is not a SHA-256 digest: 64 lower-case hexadecimal digits")]
    Sha256 {
        /// What was found, made printable.
        found: String,
    },
    /// Not a git object name.
    #[error(
        "{found} is not a git object name: 40 or 64 lower-case hexadecimal digits, never abbreviated"
    )]
    GitOid {
        /// What was found, made printable.
        found: String,
    },
}

/// A SHA-256 digest. The digest of a signed document is that of its pre-authentication encoding ([`super::dsse::pae`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest computed elsewhere.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads 64 lower-case hexadecimal digits.
    pub fn parse(hex: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        if is_lower_hex(hex) && hex::decode_to_slice(hex, &mut bytes).is_ok() {
            Ok(Self(bytes))
        } else {
            Err(DigestError::Sha256 { found: shown(hex) })
        }
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(hex: String) -> Result<Self, DigestError> {
        Self::parse(&hex)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// A digest as statements write it: `{"sha256": "…"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestRef {
    /// The digest.
    pub sha256: Digest,
}

impl From<Digest> for DigestRef {
    fn from(sha256: Digest) -> Self {
        Self { sha256 }
    }
}

/// The full name of a git object in a SHA-1 (40 digits) or SHA-256 (64 digits) repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GitOid(String);

impl GitOid {
    /// Reads 40 or 64 lower-case hexadecimal digits.
    pub fn parse(hex: &str) -> Result<Self, DigestError> {
        if matches!(hex.len(), 40 | 64) && is_lower_hex(hex) {
            Ok(Self(hex.to_owned()))
        } else {
            Err(DigestError::GitOid { found: shown(hex) })
        }
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GitOid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl TryFrom<String> for GitOid {
    type Error = DigestError;

    fn try_from(hex: String) -> Result<Self, DigestError> {
        Self::parse(&hex)
    }
}

impl From<GitOid> for String {
    fn from(oid: GitOid) -> Self {
        oid.0
    }
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
