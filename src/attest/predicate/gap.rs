//! `gap`: evidence was lost, and that is said.

use serde::{Deserialize, Serialize};

use super::super::text::{Label, List, Text};
use super::{EventBlock, PredicateError, require};
use crate::change::Sha256Digest;

/// Why evidence is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GapReason {
    /// It was lost.
    Lost,
    /// It was kept as long as the configuration says, and then deleted.
    Retention,
}

/// An admission that evidence is gone, signed by the executor. The chain goes on; a verifier reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The event.
    pub event: EventBlock,
    /// Why; absent means lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<GapReason>,
    /// What happened.
    pub detail: Text,
    /// The documents that are gone.
    pub evidence: List<GoneEvidence>,
}

impl Gap {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.reason.is_none() || !self.evidence.is_empty(),
            "evidence",
            "must name what is gone",
        )
    }
}

/// A document that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GoneEvidence {
    /// What kind of document it was.
    pub kind: Label,
    /// SHA-256 of its bytes.
    pub sha256: Sha256Digest,
    /// Of a signed document, SHA-256 of its pre-authentication encoding: the name by which other statements know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_as: Option<Sha256Digest>,
}
