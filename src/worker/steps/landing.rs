//! Proving what landed.

use super::super::Stepped;
use super::super::drafting::Drafter;
use super::super::escalation::{Handover, hand_over};
use super::super::notices::notice;
use super::super::work::{Work, expect, unanswered};
use super::approval::signed_method;
use super::merge::{authority, void};
use crate::approve::{AuthoritySource, Binding, MergeMethod};
use crate::attest::predicate::{AuthorityRef, CheckpointRef, Execution, Landed};
use crate::attest::{Event, Role};
use crate::change::Oid;
use crate::execute::COMPARISONS_PER_MERGE;
use crate::id::ExecutionId;
use crate::incident::{
    ActiveMerge, ClosedReason, EscalationReason, Fact, MergeLock, NoticeEvent, Outcome, StepError,
};
use crate::reconcile::{Difference, LandedProof, LandedView, Landing, prove};

/// How long an unclear answer may take to show its effect.
const SETTLING_MILLIS: i64 = 30_000;
/// Pause between two looks.
const LOOK_AGAIN_MILLIS: i64 = 500;

/// Looks at what became of a merge that was asked for. Never asks again first.
pub(super) async fn prove_landing(work: Work<'_>, merge: &ActiveMerge) -> Stepped {
    let binding = expect(work.snapshot.binding(), "the binding")?;
    let view = work.connector.landed(binding, &merge.execution).await;
    let view = view.map_err(|error| unanswered(&error, work.now))?;
    settle(work, binding, merge, &view).await
}

/// Decides what a look shows.
pub(super) async fn settle(
    work: Work<'_>,
    binding: &Binding,
    merge: &ActiveMerge,
    view: &LandedView,
) -> Stepped {
    match prove(binding, view, Some(&merge.execution)) {
        Landing::Proven(proof) if ours(&proof, binding, merge) => {
            resolved(work, binding, merge, &proof, view.base_tip).await
        }
        Landing::Proven(_) => landed_otherwise(work, binding, view).await,
        Landing::Nothing => nothing_landed(work, merge),
        Landing::Differs {
            landed,
            differences,
        } => differs(work, binding, Some(merge), &landed, differences),
    }
}

/// Whether it was our merge: the trailer, or, since a rebase keeps the branch's own message, an attempt of ours to rebase.
fn ours(proof: &LandedProof, binding: &Binding, merge: &ActiveMerge) -> bool {
    let answered = merge
        .asked
        .as_ref()
        .is_some_and(|(_, answer)| *answer == merged_as(proof.commit));
    let unclear = merge
        .asked
        .as_ref()
        .is_none_or(|(_, answer)| !answer.starts_with(MERGED_AS));
    proof.ours || answered || (binding.merge_method == MergeMethod::Rebase && unclear)
}

const MERGED_AS: &str = "merged as ";

/// The record of an answer that names the landed commit.
pub(super) fn merged_as(commit: Oid) -> String {
    format!("{MERGED_AS}{commit}")
}

async fn resolved(
    work: Work<'_>,
    binding: &Binding,
    merge: &ActiveMerge,
    proof: &LandedProof,
    tip: Oid,
) -> Stepped {
    let authority = match authority(&work, binding).await? {
        Ok(authority) => authority,
        // It has landed already; what is wrong now is the record, and that is said.
        Err(refusal) => {
            let difference = Difference {
                rule: "authority".to_owned(),
                expected: "a signed approval or decision".to_owned(),
                found: refusal,
            };
            return differs(work, binding, Some(merge), proof, vec![difference]);
        }
    };
    let authority = match authority.source() {
        AuthoritySource::Approval(event) => AuthorityRef::Approval((*event).into()),
        AuthoritySource::FreeDecision(event) => AuthorityRef::Decision((*event).into()),
    };
    let authority = Some((authority, merge.checkpoint.clone()));
    let mut outcome = executed(work, binding, &merge.execution, proof, tip, authority)?;
    outcome.merge_lock = Some(MergeLock::Release);
    outcome.notices.push(notice(
        NoticeEvent::IncidentResolved,
        format!(
            "merged as {} and compared: what landed is what was approved",
            proof.commit
        ),
    ));
    Ok(outcome)
}

/// Looks at a pull request that is merged although no attempt of ours is under way.
pub(super) async fn merged_elsewhere(work: Work<'_>, binding: &Binding) -> Stepped {
    let view = work.connector.landed(binding, &fresh(&work)?).await;
    let view = view.map_err(|error| unanswered(&error, work.now))?;
    landed_otherwise(work, binding, &view).await
}

/// What landed by another attempt than the present one: an earlier one of ours that was given up and took effect after all, or
/// somebody else's, which is recorded as an execution without our approval and ends the incident.
async fn landed_otherwise(work: Work<'_>, binding: &Binding, view: &LandedView) -> Stepped {
    let earlier = earlier_attempt(&work, binding, view);
    let execution = earlier.as_ref().map(|merge| &merge.execution);
    match (prove(binding, view, execution), &earlier) {
        (Landing::Proven(proof), Some(merge)) => {
            resolved(work, binding, merge, &proof, view.base_tip).await
        }
        (Landing::Proven(proof), None) => {
            by_person(work, binding, &fresh(&work)?, &proof, view.base_tip)
        }
        (
            Landing::Differs {
                landed,
                differences,
            },
            _,
        ) => differs(work, binding, earlier.as_ref(), &landed, differences),
        (Landing::Nothing, _) => Ok(Outcome::pause(
            work.now.plus_millis(LOOK_AGAIN_MILLIS),
            "the pull request is merged, but its commit is not on the base branch yet",
        )),
    }
}

