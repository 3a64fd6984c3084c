//! Digests as they stand in signed documents.

use serde::{Deserialize, Serialize};

use crate::change::Sha256Digest;

/// A digest as statements write it: `{"sha256": "…"}`. The digest of a *signed* document is that of its pre-authentication
/// encoding (DSSE), so that no second spelling of its JSON has another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DigestRef {
    /// The digest.
    pub sha256: Sha256Digest,
}

impl From<Sha256Digest> for DigestRef {
    fn from(sha256: Sha256Digest) -> Self {
        Self { sha256 }
    }
}
