//! `context-manifest`: what a diagnosis was fed. Evidence, named by the proposal.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, List, Text};
use super::EvidenceBlock;
use crate::change::Sha256Digest;

/// Whether text may steer the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TrustClass {
    /// Written by the owners of the project or by caretaker.
    Direct,
    /// Written by anybody: logs, comments, issue texts.
    Quarantined,
}

/// A context manifest, signed by the proposer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextManifest {
    /// The document.
    pub document: EvidenceBlock,
    /// The first inputs, in the order in which they were fed.
    pub items: List<ContextItem>,
    /// Number of all inputs.
    pub count: u64,
    /// SHA-256 of the whole list, where it has more items than stand here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<DigestRef>,
    /// SHA-256 of the exact bytes that were sent to the model, where one was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<DigestRef>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ContextItem {
    /// What it is.
    pub kind: Label,
    /// Where it came from.
    pub source: Text,
    /// Whether it may steer the agent.
    pub trust: TrustClass,
    /// SHA-256 of what was fed.
    pub sha256: Sha256Digest,
    /// Its length in bytes.
    pub bytes: u64,
    /// SHA-256 of the raw input that this was extracted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<DigestRef>,
}
