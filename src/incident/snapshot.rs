//! All facts of one incident, read at once.

use super::{
    ClosedReason, DecisionFact, DiagnosisFact, Failure, FixFact, Outcome, RecordedFact,
    Reproduction,
    fact::{EscalationReason, Fact},
};
use crate::approve::{ApprovalRequest, Binding, HumanDecision};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{ApprovalId, ExecutionId, IncidentId, OrganisationId, ProjectId};

/// How far the incident's ledger is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerState {
    /// Statements that are drafted; their numbers are 0 to this, exclusive.
    pub drafted: u64,
    /// Statements that are signed and appended.
    pub appended: u64,
    /// SHA-256 of the newest drafted statement's PAE: what the next one links to.
    pub head: Option<Sha256Digest>,
}

/// A live approval link: neither used, revoked nor expired when the snapshot was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Which one.
    pub approval: ApprovalId,
    /// When it expires.
    pub expires_at: Millis,
}

/// One incident as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The incident.
    pub incident: IncidentId,
    /// Whose it is.
    pub organisation: OrganisationId,
    /// Its project.
    pub project: ProjectId,
    /// What was observed first.
    pub failure: Failure,
    /// Fence: a commit is conditional on it.
    pub version: i64,
    /// When it was opened.
    pub opened_at: Millis,
    /// Everything known, in order.
    pub facts: Vec<RecordedFact>,
    /// The chain.
    pub ledger: LedgerState,
    /// The live link, if there is one.
    pub link: Option<Link>,
    /// Whether the project merges nothing until a person lifts it.
    pub frozen: bool,
}

/// Looks up the newest fact of a variant.
macro_rules! newest {
    ($snapshot:expr, $pattern:pat => $value:expr) => {
        $snapshot
            .facts
            .iter()
            .rev()
            .find_map(|recorded| match &recorded.fact {
                $pattern => Some($value),
                _ => None,
            })
    };
}

/// The active attempt to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveMerge {
    /// The attempt.
    pub execution: ExecutionId,
    /// Comparisons made for it and its predecessors.
    pub comparisons: u32,
    /// When and with which answer the merge was asked for, when that is known.
    pub asked: Option<(Millis, String)>,
}

impl Snapshot {
    /// The incident as it is once `outcome` is committed at `now`: what the commit's cached stage is computed from.
    #[must_use]
    pub fn after(&self, outcome: &Outcome, now: Millis) -> Self {
        let mut next = self.clone();
        next.version += 1;
        let first = next.facts.last().map_or(0, |last| last.ordinal + 1);
        let recorded = (first..).zip(&outcome.facts);
        next.facts
            .extend(recorded.map(|(ordinal, fact)| RecordedFact {
                ordinal,
                at: now,
                fact: fact.clone(),
            }));
        for draft in &outcome.drafts {
            next.ledger.drafted = draft.seq + 1;
            next.ledger.head = Some(draft.pae);
        }
        if let Some(envelope) = &outcome.envelope {
            next.ledger.appended = envelope.seq + 1;
        }
        if let Some(link) = &outcome.link {
            next.link = Some(Link {
                approval: link.approval.clone(),
                expires_at: link.expires_at,
            });
        }
        if super::stage(&next).is_final() {
            next.link = None;
        }
        next.frozen |= outcome.freeze.is_some();
        next
    }

    /// How the tests ended in the sandbox.
    pub fn reproduction(&self) -> Option<&Reproduction> {
        newest!(self, Fact::Reproduced(reproduction) => reproduction)
    }

    /// Whether the log was read.
    pub fn extraction(&self) -> Option<Sha256Digest> {
        newest!(self, Fact::Extracted { evidence, .. } => *evidence)
    }

    /// The diagnosis.
    pub fn diagnosis(&self) -> Option<&DiagnosisFact> {
        newest!(self, Fact::Diagnosed(diagnosis) => diagnosis)
    }

    /// Whether the diagnosis's files were checked, and passed.
    pub fn screened(&self) -> Option<bool> {
        newest!(self, Fact::Screened { passed } => *passed)
    }

    /// The fix.
    pub fn fix(&self) -> Option<&FixFact> {
        newest!(self, Fact::Fixed(fix) => fix)
    }

