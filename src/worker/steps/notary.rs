//! What a role checks before it signs. Between drafting and signing the statement lay in the database, and whoever can write
//! there must not get a signature that lets something be merged: the change and its decision are computed again, an approval is
//! held against the records of question and answer, an execution of ours against the ledger's authority, a gap against what is
//! to go. What only tells (an escalation, why something failed) is signed as it was drafted.

use super::super::repository::{Clone, broken};
use super::super::work::{Work, expect};
use super::approval::{answer, bound, signed_answer};
use super::judge::judge;
use super::let_go;
use super::merge::authority;
use super::propose::{signed_class, signed_verdict};
use crate::approve::AuthoritySource;
use crate::attest::predicate::{
    Approval, AuthorityRef, Execution, PolicyDecision, Proposal, Target, Verdict as SignedVerdict,
};
use crate::attest::{Event, Statement};
use crate::incident::StepError;

/// Checks a drafted statement. What does not hold is never signed and tried again slowly: a person has to mend the database.
pub(super) async fn check(work: Work<'_>, seq: u64, statement: &[u8]) -> Result<(), StepError> {
    let statement = Statement::parse(statement).map_err(|error| refused(error.to_string()))?;
    let event = statement
        .as_event()
        .ok_or_else(|| refused("the statement is not an event"))?;
    let block = event.block();
    demand(
        block.incident == work.snapshot.incident && block.seq == seq,
        "the statement is of another incident or place",
    )?;
    match event {
        Event::Proposal(proposal) => proposed(&work, proposal).await,
        Event::PolicyDecision(decision) => decided(&work, decision).await,
        Event::Approval(approval) => answered(&work, approval).await,
        Event::Execution(execution) => executed(&work, execution).await,
        Event::Gap(gap) => let_go::objection(&work, gap)
            .await?
            .map_or(Ok(()), |why| demand(false, why)),
        Event::Escalation(_) => Ok(()),
    }
}

fn refused(reason: impl Into<String>) -> StepError {
    StepError::retry(
        std::time::Duration::from_mins(1),
        format!(
            "nothing is signed: {}; restore the database from a backup",
            reason.into()
        ),
    )
}

fn demand(holds: bool, otherwise: &str) -> Result<(), StepError> {
    if holds {
        Ok(())
    } else {
        Err(refused(otherwise))
    }
}

/// The proposer: the commit in the trusted repository is the change.
async fn proposed(work: &Work<'_>, proposal: &Proposal) -> Result<(), StepError> {
    let Target::Commit { change, head } = &proposal.target else {
        return Ok(());
    };
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let judged = judge(work, &clone, proposal.base.commit, head.commit).await?;
    let tree = clone.open()?.commit_tree(head.commit);
    demand(
        judged.change.digest() == change.sha256
            && tree.map_err(|error| broken(&error))? == head.tree,
        "the proposed commit does not make the proposed change",
    )
}

/// Policy: the rules decide the same about it again.
async fn decided(work: &Work<'_>, decision: &PolicyDecision) -> Result<(), StepError> {
    demand(
        decision.event.policy == (*work.rules.digest()).into(),
        "the decision is by other rules than the project's",
    )?;
    match &decision.target {
        Target::Files(_) => demand(
            decision.verdict == SignedVerdict::Deny,
            "files without a commit can only be refused",
        ),
        Target::Commit { change, head } => {
            let fix = expect(work.snapshot.fix(), "the fix")?;
            let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
            let judged = judge(work, &clone, fix.base_commit, head.commit).await?;
            // Break it: drop this comparison; `worker::tampering::a_decision_made_milder_in_the_database_is_not_signed` fails.
            demand(
                judged.change.digest() == change.sha256
                    && signed_verdict(judged.decision.verdict()) == decision.verdict
                    && signed_class(judged.decision.class()) == decision.class,
                "the rules decide otherwise about this change",
            )
        }
    }
}

/// The approver: the records of the question and of the used link say what the statement says.
async fn answered(work: &Work<'_>, approval: &Approval) -> Result<(), StepError> {
    let request = expect(work.snapshot.request(), "the approval request")?;
    let (_, used) = answer(work, request).await?.map_err(refused)?;
    let token = &approval.token;
    demand(
        approval.request == request.digest().into()
            && approval.binding == bound(&request.binding)?
            && approval.answer == signed_answer(used.decision)
            && approval.approver.principal.as_str() == used.principal.as_str()
            && token.sha256 == used.token.0
            && token.consumed_at == used.consumed_at
            && token.expires_at == used.expires_at,
        "the records of the question and of the used link do not say what the approval says",
    )
}

/// The executor: the ledger, as it verifies now, authorises exactly what is said to have been done.
async fn executed(work: &Work<'_>, execution: &Execution) -> Result<(), StepError> {
    let binding = expect(work.snapshot.binding(), "the binding")?;
    demand(
        execution.pull_request == binding.pull_request,
        "the execution is of another pull request",
    )?;
    let Some(named) = &execution.authority else {
        return Ok(());
    };
    let found = authority(work, binding).await?.map_err(refused)?;
    let same = match (named, found.source()) {
        (AuthorityRef::Approval(named), AuthoritySource::Approval(found))
        | (AuthorityRef::Decision(named), AuthoritySource::FreeDecision(found)) => {
            named.sha256 == *found
        }
        _ => false,
    };
    demand(
        same && execution.approved_change == Some(binding.change_digest().into()),
        "the ledger does not authorise this execution",
    )
}
