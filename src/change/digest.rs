//! The digest over a change set. Layout: `docs/reconcile.md`, "What is approved"; golden vector in the tests.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::hexadecimal::{Digits, fill, read};
use super::{CHANGE_SET_ALGORITHM, ChangeSet};

/// A SHA-256 digest, 64 lower-case hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes 32 bytes that are a digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("digest {0:?} is not 64 lower-case hexadecimal digits")]
pub struct DigestError(String);

impl std::str::FromStr for Sha256Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError(text.chars().take(80).collect());
        let mut raw = [0; 32];
        if fill(text, &mut raw) {
            Ok(Self(raw))
        } else {
            Err(error())
        }
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Digits::of(&self.0).as_str())
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Digits::of(&self.0).as_str())
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The content address of a change set.
pub type ChangeDigest = Sha256Digest;

pub(super) fn compute(set: &ChangeSet) -> ChangeDigest {
    let mut hash = Sha256::new();
    hash.update(CHANGE_SET_ALGORITHM.as_bytes());
    hash.update([0]);
    hash.update(set.format().as_str().as_bytes());
    hash.update([0]);
    hash.update(length(set.count()));
    for entry in set.entries() {
        hash.update(length(entry.path.as_bytes().len()));
        hash.update(entry.path.as_bytes());
        hash.update(entry.old.mode.as_str().as_bytes());
        hash.update(entry.new.mode.as_str().as_bytes());
        hash.update(entry.old.oid.as_bytes());
        hash.update(entry.new.oid.as_bytes());
    }
    Sha256Digest(hash.finalize().into())
}

/// A length as the format's four big-endian bytes. No git object can hold more than 2^32 entries or a path of that length.
fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}