    /// The decision.
    pub fn decision(&self) -> Option<&DecisionFact> {
        newest!(self, Fact::Decided(decision) => decision)
    }

    /// Whether the branch is at the provider.
    pub fn pushed(&self) -> bool {
        newest!(self, Fact::Pushed { .. } => ()).is_some()
    }

    /// The pull request's number.
    pub fn pull_request(&self) -> Option<u64> {
        newest!(self, Fact::Opened { number, .. } => *number)
    }

    /// The pull request's page.
    pub fn pull_request_url(&self) -> Option<&str> {
        newest!(self, Fact::Opened { url, .. } => url.as_str())
    }

    /// The question put to a person.
    pub fn request(&self) -> Option<&ApprovalRequest> {
        newest!(self, Fact::Requested { request } => request.as_ref())
    }

    /// What a merge must equal: from the request, or of a free change.
    pub fn binding(&self) -> Option<&Binding> {
        self.request()
            .map(|request| &request.binding)
            .or_else(|| newest!(self, Fact::Bound { binding } => binding.as_ref()))
    }

    /// Whether that link was delivered.
    pub fn link_sent(&self, link: &ApprovalId) -> bool {
        self.facts.iter().any(
            |recorded| matches!(&recorded.fact, Fact::LinkSent { approval } if approval == link),
        )
    }

    /// The person's answer.
    pub fn answer(&self) -> Option<HumanDecision> {
        newest!(self, Fact::Consumed { decision, .. } => *decision)
    }

    /// Digest of the record of the answer.
    pub fn consumption(&self) -> Option<Sha256Digest> {
        newest!(self, Fact::Consumed { evidence, .. } => *evidence)
    }

    /// Digest of the drafted approval's PAE.
    pub fn approval_event(&self) -> Option<Sha256Digest> {
        newest!(self, Fact::ApprovalDrafted { event } => *event)
    }

    /// The attempt to merge that is neither void nor landed.
    pub fn active_merge(&self) -> Option<ActiveMerge> {
        let (execution, comparisons) = newest!(self, Fact::Merging { execution, comparisons, .. } => (execution.clone(), *comparisons))?;
        let void = self.facts.iter().any(|recorded| matches!(&recorded.fact, Fact::MergeVoid { execution: one, .. } if *one == execution));
        if void || self.landed().is_some() {
            return None;
        }
        let asked = self
            .facts
            .iter()
            .rev()
            .find_map(|recorded| match &recorded.fact {
                Fact::MergeAsked {
                    execution: one,
                    answer,
                } if *one == execution => Some((recorded.at, answer.clone())),
                _ => None,
            });
        Some(ActiveMerge {
            execution,
            comparisons,
            asked,
        })
    }

    /// Comparisons that led to an attempt, so far; also those whose attempt was void before anything was asked for.
    pub fn comparisons(&self) -> u32 {
        newest!(self, Fact::Merging { comparisons, .. } => *comparisons).unwrap_or(0)
    }

    /// Whether what landed is what was approved; none before anything landed.
    pub fn landed(&self) -> Option<bool> {
        newest!(self, Fact::Landed { matches, .. } => *matches)
    }

    /// Why it was handed over.
    pub fn escalation(&self) -> Option<(EscalationReason, &str)> {
        newest!(self, Fact::Escalated { reason, detail, .. } => (*reason, detail.as_str()))
    }

    /// Why it ended without our merge.
    pub fn closed(&self) -> Option<(ClosedReason, &str)> {
        newest!(self, Fact::Closed { reason, detail } => (*reason, detail.as_str()))
    }

    /// The run that succeeded: a newer one, or another attempt of one that failed.
    pub fn recovered(&self) -> Option<u64> {
        newest!(self, Fact::Recovered { run_id, .. } => *run_id)
    }

    /// Whether the evidence was kept long enough.
    pub fn evidence_due(&self) -> bool {
        newest!(self, Fact::EvidenceDue => ()).is_some()
    }

    /// Whether it was let go.
    pub fn evidence_let_go(&self) -> bool {
        newest!(self, Fact::EvidenceLetGo { .. } => ()).is_some()
    }

    /// Whether branch and pull request were tidied away.
    pub fn cleaned_up(&self) -> bool {
        newest!(self, Fact::CleanedUp => ()).is_some()
    }
}
