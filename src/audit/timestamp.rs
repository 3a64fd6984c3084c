//! What a timestamp (RFC 3161) says once it is verified, and who can verify one.

use crate::change::Sha256Digest;
use crate::clock::Millis;

/// A verified timestamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    /// When, by the authority's clock.
    pub at: Millis,
    /// By how much that may be wrong, in milliseconds, if the authority says so.
    pub accuracy_millis: Option<u64>,
    /// Under which policy of the authority: an object identifier.
    pub policy: String,
    /// The common name in the authority's certificate, made printable.
    pub authority: String,
    /// SHA-256 of the authority's public key: two timestamps under one key are one authority's.
    pub key: Sha256Digest,
    /// The number of the request, octets of an integer, if it had one.
    pub nonce: Option<Vec<u8>>,
}

impl Stamped {
    /// The moment before which what was stamped existed: the authority's, with all of what it may be wrong by.
    pub fn before(&self) -> Millis {
        let wrong = i64::try_from(self.accuracy_millis.unwrap_or(0)).unwrap_or(i64::MAX);
        self.at.plus_millis(wrong)
    }
}

/// Whoever can verify timestamps.
pub trait TimestampRoots {
    /// Verifies an authority's answer about bytes with this SHA-256.
    ///
    /// # Errors
    /// It does not hold, in words.
    fn verify(&self, response: &[u8], imprint: &Sha256Digest) -> Result<Stamped, String>;
}
