//! Envelopes: DSSE version 1.
//!
//! What is signed is the pre-authentication encoding ([`pae`]) of exact payload bytes. Verification never re-serialises
//! and hands out nothing but the bytes that were verified ([`Verified`]).

mod foreign;
mod message;
mod partial;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::json::{self, JsonError};
use super::keys::{KeyId, PublicKey, SecretKey};
use super::text::shown;

use crate::change::Sha256Digest;
pub use foreign::ForeignEnvelope;
use message::Message;
pub use partial::PartlySigned;

/// The payload type of in-toto statements.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The payload type of trust roots.
pub const TRUST_ROOT: &str = "application/vnd.caretaker.trust-root+json";
/// The longest stored envelope, in bytes: what a log's entry bundle can hold.
pub const MAX_ENVELOPE: usize = 65_535;
/// The longest payload, in bytes, that fits into a stored envelope whatever its signatures.
pub const MAX_PAYLOAD: usize = 46_000;
/// The most signatures a document may carry.
pub const MAX_SIGNATURES: usize = 16;

/// Why bytes are not an acceptable envelope, or why it does not verify.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// Not the JSON of an envelope.
    #[error("reading an envelope: {0}")]
    Json(#[from] JsonError),
    /// Base64 that is not canonical, or of the wrong length.
    #[error("reading an envelope: {part} is not canonical base64 of the right length")]
    Base64 {
        /// `payload` or `signature`.
        part: &'static str,
    },
    /// Not the one stored serialisation.
    #[error(
        "reading an envelope: the bytes are not the one serialisation that is stored (order, white space, base64)"
    )]
    NotStoredForm,
    /// Wrong number of signatures.
    #[error("reading an envelope: it has {found} signatures, expected {expected}")]
    SignatureCount {
        /// Signatures found.
        found: usize,
        /// What is allowed.
        expected: &'static str,
    },
    /// A key id that is none.
    #[error("reading an envelope: the key id {found} is not an SSH fingerprint")]
    KeyId {
        /// What was found, made printable.
        found: String,
    },
    /// The payload is too long.
    #[error(
        "a payload of {length} bytes, at most {MAX_PAYLOAD} are signed; put bulk into the evidence store"
    )]
    TooLong {
        /// Length, in bytes.
        length: usize,
    },
    /// Fewer keys than needed signed this.
    #[error("{verified} of the keys allowed to sign this did, {threshold} are needed")]
    Unverified {
        /// Distinct keys whose signature verifies.
        verified: usize,
        /// Keys needed.
        threshold: usize,
    },
    /// A threshold that would let anything pass.
    #[error("a threshold of {threshold} for {keys} keys cannot be met or means nothing")]
    Threshold {
        /// The threshold asked for.
        threshold: usize,
        /// Keys given.
        keys: usize,
    },
}

/// The bytes that are signed: `DSSEv1 LEN(type) type LEN(body) body`, lengths in bytes as decimal numbers.
pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = pae_head(payload_type, payload.len(), payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

/// What [`pae`] begins with, before a payload of `length` bytes, with `room` bytes behind it.
fn pae_head(payload_type: &str, length: usize, room: usize) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {length} ", payload_type.len());
    let mut bytes = Vec::with_capacity(head.len() + room);
    bytes.extend_from_slice(head.as_bytes());
    bytes
}

/// A payload type as it is kept: that of nearly all documents without a copy.
fn kept_type(payload_type: &str) -> Cow<'static, str> {
    if payload_type == IN_TOTO {
        Cow::Borrowed(IN_TOTO)
    } else {
        Cow::Owned(payload_type.to_owned())
    }
}

/// A signed document as it is stored: a DSSE envelope, version 1.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemas", schemars(rename = "Envelope"))]
#[serde(deny_unknown_fields)]
pub(super) struct Wire {
    /// What is signed, in padded base64 of the standard alphabet.
    #[cfg_attr(
        feature = "schemas",
        schemars(schema_with = "super::schema::payload_base64")
    )]
    payload: String,
    /// What kind of document the payload is; signed together with it.
    #[serde(rename = "payloadType")]
    payload_type: String,
    /// A ledger event and an evidence document have exactly one.
    #[cfg_attr(feature = "schemas", schemars(length(min = 1, max = MAX_SIGNATURES)))]
    signatures: Vec<WireSignature>,
}

/// One signature over the pre-authentication encoding of type and payload.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schemas", schemars(rename = "Signature"))]
#[serde(deny_unknown_fields)]
struct WireSignature {
    /// Fingerprint of the key that is said to have signed; it never makes a signature count.
    #[cfg_attr(feature = "schemas", schemars(with = "KeyId"))]
    keyid: String,
    /// 64 bytes in padded base64 of the standard alphabet.
    #[cfg_attr(
        feature = "schemas",
        schemars(schema_with = "super::schema::signature_base64")
    )]
    sig: String,
}

/// One signature of a document, with the id of the key that is said to have made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    keyid: KeyId,
    bytes: [u8; 64],
}

impl Signature {
    /// The hint: who is said to have signed.
    pub fn keyid(&self) -> &KeyId {
        &self.keyid
    }
}

