//! A document that is still being signed, by several people one after the other.

use super::{
    EnvelopeError, MAX_PAYLOAD, Message, SignedDocument, check_count, kept_type, signature,
    verify_threshold,
};
use crate::attest::keys::{KeyId, PublicKey, SecretKey};

/// A document with as many signatures as were made so far, none included. It has the form of a [`SignedDocument`], which it
/// becomes with the first one; whether enough signed is for whoever reads that to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartlySigned(SignedDocument);

impl PartlySigned {
    /// A document that nobody has signed.
    pub(crate) fn new(payload_type: &str, payload: &[u8]) -> Result<Self, EnvelopeError> {
        if payload.len() > MAX_PAYLOAD {
            let length = payload.len();
            return Err(EnvelopeError::TooLong { length });
        }
        Ok(Self(SignedDocument {
            payload_type: kept_type(payload_type),
            message: Message::new(payload_type, payload),
            signatures: Vec::new(),
        }))
    }

    /// Reads the stored serialisation.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        SignedDocument::read(bytes).map(Self)
    }

    /// Adds a signature; false when this key has signed it already.
    pub(crate) fn sign(&mut self, key: &SecretKey) -> Result<bool, EnvelopeError> {
        if self.signed_by(&key.public()) {
            return Ok(false);
        }
        check_count(self.0.signatures.len() + 1)?;
        let signature = signature(key, self.0.message.as_bytes());
        self.0.signatures.push(signature);
        Ok(true)
    }

    /// Whether a key's signature is there and verifies.
    pub(crate) fn signed_by(&self, key: &PublicKey) -> bool {
        let document = &self.0;
        let signatures = document.signatures.iter().map(|signature| signature.bytes);
        verify_threshold(
            &document.payload_type,
            &document.message,
            signatures,
            &document.payload_type,
            std::slice::from_ref(key),
            1,
        )
        .is_ok()
    }

    /// Who is said to have signed.
    pub fn keyids(&self) -> impl Iterator<Item = &KeyId> {
        self.0.signatures.iter().map(super::Signature::keyid)
    }

    /// The document, for who signs it otherwise.
    pub(super) fn into_document(self) -> SignedDocument {
        self.0
    }

    /// The document so far.
    pub(crate) const fn document(&self) -> &SignedDocument {
        &self.0
    }
}