/// The attempt of ours that the landed commit names, whichever of them it is.
fn earlier_attempt(work: &Work<'_>, binding: &Binding, view: &LandedView) -> Option<ActiveMerge> {
    let is_named = |execution| match prove(binding, view, Some(execution)) {
        Landing::Proven(proof) | Landing::Differs { landed: proof, .. } => proof.ours,
        Landing::Nothing => false,
    };
    let attempts = work.snapshot.facts.iter();
    attempts
        .filter_map(|recorded| match &recorded.fact {
            Fact::Merging {
                execution,
                comparisons,
                checkpoint,
                ..
            } => Some((execution, *comparisons, checkpoint)),
            _ => None,
        })
        .find(|(execution, ..)| is_named(execution))
        .map(|(execution, comparisons, checkpoint)| ActiveMerge {
            execution: execution.clone(),
            comparisons,
            checkpoint: checkpoint.clone(),
            asked: None,
        })
}

fn fresh(work: &Work<'_>) -> Result<ExecutionId, StepError> {
    Ok(ExecutionId::new(work.now, work.engine.entropy()?))
}

fn by_person(
    work: Work<'_>,
    binding: &Binding,
    execution: &ExecutionId,
    proof: &LandedProof,
    tip: Oid,
) -> Stepped {
    let mut outcome = executed(work, binding, execution, proof, tip, None)?;
    let detail = format!("a person merged pull request {}", binding.pull_request);
    outcome
        .notices
        .push(notice(NoticeEvent::IncidentClosed, detail.clone()));
    outcome.facts.push(Fact::Closed {
        reason: ClosedReason::ByPerson,
        detail,
    });
    if work.snapshot.active_merge().is_some() {
        outcome.merge_lock = Some(MergeLock::Release);
    }
    Ok(outcome)
}

/// Drafts the execution, with the authority and the checkpoint that holds it; without them it was somebody else's.
fn executed(
    work: Work<'_>,
    binding: &Binding,
    execution: &ExecutionId,
    proof: &LandedProof,
    tip: Oid,
    authority: Option<(AuthorityRef, Option<CheckpointRef>)>,
) -> Stepped {
    let mut drafter = Drafter::after(work);
    let by_us = authority.is_some();
    let (authority, checkpoint) = authority.map_or((None, None), |(authority, checkpoint)| {
        (Some(authority), checkpoint)
    });
    let event = Execution {
        event: drafter.block(Role::Executor)?,
        execution_id: execution.clone(),
        by_us,
        proposal: work
            .snapshot
            .decision()
            .map(|decision| decision.proposal_event.into()),
        authority,
        method: signed_method(binding.merge_method),
        pull_request: binding.pull_request,
        landed: Landed {
            commit: proof.commit,
            tree: proof.tree,
            parent: proof.parent,
        },
        approved_change: Some(binding.change_digest().into()),
        observed_change: proof.observed.into(),
        before: proof.parent,
        after: tip,
        checkpoint,
    };
    let event = drafter.draft(Event::Execution(Box::new(event)))?;
    Ok(Outcome {
        drafts: drafter.finish(),
        ..Outcome::fact(Fact::Landed {
            execution: by_us.then(|| execution.clone()),
            commit: proof.commit,
            observed: proof.observed,
            matches: true,
            event,
        })
    })
}

/// Executed is not approved: signed, and the project merges nothing more until a person has looked.
fn differs(
    work: Work<'_>,
    binding: &Binding,
    merge: Option<&ActiveMerge>,
    landed: &LandedProof,
    differences: Vec<Difference>,
) -> Stepped {
    let mut outcome = Outcome::default();
    let detail = format!(
        "commit {} landed, which is not what was approved; the project is frozen",
        landed.commit
    );
    let handover = Handover {
        reason: EscalationReason::ExecutedDiffers,
        detail: detail.clone(),
        differences,
        compared: Some((binding.change_digest(), landed.observed)),
    };
    let event = hand_over(work, &mut outcome, handover)?;
    outcome.facts.insert(
        0,
        Fact::Landed {
            execution: merge
                .filter(|_| landed.ours)
                .map(|merge| merge.execution.clone()),
            commit: landed.commit,
            observed: landed.observed,
            matches: false,
            event,
        },
    );
    outcome.freeze = Some(detail);
    Ok(outcome)
}

/// Nothing there: perhaps not yet. After the settling time the attempt is over; a clear "merged" without an effect is not
/// explained by waiting.
fn nothing_landed(work: Work<'_>, merge: &ActiveMerge) -> Stepped {
    let (asked_at, answer) = match &merge.asked {
        Some((at, answer)) => (*at, answer.as_str()),
        None => (work.now, ""),
    };
    if work.now.0.saturating_sub(asked_at.0) < SETTLING_MILLIS {
        let until = work.now.plus_millis(LOOK_AGAIN_MILLIS);
        return Ok(Outcome::pause(until, "waiting for what was merged to show"));
    }
    let claimed = answer.starts_with(MERGED_AS);
    if claimed || merge.comparisons >= COMPARISONS_PER_MERGE {
        let detail = format!("the merge was asked for ({answer}), but nothing landed");
        let mut outcome = void(merge, &detail, Outcome::default());
        hand_over(
            work,
            &mut outcome,
            Handover::new(EscalationReason::MergeUnknown, detail),
        )?;
        return Ok(outcome);
    }
    Ok(void(
        merge,
        "nothing landed within the settling time",
        Outcome::default(),
    ))
}
