//! Events of the organisation's log.

use super::super::predicate::{
    BreakGlass, Enrolment, OrganisationBlock, PolicyVersion, PredicateError, Unfreeze,
};
use super::super::role::PredicateType;
use super::Subject;
use crate::change::Sha256Digest;

/// An event of the organisation's log: of no incident, without a position in a chain. Its place is its index in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrganisationEvent {
    /// A version of the rules.
    PolicyVersion(Box<PolicyVersion>),
    /// A freeze is lifted.
    Unfreeze(Box<Unfreeze>),
    /// The rules are overridden.
    BreakGlass(Box<BreakGlass>),
    /// A credential begins or ceases to count.
    Enrolment(Box<Enrolment>),
}

impl OrganisationEvent {
    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::PolicyVersion(_) => PredicateType::PolicyVersion,
            Self::Unfreeze(_) => PredicateType::Unfreeze,
            Self::BreakGlass(_) => PredicateType::BreakGlass,
            Self::Enrolment(_) => PredicateType::Enrolment,
        }
    }

    /// What it says about itself.
    pub fn block(&self) -> &OrganisationBlock {
        match self {
            Self::PolicyVersion(event) => &event.event,
            Self::Unfreeze(event) => &event.event,
            Self::BreakGlass(event) => &event.event,
            Self::Enrolment(event) => &event.event,
        }
    }

    /// The subjects of its statement.
    pub fn subjects(&self) -> Vec<Subject> {
        match self {
            Self::PolicyVersion(version) => vec![Subject::sha256("policy", version.policy.sha256)],
            // About a project, which has no bytes of its own but its number.
            Self::Unfreeze(_) => {
                let project = self.block().project.as_ref();
                let number = project.map_or("", |project| project.repository_id.as_str());
                vec![Subject::sha256(
                    "project",
                    Sha256Digest::of(number.as_bytes()),
                )]
            }
            Self::BreakGlass(event) => {
                let binding = &event.binding;
                vec![
                    Subject::sha256("proposal", event.proposal.sha256),
                    Subject::sha256("change", binding.change.sha256),
                    Subject::commit("head", binding.head_commit, binding.head_tree),
                ]
            }
            Self::Enrolment(event) => {
                vec![Subject::sha256("credential", event.credential.sha256)]
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), PredicateError> {
        self.block().check(self.predicate_type().role())?;
        match self {
            Self::PolicyVersion(event) => event.check(),
            Self::Unfreeze(event) => event.check(),
            Self::BreakGlass(event) => event.check(),
            Self::Enrolment(event) => event.check(),
        }
    }
}