/// A signed document in the one stored serialisation, with 1 to [`MAX_SIGNATURES`] signatures. A ledger event is an
/// [`Envelope`]; a trust root is one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedDocument {
    payload_type: Cow<'static, str>,
    message: Message,
    signatures: Vec<Signature>,
}

impl SignedDocument {
    /// Signs `payload` with every one of `keys`.
    pub(crate) fn sign(
        payload_type: &str,
        payload: &[u8],
        keys: &[&SecretKey],
    ) -> Result<Self, EnvelopeError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(EnvelopeError::TooLong {
                length: payload.len(),
            });
        }
        check_count(keys.len())?;
        let message = Message::new(payload_type, payload);
        let signed = keys.iter().map(|key| signature(key, message.as_bytes()));
        Ok(Self {
            payload_type: kept_type(payload_type),
            signatures: signed.collect(),
            message,
        })
    }

    /// Reads the stored serialisation; any other bytes, also of the same content, are refused.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let document = Self::read(bytes)?;
        check_count(document.signatures.len())?;
        Ok(document)
    }

    /// Reads the stored serialisation with any number of signatures.
    fn read(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        if let Some(document) = Self::taken_apart(bytes) {
            return Ok(document);
        }
        let wire: Wire = json::parse(bytes, MAX_ENVELOPE)?;
        if wire.signatures.len() > MAX_SIGNATURES {
            check_count(wire.signatures.len())?;
        }
        let message = Message::decoded(&wire.payload_type, wire.payload.as_bytes())
            .ok_or(EnvelopeError::Base64 { part: "payload" })?;
        let signatures = wire
            .signatures
            .iter()
            .map(stored_signature)
            .collect::<Result<_, _>>()?;
        let document = Self {
            payload_type: Cow::Owned(wire.payload_type),
            message,
            signatures,
        };
        // Byte equality here is what makes an envelope have one serialisation only.
        if document.to_bytes()? == bytes {
            Ok(document)
        } else {
            Err(EnvelopeError::NotStoredForm)
        }
    }

    /// The stored form with one signature, taken apart where it always has the same bytes; none of anything else, which the
    /// general reading then takes or refuses. What this takes is written as the very same bytes, since base64 that is read
    /// strictly has one spelling, and the type holds nothing that would be escaped.
    fn taken_apart(bytes: &[u8]) -> Option<Self> {
        let mut rest = (bytes.len() <= MAX_ENVELOPE).then_some(bytes)?;
        let mut next = |before: &str| {
            let behind = rest.strip_prefix(before.as_bytes())?;
            let end = memchr::memchr(b'"', behind)?;
            let (part, behind) = behind.split_at(end);
            rest = behind.get(1..)?;
            Some(part)
        };
        let payload = next("{\"payload\":\"")?;
        let payload_type = next(",\"payloadType\":\"")?;
        let keyid = next(",\"signatures\":[{\"keyid\":\"")?;
        let signature = next(",\"sig\":\"")?;
        let plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
        // Break it: take any end, or any type (`attest::envelopes::any_other_spelling_of_an_envelope_is_refused`, `fuzz`).
        if rest != b"}]}" || !payload_type.iter().all(plain) {
            return None;
        }
        let payload_type = str::from_utf8(payload_type).ok()?;
        Some(Self {
            payload_type: kept_type(payload_type),
            message: Message::decoded(payload_type, payload)?,
            signatures: vec![Signature {
                keyid: KeyId::parse(str::from_utf8(keyid).ok()?).ok()?,
                bytes: signature_bytes(signature)?,
            }],
        })
    }

    /// The one stored serialisation.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EnvelopeError> {
        let signatures = self.signatures.iter().map(|signature| WireSignature {
            keyid: signature.keyid.to_string(),
            sig: STANDARD.encode(signature.bytes),
        });
        let wire = Wire {
            payload: STANDARD.encode(self.message.payload()),
            payload_type: self.payload_type.clone().into_owned(),
            signatures: signatures.collect(),
        };
        Ok(json::to_bytes(&wire)?)
    }

    /// The payload type, unverified.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The payload before verification: only to learn which keys a self-signed document claims.
    pub(crate) fn unverified_payload(&self) -> &[u8] {
        self.message.payload()
    }

    /// The signatures, unverified.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// SHA-256 of the pre-authentication encoding: what other documents and pins name this one by. Independent of
    /// signatures and of the JSON around the payload.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(self.message.as_bytes())
    }

    /// Hands out the payload if at least `threshold` *distinct* keys of `keys` signed it as `payload_type`.
    pub fn verify(
        &self,
        payload_type: &str,
        keys: &[PublicKey],
        threshold: usize,
    ) -> Result<Verified<'_>, EnvelopeError> {
        let signatures = self.signatures.iter().map(|signature| signature.bytes);
        verify_threshold(
            &self.payload_type,
            &self.message,
            signatures,
            payload_type,
            keys,
            threshold,
        )
    }
}

fn signature(key: &SecretKey, message: &[u8]) -> Signature {
    Signature {
        keyid: key.public().keyid(),
        bytes: key.sign(message),
    }
}

