//! Envelopes that somebody else made.

use base64::Engine as _;
use base64::alphabet::{STANDARD as STANDARD_ALPHABET, URL_SAFE as URL_SAFE_ALPHABET};
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use super::super::json::{self, JsonError};
use super::super::keys::PublicKey;
use super::super::text::shown;
use super::{EnvelopeError, MAX_ENVELOPE, Message, Verified, check_count, verify_threshold};

#[derive(Deserialize)]
struct ForeignWire {
    payload: String,
    #[serde(rename = "payloadType")]
    payload_type: String,
    signatures: Vec<ForeignSignature>,
}

#[derive(Deserialize)]
struct ForeignSignature {
    sig: String,
}

/// An envelope made by somebody else, read as liberally as DSSE demands: both base64 alphabets, any member order and
/// white space, unknown members ignored, key ids not even looked at. Repeated members are refused all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignEnvelope {
    payload_type: String,
    message: Message,
    signatures: Vec<[u8; 64]>,
}

impl ForeignEnvelope {
    /// Reads an envelope of at most [`MAX_ENVELOPE`] bytes. Signatures that are not 64 bytes long are left out: they
    /// are of another algorithm.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        json::read(bytes, MAX_ENVELOPE)?;
        let wire: ForeignWire =
            serde_json::from_slice(bytes).map_err(|error| JsonError::Shape {
                reason: shown(&error.to_string()),
            })?;
        check_count(wire.signatures.len())?;
        let payload =
            either_alphabet(&wire.payload).ok_or(EnvelopeError::Base64 { part: "payload" })?;
        let mut signatures = Vec::new();
        for signature in &wire.signatures {
            let bytes = either_alphabet(&signature.sig)
                .ok_or(EnvelopeError::Base64 { part: "signature" })?;
            signatures.extend(<[u8; 64]>::try_from(bytes).ok());
        }
        Ok(Self {
            message: Message::new(&wire.payload_type, &payload),
            payload_type: wire.payload_type,
            signatures,
        })
    }

    /// The payload type, unverified.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// Hands out the payload if at least `threshold` *distinct* keys of `keys` signed it as `payload_type`.
    pub fn verify(
        &self,
        payload_type: &str,
        keys: &[PublicKey],
        threshold: usize,
    ) -> Result<Verified<'_>, EnvelopeError> {
        let signatures = self.signatures.iter().copied();
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

fn either_alphabet(text: &str) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD_LIBERAL: GeneralPurpose = GeneralPurpose::new(&STANDARD_ALPHABET, CONFIG);
    const URL_SAFE_LIBERAL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE_ALPHABET, CONFIG);
    STANDARD_LIBERAL
        .decode(text)
        .or_else(|_| URL_SAFE_LIBERAL.decode(text))
        .ok()
}
