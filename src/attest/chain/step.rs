//! What a chain needs to know of an event.

use super::super::digest::DigestRef;
use super::super::predicate::{
    Answer, Approval, AuthorityRef, BoundChange, EventBlock, Execution, MergeMethod,
    PolicyDecision, Project, Proposal, Target, Verdict,
};
use super::super::role::PredicateType;
use super::super::statement::Event;
use super::super::text::{Label, Text};
use crate::change::{Oid, Sha256Digest};
use crate::id::{EventId, IncidentId};

/// An authentic event as far as the chain around it is judged by it: a tenth of the event, so that whoever verifies a log hands on
/// and keeps little.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) digest: Sha256Digest,
    pub(super) place: Place,
    pub(super) tale: Tale,
}

/// Where an event says that it belongs.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) id: EventId,
    pub(super) incident: IncidentId,
    pub(super) seq: u64,
    pub(super) prev: Option<Sha256Digest>,
    pub(super) project: Project,
}

/// What an event adds to the story of its chain.
#[derive(Debug, Clone)]
pub(super) enum Tale {
    Proposal(Proposing),
    PolicyDecision(Deciding),
    Approval(Box<Answering>),
    Execution(Executing),
    Escalation {
        blocks: bool,
        proposal: Option<DigestRef>,
    },
    Gap,
}

#[derive(Debug, Clone)]
pub(super) struct Proposing {
    pub(super) target: Target,
    pub(super) branch: Text,
    pub(super) title: Option<DigestRef>,
    pub(super) body: Option<DigestRef>,
}

#[derive(Debug, Clone)]
pub(super) struct Deciding {
    pub(super) policy: DigestRef,
    pub(super) proposal: DigestRef,
    pub(super) target: Target,
    pub(super) verdict: Verdict,
    pub(super) terminal: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Answering {
    pub(super) proposal: DigestRef,
    pub(super) decision: DigestRef,
    pub(super) answer: Answer,
    pub(super) binding: Binding,
}

/// What was put to the person, as far as the proposal says it, too.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    pub(super) repository_id: Label,
    pub(super) pull_request: u64,
    pub(super) base_ref: Text,
    pub(super) head_commit: Oid,
    pub(super) head_tree: Oid,
    pub(super) count: u64,
    pub(super) change: Sha256Digest,
    pub(super) merge_method: MergeMethod,
    pub(super) title: DigestRef,
    pub(super) body: DigestRef,
}

#[derive(Debug, Clone)]
pub(super) struct Executing {
    pub(super) by_us: bool,
    pub(super) proposal: Option<DigestRef>,
    pub(super) authority: Option<AuthorityRef>,
    pub(super) method: MergeMethod,
    pub(super) pull_request: u64,
    pub(super) approved_change: Option<DigestRef>,
    pub(super) observed_change: Sha256Digest,
}

impl Step {
    pub(super) fn of(digest: Sha256Digest, event: Event) -> Self {
        let (block, tale) = match event {
            Event::Proposal(event) => proposing(*event),
            Event::PolicyDecision(event) => deciding(*event),
            Event::Approval(event) => answering(*event),
            Event::Execution(event) => executing(*event),
            Event::Escalation(event) => {
                let (blocks, proposal) = (event.blocks, event.proposal);
                (event.event, Tale::Escalation { blocks, proposal })
            }
            Event::Gap(event) => (event.event, Tale::Gap),
        };
        let EventBlock {
            id,
            incident,
            seq,
            prev,
            project,
            ..
        } = block;
        Self {
            digest,
            place: Place {
                id,
                incident,
                seq,
                prev: prev.map(|prev| prev.sha256),
                project,
            },
            tale,
        }
    }

    /// The incident that the event is about.
    pub const fn incident(&self) -> &IncidentId {
        &self.place.incident
    }

    /// Of a decision of policy: about which repository, and by which rules.
    pub fn rules(&self) -> Option<(&Project, Sha256Digest)> {
        match &self.tale {
            Tale::PolicyDecision(decision) => Some((&self.place.project, decision.policy.sha256)),
            _ => None,
        }
    }
}

impl Tale {
    /// The kind of event.
    pub(super) const fn kind(&self) -> PredicateType {
        match self {
            Self::Proposal(_) => PredicateType::Proposal,
            Self::PolicyDecision(_) => PredicateType::PolicyDecision,
            Self::Approval(_) => PredicateType::Approval,
            Self::Execution(_) => PredicateType::Execution,
            Self::Escalation { .. } => PredicateType::Escalation,
            Self::Gap => PredicateType::Gap,
        }
    }
}

fn proposing(proposal: Proposal) -> (EventBlock, Tale) {
    let tale = Proposing {
        target: proposal.target,
        branch: proposal.base.branch,
        title: proposal.title,
        body: proposal.body,
    };
    (proposal.event, Tale::Proposal(tale))
}

fn deciding(decision: PolicyDecision) -> (EventBlock, Tale) {
    let tale = Deciding {
        policy: decision.event.policy,
        proposal: decision.proposal,
        target: decision.target,
        verdict: decision.verdict,
        terminal: decision.terminal,
    };
    (decision.event, Tale::PolicyDecision(tale))
}

fn answering(approval: Approval) -> (EventBlock, Tale) {
    let BoundChange {
        repository_id,
        pull_request,
        base_ref,
        head_commit,
        head_tree,
        count,
        change,
        merge_method,
        title,
        body,
        ..
    } = approval.binding;
    let binding = Binding {
        repository_id,
        pull_request,
        base_ref,
        head_commit,
        head_tree,
        count,
        change: change.sha256,
        merge_method,
        title,
        body,
    };
    let tale = Answering {
        proposal: approval.proposal,
        decision: approval.decision,
        answer: approval.answer,
        binding,
    };
    (approval.event, Tale::Approval(Box::new(tale)))
}

fn executing(execution: Execution) -> (EventBlock, Tale) {
    let tale = Executing {
        by_us: execution.by_us,
        proposal: execution.proposal,
        authority: execution.authority,
        method: execution.method,
        pull_request: execution.pull_request,
        approved_change: execution.approved_change,
        observed_change: execution.observed_change.sha256,
    };
    (execution.event, Tale::Execution(tale))
}