fn check_count(found: usize) -> Result<(), EnvelopeError> {
    if (1..=MAX_SIGNATURES).contains(&found) {
        Ok(())
    } else {
        Err(EnvelopeError::SignatureCount {
            found,
            expected: "1 to 16",
        })
    }
}

fn stored_signature(wire: &WireSignature) -> Result<Signature, EnvelopeError> {
    let keyid = KeyId::parse(&wire.keyid).map_err(|_| EnvelopeError::KeyId {
        found: shown(&wire.keyid),
    })?;
    let bytes = signature_bytes(wire.sig.as_bytes());
    Ok(Signature {
        keyid,
        bytes: bytes.ok_or(EnvelopeError::Base64 { part: "signature" })?,
    })
}

/// 64 bytes from canonical, padded base64.
fn signature_bytes(base64: &[u8]) -> Option<[u8; 64]> {
    // Longer than a signature, so that a longer one does not fit by being cut.
    let mut bytes = [0; 66];
    let length = STANDARD.decode_slice(base64, &mut bytes).ok()?;
    bytes.get(..length)?.as_array().copied()
}

/// Counts keys, not signatures: a key that signed twice, or that is listed twice, counts once.
fn verify_threshold<'a>(
    found_type: &str,
    message: &'a Message,
    signatures: impl Iterator<Item = [u8; 64]>,
    payload_type: &str,
    keys: &[PublicKey],
    threshold: usize,
) -> Result<Verified<'a>, EnvelopeError> {
    if threshold == 0 || threshold > keys.len() {
        return Err(EnvelopeError::Threshold {
            threshold,
            keys: keys.len(),
        });
    }
    let mut signers: Vec<&PublicKey> = Vec::new();
    // Break it: leave the comparison out; a document of another type then counts
    // (`attest::envelopes::a_document_that_was_signed_as_another_type_does_not_count`).
    if found_type == payload_type {
        for signature in signatures.take(MAX_SIGNATURES) {
            let signer = keys
                .iter()
                .find(|key| key.verifies(message.as_bytes(), &signature));
            signers.extend(signer.filter(|signer| !signers.contains(signer)));
        }
    }
    if signers.len() < threshold {
        return Err(EnvelopeError::Unverified {
            verified: signers.len(),
            threshold,
        });
    }
    Ok(Verified {
        digest: Sha256Digest::of(message.as_bytes()),
        signers: signers.into_iter().cloned().collect(),
        message,
    })
}

/// One ledger event or evidence document as it is stored: a [`SignedDocument`] with exactly one signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    document: SignedDocument,
    signature: Signature,
}

impl Envelope {
    /// An envelope with a signature that was made of [`pae`], wherever that was.
    pub(crate) fn signed(
        payload_type: &str,
        payload: &[u8],
        keyid: KeyId,
        signature: [u8; 64],
    ) -> Result<Self, EnvelopeError> {
        let mut document = PartlySigned::new(payload_type, payload)?.into_document();
        document.signatures.push(Signature {
            keyid,
            bytes: signature,
        });
        Self::from_document(document)
    }

    /// Reads the one stored serialisation of an envelope with exactly one signature.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        Self::from_document(SignedDocument::parse(bytes)?)
    }

    fn from_document(document: SignedDocument) -> Result<Self, EnvelopeError> {
        match document.signatures.as_slice() {
            [signature] => Ok(Self {
                signature: signature.clone(),
                document,
            }),
            more => Err(EnvelopeError::SignatureCount {
                found: more.len(),
                expected: "exactly 1",
            }),
        }
    }

    /// The one stored serialisation.
    pub fn to_bytes(&self) -> Result<Vec<u8>, EnvelopeError> {
        self.document.to_bytes()
    }

    /// The payload type, unverified.
    pub fn payload_type(&self) -> &str {
        &self.document.payload_type
    }

    /// The hint: who is said to have signed.
    pub fn keyid(&self) -> &KeyId {
        &self.signature.keyid
    }

    /// SHA-256 of the pre-authentication encoding: what the next event and cross references name this one by.
    pub fn digest(&self) -> Sha256Digest {
        self.document.digest()
    }

    /// Hands out the payload if `key` signed it as `payload_type`.
    pub fn verify(
        &self,
        payload_type: &str,
        key: &PublicKey,
    ) -> Result<Verified<'_>, EnvelopeError> {
        self.document
            .verify(payload_type, std::slice::from_ref(key), 1)
    }
}

/// Payload bytes whose signatures were verified. There is no other way to make one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<'a> {
    message: &'a Message,
    digest: Sha256Digest,
    signers: Vec<PublicKey>,
}

impl Verified<'_> {
    /// The bytes that were signed.
    pub fn payload(&self) -> &[u8] {
        self.message.payload()
    }

    /// SHA-256 of the pre-authentication encoding.
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// The keys whose signatures verified, computed from the keys themselves, not from the hints.
    pub fn keyids(&self) -> Vec<KeyId> {
        self.signers.iter().map(PublicKey::keyid).collect()
    }
}
