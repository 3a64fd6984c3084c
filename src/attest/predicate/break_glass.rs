//! `break-glass`: a person overrides the rules, and that stands in the record. Organisation's log.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{List, Text};
use super::{
    Approver, BoundChange, EvidenceRef, IdentityMethod, OrganisationBlock, PredicateError, require,
};
use crate::clock::Millis;
use crate::id::IncidentId;

/// What is overridden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Override {
    /// A decision `deny`.
    Denial,
    /// Checks that are not green.
    Checks,
    /// An anchor that does not answer.
    Anchor,
    /// A freeze of the project.
    Freeze,
}

/// One override for one exact change, signed by the approver. It never covers another change, and it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BreakGlass {
    /// The event; it names the project.
    pub event: OrganisationBlock,
    /// The incident.
    pub incident: IncidentId,
    /// What is overridden, each once.
    pub overrides: List<Override>,
    /// The one change that it is for.
    pub binding: BoundChange,
    /// Digest of the proposal.
    pub proposal: DigestRef,
    /// Digest of the decision that is overridden, or that stands beside what is.
    pub decision: DigestRef,
    /// Who overrides, each once; the first is the one who began.
    pub people: List<Person>,
    /// Why.
    pub reason: Text,
    /// When it ceases to count.
    pub expires_at: Millis,
}

impl BreakGlass {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        let Some(project) = &self.event.project else {
            return require(false, "event.project", "an override is for one project");
        };
        require(
            project.repository_id == self.binding.repository_id,
            "binding.repository_id",
            "not the project's repository",
        )?;
        require(
            is_set(&self.overrides, |one| *one),
            "overrides",
            "must name what is overridden, each once",
        )?;
        require(
            is_set(&self.people, |person| person.approver.principal.clone()),
            "people",
            "must name who overrides, each once",
        )?;
        require(
            !self.reason.as_str().is_empty(),
            "reason",
            "an override needs a reason",
        )?;
        require(
            self.event.occurred_at < self.expires_at && self.expires_at <= self.binding.expires_at,
            "expires_at",
            "must be later than the override and no later than the binding's end",
        )?;
        let format = self.binding.head_commit.format();
        require(
            self.binding.head_tree.format() == format && self.binding.merge_base.format() == format,
            "binding",
            "commits and tree are of different object formats",
        )
    }
}

/// Whether a list has items and none of them twice.
fn is_set<T, K: PartialEq>(items: &[T], key: impl Fn(&T) -> K) -> bool {
    let repeated = |(index, item): (usize, &T)| {
        items[..index]
            .iter()
            .any(|earlier| key(earlier) == key(item))
    };
    !items.is_empty() && !items.iter().enumerate().any(repeated)
}

/// Somebody who overrides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// Who.
    pub approver: Approver,
    /// How the person was recognised.
    pub method: IdentityMethod,
    /// What shows it.
    pub evidence: List<EvidenceRef>,
}
