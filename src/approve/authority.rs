//! The right to merge, as a type.

use crate::change::Sha256Digest;

/// Why a ledger gives no authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("looking for the authority to merge: {0}")]
pub struct AuthorityError(pub(crate) String);

/// Which signed event gives the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthoritySource {
    /// A named person's approval: SHA-256 of its PAE.
    Approval(Sha256Digest),
    /// A policy decision that the change is free: SHA-256 of its PAE.
    FreeDecision(Sha256Digest),
}

/// Possession means that a signed approval, or a signed decision `free`, was found in a ledger that verified just now.
///
/// ```compile_fail
/// use caretaker::approve::Authority;
/// let forged = Authority { source: unreachable!(), binding: unreachable!() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    source: AuthoritySource,
    binding: Sha256Digest,
}

impl Authority {
    /// Digest of the binding that is authorised.
    pub const fn binding_digest(&self) -> Sha256Digest {
        self.binding
    }

    /// The event that gives it.
    pub const fn source(&self) -> &AuthoritySource {
        &self.source
    }
}
