//! Handing an incident to a person: the fact, the signed event, the message.

use super::drafting::Drafter;
use super::notices::notice;
use super::work::Work;
use crate::attest::predicate::{Escalation, EscalationReason as SignedReason};
use crate::attest::{Event, List, Role, Text};
use crate::change::Sha256Digest;
use crate::incident::{EscalationReason, Fact, MergeLock, NoticeEvent, Outcome, StepError};
use crate::reconcile::Difference;

/// Why and with what.
pub(super) struct Handover {
    pub(super) reason: EscalationReason,
    pub(super) detail: String,
    pub(super) differences: Vec<Difference>,
    /// What was expected and found, by change digest, when a change was compared.
    pub(super) compared: Option<(Sha256Digest, Sha256Digest)>,
}

impl Handover {
    /// Without a comparison of changes.
    pub(super) fn new(reason: EscalationReason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
            differences: Vec::new(),
            compared: None,
        }
    }
}

/// Adds the hand-over to an outcome: drafts the signed event, records the fact, gives the merge lock back. Returns how the
/// event is named. It voids every approval and every decision `free`, so that nothing of this incident is merged any more.
pub(super) fn hand_over(
    work: Work<'_>,
    outcome: &mut Outcome,
    handover: Handover,
) -> Result<Sha256Digest, StepError> {
    let mut drafter = Drafter::after(work);
    let escalation = Escalation {
        event: drafter.block(Role::Executor)?,
        reason: signed(handover.reason),
        blocks: true,
        expected: handover.compared.map(|(expected, _)| expected.into()),
        observed: handover.compared.map(|(_, observed)| observed.into()),
        detail: Some(Text::clipped(&handover.detail)),
        proposal: work
            .snapshot
            .decision()
            .map(|decision| decision.proposal_event.into()),
        evidence: List::default(),
    };
    let event = drafter.draft(Event::Escalation(Box::new(escalation)))?;
    outcome.drafts = drafter.finish();
    if work.snapshot.active_merge().is_some() {
        outcome.merge_lock = Some(MergeLock::Release);
    }
    outcome.notices.push(notice(
        NoticeEvent::IncidentEscalated,
        format!("{}: {}", handover.reason.as_str(), handover.detail),
    ));
    outcome.facts.push(Fact::Escalated {
        reason: handover.reason,
        detail: handover.detail,
        differences: handover.differences,
    });
    Ok(event)
}

/// The word that is signed for a reason.
const fn signed(reason: EscalationReason) -> SignedReason {
    match reason {
        EscalationReason::ChangeMismatch => SignedReason::ChangeMismatch,
        EscalationReason::ExecutedDiffers => SignedReason::ExecutedDiffers,
        EscalationReason::MergeRefused => SignedReason::MergeRefused,
        EscalationReason::MergeUnknown => SignedReason::Other,
        EscalationReason::PersonIntervened => SignedReason::TakenOver,
        EscalationReason::CoderFailed
        | EscalationReason::AgentUngated
        | EscalationReason::FixUnproven => SignedReason::FixFailed,
        EscalationReason::FixUnusable => SignedReason::NotRepresentable,
        EscalationReason::RetriesExhausted => SignedReason::RetriesSpent,
        EscalationReason::LedgerBroken => SignedReason::LedgerBroken,
        EscalationReason::AnchorFailed => SignedReason::AnchorFailed,
    }
}
