//! What a chain's events leave standing at its end.

use crate::attest::Event;
use crate::attest::predicate::{Answer, Approval, Execution, PolicyDecision, Proposal, Verdict};
use crate::change::Sha256Digest;

/// An event, its digest, and whether a blocking escalation came after it.
pub(crate) struct Said<'a, E> {
    pub(crate) digest: Sha256Digest,
    pub(crate) event: &'a E,
    pub(crate) void: bool,
}

impl<'a, E> Said<'a, E> {
    const fn new(digest: Sha256Digest, event: &'a E) -> Self {
        Self {
            digest,
            event,
            void: false,
        }
    }
}

/// The end of a story whose order was checked elsewhere: the newest proposal, the decision and the last answer about it,
/// and what landed.
#[derive(Default)]
pub(crate) struct Standing<'a> {
    pub(crate) proposal: Option<Said<'a, Proposal>>,
    pub(crate) decided: Option<Said<'a, PolicyDecision>>,
    pub(crate) answered: Option<Said<'a, Approval>>,
    pub(crate) execution: Option<&'a Execution>,
}

/// What allows a merge.
pub(crate) enum Grant<'a> {
    /// A person's approval.
    Approval(Sha256Digest, &'a Approval),
    /// A decision that the change is free.
    Free(Sha256Digest, &'a PolicyDecision),
}

impl<'a> Standing<'a> {
    /// Reads events in order.
    pub(crate) fn of(events: impl Iterator<Item = (Sha256Digest, &'a Event)>) -> Self {
        let mut standing = Self::default();
        for (digest, event) in events {
            standing.take(digest, event);
        }
        standing
    }

    fn take(&mut self, digest: Sha256Digest, event: &'a Event) {
        match event {
            // What was decided and answered about an older proposal does not cover a newer one.
            Event::Proposal(proposal) => {
                self.proposal = Some(Said::new(digest, proposal));
                (self.decided, self.answered) = (None, None);
            }
            Event::PolicyDecision(decision) => self.decided = Some(Said::new(digest, decision)),
            // The last answer counts: a rejection takes back an approval.
            Event::Approval(approval) => self.answered = Some(Said::new(digest, approval)),
            Event::Execution(execution) => self.execution = Some(execution),
            Event::Escalation(escalation) if escalation.blocks => {
                if let Some(decided) = &mut self.decided {
                    decided.void = true;
                }
                if let Some(answered) = &mut self.answered {
                    answered.void = true;
                }
            }
            Event::Escalation(_) | Event::Gap(_) => {}
        }
    }

    /// The newest decision about the newest proposal.
    pub(crate) fn decision(&self) -> Option<&'a PolicyDecision> {
        self.decided.as_ref().map(|decided| decided.event)
    }

    /// What allows a merge, whether or not one happened since.
    pub(crate) fn grant(&self) -> Option<Grant<'a>> {
        let decided = self.decided.as_ref()?;
        match decided.event.verdict {
            Verdict::Deny => None,
            // An approval after a blocking escalation is a new answer, so the decision it answers may be an older one.
            Verdict::Approve => {
                let answered = self.answered.as_ref()?;
                let stands = answered.event.answer == Answer::Approve && !answered.void;
                stands.then_some(Grant::Approval(answered.digest, answered.event))
            }
            Verdict::Free => (!decided.void).then_some(Grant::Free(decided.digest, decided.event)),
        }
    }
}
