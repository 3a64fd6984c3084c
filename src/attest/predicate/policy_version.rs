//! `policy-version`: a version of a project's rules. Organisation's log.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::Text;
use super::{OrganisationBlock, PredicateError, require};

/// A version of the rules comes into force, signed by policy. Chain events name the rules by the same digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyVersion {
    /// The event; it names the project.
    pub event: OrganisationBlock,
    /// Number of this version for the project, from 1, without gaps.
    pub version: u64,
    /// SHA-256 of the rules, as they are written.
    pub policy: DigestRef,
    /// Their length, in bytes.
    pub bytes: u64,
    /// Digest of the version before (its `policy`); null at version 1.
    pub previous: Option<DigestRef>,
    /// SHA-256 of the project's intent document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_document: Option<DigestRef>,
    /// The principal who put them into force.
    pub changed_by: Text,
}

impl PolicyVersion {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.event.project.is_some(),
            "event.project",
            "rules are a project's",
        )?;
        require(
            self.version > 0 && (self.version == 1) == self.previous.is_none(),
            "previous",
            "versions start at 1, and exactly version 1 has none before it",
        )?;
        require(
            self.previous != Some(self.policy),
            "policy",
            "the same rules as before",
        )?;
        require(
            !self.changed_by.as_str().is_empty(),
            "changed_by",
            "somebody put them into force",
        )
    }
}
