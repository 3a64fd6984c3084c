//! Chain events.

use super::super::predicate::{
    Approval, Escalation, EventBlock, Execution, Gap, PolicyDecision, PredicateError, Proposal,
    Target,
};
use super::super::role::PredicateType;
use super::Subject;
use super::subject::Derived;
use crate::change::Sha256Digest;

/// A chain event's predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A proposal.
    Proposal(Box<Proposal>),
    /// A policy decision.
    PolicyDecision(Box<PolicyDecision>),
    /// A person's answer.
    Approval(Box<Approval>),
    /// What landed.
    Execution(Box<Execution>),
    /// Why a person has to look.
    Escalation(Box<Escalation>),
    /// Lost evidence.
    Gap(Box<Gap>),
}

impl Event {
    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::Proposal(_) => PredicateType::Proposal,
            Self::PolicyDecision(_) => PredicateType::PolicyDecision,
            Self::Approval(_) => PredicateType::Approval,
            Self::Execution(_) => PredicateType::Execution,
            Self::Escalation(_) => PredicateType::Escalation,
            Self::Gap(_) => PredicateType::Gap,
        }
    }

    /// What it says about itself.
    pub fn block(&self) -> &EventBlock {
        match self {
            Self::Proposal(event) => &event.event,
            Self::PolicyDecision(event) => &event.event,
            Self::Approval(event) => &event.event,
            Self::Execution(event) => &event.event,
            Self::Escalation(event) => &event.event,
            Self::Gap(event) => &event.event,
        }
    }

    /// The subjects of its statement.
    pub fn subjects(&self) -> Vec<Subject> {
        self.derived().into_iter().map(Subject::from).collect()
    }

    pub(super) fn derived(&self) -> Vec<Derived> {
        match self {
            Self::Proposal(proposal) => target_subjects(&proposal.target),
            Self::PolicyDecision(decision) => {
                let mut subjects = vec![Derived::sha256("proposal", decision.proposal.sha256)];
                subjects.extend(target_subjects(&decision.target));
                subjects
            }
            Self::Approval(approval) => {
                let binding = &approval.binding;
                vec![
                    Derived::sha256("proposal", approval.proposal.sha256),
                    Derived::sha256("change", binding.change.sha256),
                    Derived::commit("head", binding.head_commit, binding.head_tree),
                ]
            }
            Self::Execution(execution) => vec![
                Derived::commit("landed", execution.landed.commit, execution.landed.tree),
                Derived::sha256("change", execution.observed_change.sha256),
            ],
            // About the incident, which has no bytes of its own but its id.
            Self::Escalation(_) | Self::Gap(_) => {
                let id = self.block().incident.as_str();
                vec![Derived::sha256("incident", Sha256Digest::of(id.as_bytes()))]
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), PredicateError> {
        self.block().check(self.predicate_type().role())?;
        match self {
            Self::Proposal(proposal) => proposal.check(),
            Self::PolicyDecision(decision) => decision.check(),
            Self::Approval(approval) => approval.check(),
            Self::Execution(execution) => execution.check(),
            Self::Escalation(_) => Ok(()),
            Self::Gap(gap) => gap.check(),
        }
    }
}

fn target_subjects(target: &Target) -> Vec<Derived> {
    match target {
        Target::Commit { change, head } => {
            vec![
                Derived::sha256("change", change.sha256),
                Derived::commit("head", head.commit, head.tree),
            ]
        }
        Target::Files(files) => vec![Derived::sha256("files", files.sha256)],
    }
}
