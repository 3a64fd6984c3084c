//! `unfreeze`: a person lets a project merge again. Organisation's log.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{List, Text};
use super::{Approver, EvidenceRef, IdentityMethod, OrganisationBlock, PredicateError, require};
use crate::id::IncidentId;

/// The end of a freeze, signed by the approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Unfreeze {
    /// The event; it names the project.
    pub event: OrganisationBlock,
    /// Why the project was frozen.
    pub frozen_because: Text,
    /// The incident that froze it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<IncidentId>,
    /// Digest of the escalation that told of it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<DigestRef>,
    /// Who lifts it.
    pub person: Approver,
    /// How the person was recognised.
    pub method: IdentityMethod,
    /// What shows it.
    pub evidence: List<EvidenceRef>,
    /// Why it may go on.
    pub reason: Text,
}

impl Unfreeze {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.event.project.is_some(),
            "event.project",
            "a freeze is a project's",
        )?;
        require(
            self.escalation.is_none() || self.incident.is_some(),
            "incident",
            "an escalation is an incident's",
        )?;
        require(
            !self.reason.as_str().is_empty(),
            "reason",
            "lifting a freeze needs a reason",
        )
    }
}
