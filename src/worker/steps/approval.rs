//! Turning a person's answer into a statement of the approver.

use super::super::Stepped;
use super::super::drafting::{Drafter, label, text};
use super::super::work::{Work, expect};
use super::links::nonces;
use crate::approve::{ApprovalRequest, Binding, Consumption, HumanDecision, MergeMethod};
use crate::attest::predicate::{
    Answer, Approval, Approver, BoundChange, EvidenceRef, IdentityMethod,
    MergeMethod as SignedMethod, TokenUse,
};
use crate::attest::{Event, List, Role, Text};
use crate::change::Sha256Digest;
use crate::incident::{EscalationReason, Fact, Outcome, StepError};

/// The approver signs only what the evidence shows: the record of the used link, and the request that it was for.
pub(super) async fn draft(work: Work<'_>) -> Stepped {
    let request = expect(work.snapshot.request(), "the approval request")?;
    let (digest, consumption) = match answer(&work, request).await? {
        Ok(found) => found,
        Err(reason) => return Err(StepError::escalate(EscalationReason::LedgerBroken, reason)),
    };
    let mut drafter = Drafter::after(work);
    let approval = Approval {
        event: drafter.block(Role::Approver)?,
        answer: signed_answer(consumption.decision),
        binding: bound(&request.binding)?,
        request: request.digest().into(),
        proposal: request.proposal.into(),
        decision: request.decision.into(),
        approver: Approver {
            principal: text(request.principal.as_str())?,
        },
        method: IdentityMethod::Link,
        evidence: List::first_of([
            EvidenceRef {
                kind: label("approval-request")?,
                sha256: request.digest(),
            },
            EvidenceRef {
                kind: label("consumption")?,
                sha256: digest,
            },
        ]),
        token: TokenUse {
            sha256: consumption.token.0,
            issued_at: consumption.issued_at,
            expires_at: consumption.expires_at,
            consumed_at: consumption.consumed_at,
        },
        comment: consumption.comment.as_deref().map(Text::clipped),
    };
    let event = drafter.draft(Event::Approval(Box::new(approval)))?;
    let mut outcome = Outcome::fact(Fact::ApprovalDrafted { event });
    outcome.drafts = drafter.finish();
    Ok(outcome)
}

/// The record of the answer with its digest, if it shows that whoever wrote it down held the link that was made for exactly
/// this question; otherwise why it does not.
pub(super) async fn answer(
    work: &Work<'_>,
    request: &ApprovalRequest,
) -> Result<Result<(Sha256Digest, Consumption), String>, StepError> {
    let digest = expect(work.snapshot.consumption(), "the record of the answer")?;
    let used: Consumption = work.document(&digest).await?;
    let kept: ApprovalRequest = work.document(&request.digest()).await?;
    let made = nonces(work, request, &used.approval);
    let about = kept == *request
        && used.request == request.digest()
        && used.principal == request.principal
        && request.principal == work.project.owner
        && Some(used.decision) == work.snapshot.answer();
    let linked = made.iter().any(|made| used.is_sealed_by(made));
    Ok(match (about, linked) {
        (true, true) => Ok((digest, used)),
        (false, _) => Err("the record of the answer is not about the question that was asked of the owner".to_owned()),
        (true, false) => Err("the record of the answer is not as it was written down through a link that was made here; somebody wrote it into the database, or an older version did just before this one was started".to_owned()),
    })
}

/// The binding as it is signed.
pub(super) fn bound(binding: &Binding) -> Result<BoundChange, StepError> {
    let of = |text: &str| Sha256Digest::of(text.as_bytes()).into();
    Ok(BoundChange {
        repository_id: label(&binding.repository_id)?,
        host: label(&binding.host)?,
        pull_request: binding.pull_request,
        base_ref: text(&binding.base_ref)?,
        merge_base: binding.merge_base,
        head_ref: text(&binding.head_ref)?,
        head_commit: binding.head_commit,
        head_tree: binding.head_tree,
        count: binding.change.count as u64,
        change: binding.change_digest().into(),
        merge_method: signed_method(binding.merge_method),
        title: of(&binding.title),
        body: of(&binding.body),
        expires_at: binding.expires_at,
        sha256: binding.digest(),
    })
}

/// The word that is signed for an answer.
pub(super) const fn signed_answer(decision: HumanDecision) -> Answer {
    match decision {
        HumanDecision::Approve => Answer::Approve,
        HumanDecision::Reject => Answer::Reject,
    }
}

/// The word that is signed for a method.
pub(super) const fn signed_method(method: MergeMethod) -> SignedMethod {
    match method {
        MergeMethod::Merge => SignedMethod::Merge,
        MergeMethod::Squash => SignedMethod::Squash,
        MergeMethod::Rebase => SignedMethod::Rebase,
    }
}
