//! Ed25519 keys: ids, public keys, secret keys, and (in `file`) secret keys at rest.

mod derive;
mod file;

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, Verifier as _, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use zeroize::{Zeroize as _, Zeroizing};

pub use derive::{Argon2Cost, Kdf, hkdf_sha256};
pub use file::{KeyFile, KeyFileError, KeyHeader, KeyUse};

use super::text::shown;
use crate::change::read_text;

/// Fills a buffer with random bytes; the caller decides where they come from.
pub type Fill<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), FillError>;

/// The source of randomness failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the source of random bytes failed: {reason}")]
pub struct FillError {
    /// What the source said.
    pub reason: String,
}

/// Why bytes are not a usable key or key id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Not a key id.
    #[error(
        "{found} is not a key id: `SHA256:` and 43 characters of unpadded base64, as `ssh-keygen -l` prints"
    )]
    KeyId {
        /// What was found, made printable.
        found: String,
    },
    /// Not a public key.
    #[error("{found} is not an Ed25519 public key: {reason}")]
    Public {
        /// What was found, made printable.
        found: String,
        /// Why it is refused.
        reason: &'static str,
    },
}

/// An SSH fingerprint, `SHA256:<unpadded base64 of the SHA-256 of the SSH wire form of the public key>`. In an envelope
/// it is a hint: it never makes a signature count.
// Its characters, without an allocation: each of the millions of envelopes of a log has one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 50]);

impl KeyId {
    const PREFIX: &'static str = "SHA256:";

    /// Reads a key id, refusing every other spelling than the one `ssh-keygen -l` prints.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        // One byte more than a digest has, so that a longer one does not fit by being cut.
        let mut digest = [0; 33];
        let length = text
            .strip_prefix(Self::PREFIX)
            .and_then(|encoded| STANDARD_NO_PAD.decode_slice(encoded, &mut digest).ok());
        match text.as_bytes().as_array() {
            Some(id) if length == Some(32) => Ok(Self(*id)),
            _ => Err(KeyError::KeyId { found: shown(text) }),
        }
    }

    /// The id of the key whose SSH wire form has this SHA-256.
    fn of(digest: &[u8; 32]) -> Self {
        let mut id = [0; 50];
        let (prefix, encoded) = id.split_at_mut(Self::PREFIX.len());
        prefix.copy_from_slice(Self::PREFIX.as_bytes());
        // Fails for another length only, which it is not.
        let _ = STANDARD_NO_PAD.encode_slice(digest, encoded);
        Self(id)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        // Always ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for KeyId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("KeyId")
            .field(&self.as_str())
            .finish()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl TryFrom<String> for KeyId {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl From<KeyId> for String {
    fn from(keyid: KeyId) -> Self {
        keyid.as_str().to_owned()
    }
}

/// An Ed25519 public key that is neither weak (small order) nor non-canonically encoded. Serialises as padded base64 of
/// its 32 bytes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Takes 32 bytes, refusing what is not a point, a point of small order, and a second spelling of a point.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let refused = |reason| KeyError::Public {
            found: hex::encode(bytes),
            reason,
        };
        let key = VerifyingKey::from_bytes(bytes)
            .map_err(|_| refused("the bytes are not a point of the curve"))?;
        if key.is_weak() {
            return Err(refused(
                "the point has small order, so that anybody can sign for it",
            ));
        }
        if key.to_edwards().compress().as_bytes() != bytes {
            return Err(refused("the point is not canonically encoded"));
        }
        Ok(Self(key))
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The fingerprint of this key.
    pub fn keyid(&self) -> KeyId {
        const NAME: &[u8] = b"ssh-ed25519";
        let mut hash = Sha256::new();
        hash.update([0, 0, 0, 11]);
        hash.update(NAME);
        hash.update([0, 0, 0, 32]);
        hash.update(self.as_bytes());
        KeyId::of(&hash.finalize().into())
    }

    /// Whether `signature` is this key's over `message`, in the strict sense: canonical scalar, no small-order points.
    /// This single check is normative; batch verification accepts more.
    ///
    /// The library's `verify` compares the bytes of R with the encoding of a point that it computes, so R is a canonical
    /// encoding, and its point is of small order exactly when the bytes are one of eight. That is `verify_strict`, which
    /// decodes R for the same answer and takes a fifth longer. The key itself was looked at by [`Self::from_bytes`].
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        // Break it: leave the comparison out; `attest::vectors::verification_is_the_strict_one` fails.
        let small = signature.first_chunk().is_some_and(is_small_order);
        !small
            && self
                .0
                .verify(message, &Signature::from_bytes(signature))
                .is_ok()
    }
}

/// Whether bytes are the canonical encoding of one of the eight points whose order divides 8. They follow from the curve: the
/// neutral element, the point of order 2, two of order 4 and four of order 8.
fn is_small_order(encoding: &[u8; 32]) -> bool {
    SMALL_ORDER.contains(encoding)
}

#[rustfmt::skip]
const SMALL_ORDER: [[u8; 32]; 8] = [
    [0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
    [0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    [0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05],
    [0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x85],
    [0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a],
    [0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0xfa],
    [0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
    [0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80],
];

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({})", self.keyid())
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        let refused = |reason| KeyError::Public {
            found: shown(&text),
            reason,
        };
        let bytes = STANDARD
            .decode(&text)
            .map_err(|_| refused("it is not canonical padded base64"))?;
        let bytes: [u8; 32] = bytes
            .try_into()
            .map_err(|_| refused("it does not hold 32 bytes"))?;
        Self::from_bytes(&bytes)
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        STANDARD.encode(key.as_bytes())
    }
}

/// An Ed25519 secret key in memory. Wiped when dropped; printing it prints its public id.
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// A new key from 32 random bytes.
    pub fn generate(fill: Fill<'_>) -> Result<Self, FillError> {
        let mut seed = Zeroizing::new([0; 32]);
        fill(seed.as_mut_slice())?;
        Ok(Self::from_seed(&seed))
    }

    /// The key of a 32-byte seed (RFC 8032).
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The public half, always computed from the secret: a supplied one is never used for signing.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs exactly these bytes. Only for modules that build the bytes themselves.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    fn seed(&self) -> Zeroizing<[u8; 32]> {
        let mut copy = self.0.to_bytes();
        let seed = Zeroizing::new(copy);
        copy.zeroize();
        seed
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretKey({})", self.public().keyid())
    }
}
