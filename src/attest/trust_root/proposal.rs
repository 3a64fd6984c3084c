//! A version that root keys are still to sign.

use super::document::{RootKey, TrustRootDocument};
use super::{TrustRoot, TrustRootError};
use crate::attest::dsse::{EnvelopeError, MAX_PAYLOAD, PartlySigned, TRUST_ROOT};
use crate::attest::json;
use crate::attest::keys::SecretKey;
use crate::change::Sha256Digest;

/// A version that goes from one holder of a root key to the next until enough have signed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    document: TrustRootDocument,
    signed: PartlySigned,
}

/// How many of the keys of one version have signed, and how many have to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Keys that signed.
    pub signed: u64,
    /// Keys needed.
    pub needed: u64,
}

impl Progress {
    /// Whether no signature is missing.
    pub const fn is_complete(self) -> bool {
        self.signed >= self.needed
    }
}

impl Proposal {
    /// A version that nobody has signed yet.
    pub fn new(document: TrustRootDocument) -> Result<Self, TrustRootError> {
        document.check()?;
        let payload = json::to_bytes(&document)?;
        let signed = PartlySigned::new(TRUST_ROOT, &payload)?;
        Ok(Self { document, signed })
    }

    /// Reads what [`Self::to_bytes`] wrote. Nothing in it is trusted: whoever signs it looks at what it says.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrustRootError> {
        let signed = PartlySigned::parse(bytes)?;
        let found = signed.document().payload_type();
        if found != TRUST_ROOT {
            let (verified, threshold) = (0, 1);
            return Err(EnvelopeError::Unverified {
                verified,
                threshold,
            }
            .into());
        }
        let payload = signed.document().unverified_payload();
        let document: TrustRootDocument = json::parse(payload, MAX_PAYLOAD)?;
        document.check()?;
        Ok(Self { document, signed })
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TrustRootError> {
        Ok(self.signed.document().to_bytes()?)
    }

    /// What it says.
    pub const fn document(&self) -> &TrustRootDocument {
        &self.document
    }

    /// The digest it will have as a trust root.
    pub fn digest(&self) -> Sha256Digest {
        self.signed.document().digest()
    }

    /// Signs it with a root key; false when that key has signed it before.
    pub fn sign(&mut self, key: &SecretKey) -> Result<bool, TrustRootError> {
        Ok(self.signed.sign(key)?)
    }

    /// How far it is for the keys of one version: its own, or that before it.
    pub fn progress(&self, document: &TrustRootDocument) -> Progress {
        let signed = |key: &&RootKey| self.signed.signed_by(&key.public);
        Progress {
            signed: document.root_keys.iter().filter(signed).count() as u64,
            needed: document.threshold,
        }
    }

    /// As a trust root, once its own keys have signed.
    pub fn into_root(self) -> Result<TrustRoot, TrustRootError> {
        TrustRoot::parse_unpinned(&self.to_bytes()?)
    }
}
