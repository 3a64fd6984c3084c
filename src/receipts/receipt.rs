//! A receipt on the wire: a compact JWS (RFC 7515) of the published format `provenance-receipt/v1`, signed with Ed25519.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use super::canonical::{members, text, to_canonical};
use super::key::PemKey;
use crate::attest::json::Json;
use crate::change::Sha256Digest;

/// The longest JWS, in bytes. The published verifiers read no longer one.
pub const MAX_JWS: usize = 64 * 1024;
/// The longest payload, in bytes.
pub const MAX_PAYLOAD: usize = 32 * 1024;
/// The type in header and payload.
pub(super) const TYPE: &str = "provenance-receipt/v1";
/// The marker of the format, which a reader must understand (RFC 7515, section 4.1.11).
pub(super) const MARKER: &str = "raucle/v1";

/// What names a receipt: the SHA-256 of the ASCII text of its JWS, written `sha256:` and hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiptHash(Sha256Digest);

impl ReceiptHash {
    /// The name of the receipt with this JWS.
    pub fn of(jws: &str) -> Self {
        Self(Sha256Digest::of(jws.as_bytes()))
    }

    /// The digest.
    pub const fn digest(&self) -> &Sha256Digest {
        &self.0
    }
}

impl fmt::Display for ReceiptHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.0)
    }
}

impl FromStr for ReceiptHash {
    type Err = <Sha256Digest as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A digest without its prefix is refused in the same words as any other text.
        text.strip_prefix("sha256:")
            .unwrap_or_default()
            .parse()
            .map(Self)
    }
}

/// A receipt cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the receipt's payload has {length} bytes, at most {MAX_PAYLOAD} are read by those who verify it; shorten the intent or what it constrains"
)]
pub struct ReceiptTooLong {
    /// Length found.
    pub length: usize,
}

/// A signed receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptLine {
    jws: String,
    hash: ReceiptHash,
}

impl ReceiptLine {
    /// Signs a payload.
    pub(super) fn sign(key: &PemKey, payload: &Json<'_>) -> Result<Self, ReceiptTooLong> {
        let payload = to_canonical(payload);
        if payload.len() > MAX_PAYLOAD {
            return Err(ReceiptTooLong {
                length: payload.len(),
            });
        }
        let mut jws = header(key.id().as_str());
        jws.push('.');
        URL_SAFE_NO_PAD.encode_string(&payload, &mut jws);
        let signature = key.sign(jws.as_bytes());
        jws.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut jws);
        let hash = ReceiptHash::of(&jws);
        Ok(Self { jws, hash })
    }

    /// The compact JWS.
    pub fn jws(&self) -> &str {
        &self.jws
    }

    /// Its name.
    pub const fn hash(&self) -> &ReceiptHash {
        &self.hash
    }

    /// The line of a chain file (JSON Lines), with its line break.
    pub fn to_jsonl(&self) -> String {
        // Neither value has a character that JSON escapes.
        format!(
            "{{\"receipt_hash\":\"{}\",\"jws\":\"{}\"}}\n",
            self.hash, self.jws
        )
    }
}

/// The encoded header, of which the format leaves nothing open but the key.
pub(super) fn header(key: &str) -> String {
    let header = members([
        ("alg", text("EdDSA")),
        ("crit", Json::List(vec![text(MARKER)])),
        ("kid", text(key)),
        (MARKER, text("provenance")),
        ("typ", text(TYPE)),
    ]);
    URL_SAFE_NO_PAD.encode(to_canonical(&header))
}
