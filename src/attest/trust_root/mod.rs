//! Whose keys count: a versioned document signed by root keys, pinned by its digest.
//!
//! A verifier trusts one version because its digest came to it out of band. Older versions follow from the chain of
//! `prev` digests, newer ones from the signatures of the old *and* the new root keys. Expiry stops acting; it never
//! stops the verification of what happened before.

mod document;
mod history;
mod next;
mod proposal;
mod validity;

use thiserror::Error;

pub use document::{RoleKey, RoleKeys, RootKey, SideKey, TimestampAuthority, TrustRootDocument};
pub use history::TrustHistory;
pub use next::{Change, OVERLAP_SECONDS};
pub use proposal::{Progress, Proposal};
pub use validity::{Revocation, Validity};

use super::dsse::{EnvelopeError, MAX_PAYLOAD, SignedDocument, TRUST_ROOT, Verified};
use super::json::{self, JsonError};
use super::keys::{KeyId, KeyUse, PublicKey, SecretKey};
use super::predicate::TrustRootRef;
use super::role::Role;
use crate::change::Sha256Digest;
use crate::clock::Millis;

/// Why a trust root is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustRootError {
    /// Not an envelope, or not signed by enough root keys.
    #[error("reading a trust root: {0}")]
    Envelope(#[from] EnvelopeError),
    /// Not the document.
    #[error("reading a trust root: {0}")]
    Json(#[from] JsonError),
    /// Another one than pinned.
    #[error(
        "the trust root is {found}, the pinned one is {pinned}; take the file that was pinned, or pin this one"
    )]
    NotPinned {
        /// The digest that was expected.
        pinned: Sha256Digest,
        /// The digest found.
        found: Sha256Digest,
    },
    /// A document that contradicts itself.
    #[error("trust root version {version}: {member}: {problem}")]
    Unsound {
        /// Its version.
        version: u64,
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A change that cannot be made.
    #[error("making trust root version {version}: {problem}")]
    Change {
        /// The version that was to be made.
        version: u64,
        /// Why not.
        problem: String,
    },
    /// Not the neighbour of the versions already held.
    #[error("trust root version {version} does not continue the versions that are held: {problem}")]
    Discontinuous {
        /// Its version.
        version: u64,
        /// What does not fit.
        problem: String,
    },
    /// Expired.
    #[error(
        "trust root version {version} expired at {expired_at}; have the root keys sign a new version before acting"
    )]
    Expired {
        /// Its version.
        version: u64,
        /// When it expired.
        expired_at: Millis,
    },
}

/// A trust root whose own threshold of root keys signed it and that does not contradict itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRoot {
    document: TrustRootDocument,
    digest: Sha256Digest,
    signed: SignedDocument,
}

impl TrustRoot {
    /// Signs a version with root keys: the threshold of its own and, for a successor, also the predecessor's.
    pub fn sign(
        document: &TrustRootDocument,
        root_keys: &[&SecretKey],
    ) -> Result<Self, TrustRootError> {
        document.check()?;
        let payload = json::to_bytes(document)?;
        Self::from_signed(SignedDocument::sign(TRUST_ROOT, &payload, root_keys)?)
    }

    /// Reads the version whose digest is `pin`.
    pub fn parse_pinned(bytes: &[u8], pin: &Sha256Digest) -> Result<Self, TrustRootError> {
        let root = Self::parse_unpinned(bytes)?;
        // The pin is the only reason for trust; without this comparison anybody's root would do.
        if root.digest == *pin {
            Ok(root)
        } else {
            Err(TrustRootError::NotPinned {
                pinned: *pin,
                found: root.digest,
            })
        }
    }

    /// Reads a version that nothing outside vouches for: an installation's own file, or one whose digest is to be
    /// shown to a person. A verifier of somebody else's ledger uses [`Self::parse_pinned`].
    pub fn parse_unpinned(bytes: &[u8]) -> Result<Self, TrustRootError> {
        Self::from_signed(SignedDocument::parse(bytes)?)
    }

    fn from_signed(signed: SignedDocument) -> Result<Self, TrustRootError> {
        // Its own signatures say nothing about trust, but a version that its own keys did not sign is broken. The
        // candidates' keys have to be read before they can be used, so this one reading is of unverified bytes.
        let claimed: TrustRootDocument = json::parse(signed.unverified_payload(), MAX_PAYLOAD)?;
        claimed.check()?;
        let verified = verify_with(&signed, &claimed)?;
        let document = json::parse(verified.payload(), MAX_PAYLOAD)?;
        let digest = verified.digest();
        Ok(Self {
            document,
            digest,
            signed,
        })
    }

    /// The stored bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TrustRootError> {
        Ok(self.signed.to_bytes()?)
    }

    /// What it says.
    pub const fn document(&self) -> &TrustRootDocument {
        &self.document
    }

    /// Its digest: what an auditor pins.
    pub const fn digest(&self) -> Sha256Digest {
        self.digest
    }

    /// How events name it.
    pub const fn reference(&self) -> TrustRootRef {
        TrustRootRef {
            version: self.document.version,
            sha256: self.digest,
        }
    }

    /// The role key with this id, and its role.
    pub fn role_key(&self, keyid: &KeyId) -> Option<(Role, &RoleKey)> {
        self.document
            .roles
            .iter()
            .find(|(_, key)| key.keyid == *keyid)
    }

    /// The keys beside the roles' with one use, present and past.
    pub fn side_keys(&self, used: KeyUse) -> impl Iterator<Item = &SideKey> {
        let keys = self.document.side_keys.iter().flat_map(|keys| keys.iter());
        keys.filter(move |key| key.purpose.as_str() == used.name())
    }

    /// Whether this version still allows acting. Verifying history does not ask.
    pub fn allow_acting(&self, now: Millis) -> Result<(), TrustRootError> {
        let TrustRootDocument {
            version,
            expires_at,
            ..
        } = self.document;
        if now < expires_at {
            Ok(())
        } else {
            Err(TrustRootError::Expired {
                version,
                expired_at: expires_at,
            })
        }
    }
}

/// Verifies `signed` with the root keys and the threshold of `document`, which may be another version's.
fn verify_with<'a>(
    signed: &'a SignedDocument,
    document: &TrustRootDocument,
) -> Result<Verified<'a>, TrustRootError> {
    let keys: Vec<PublicKey> = document
        .root_keys
        .iter()
        .map(|key| key.public.clone())
        .collect();
    let threshold = usize::try_from(document.threshold).unwrap_or(usize::MAX);
    Ok(signed.verify(TRUST_ROOT, &keys, threshold)?)
}
