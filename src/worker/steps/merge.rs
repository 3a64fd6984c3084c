//! Asking once for the merge.

use super::super::Stepped;
use super::super::escalation::{Handover, hand_over};
use super::super::work::{Work, expect, unanswered, unread};
use super::compare::{blocked, compared, frozen, not_held};
use super::hold::{Hold, Lacking, hold};
use super::landing;
use crate::approve::{Authority, Binding};
use crate::execute::{AfterMerge, MergeAnswer, MergeOrder, after, order};
use crate::incident::{ActiveMerge, EscalationReason, Fact, MergeLock, Outcome, StepError};
use crate::reconcile::{Comparison, Matched};

/// Looks whether it landed already; if not, compares again in memory and asks for the merge, once.
pub(super) async fn merge(work: Work<'_>, merge: &ActiveMerge) -> Stepped {
    let binding = expect(work.snapshot.binding(), "the binding")?;
    let view = work.connector.landed(binding, &merge.execution).await;
    let view = view.map_err(|error| unanswered(&error, work.now))?;
    if view.landed.is_some() {
        return landing::settle(work, binding, merge, &view).await;
    }
    if let Some(pause) = frozen(&work) {
        return Ok(void(merge, "the project is frozen", pause));
    }
    if work.now >= binding.expires_at {
        // The next look at the facts closes what has expired.
        let reason = "the approval expired before the merge was asked for";
        return Ok(void(merge, reason, Outcome::default()));
    }
    match compared(&work, binding).await? {
        Comparison::Matched(matched) => ask(work, binding, merge, &matched).await,
        Comparison::Pending(reason) => {
            let pause = Outcome::pause(work.now.plus_seconds(1), reason.clone());
            Ok(void(merge, &reason, pause))
        }
        Comparison::MergedElsewhere => landing::merged_elsewhere(work, binding).await,
        Comparison::Blocked(differences) => {
            let outcome = void(merge, "live is not as approved", Outcome::default());
            blocked(work, outcome, differences)
        }
    }
}

async fn ask(work: Work<'_>, binding: &Binding, merge: &ActiveMerge, matched: &Matched) -> Stepped {
    // A newer trust root may have revoked the very key that approved this.
    work.allow_acting()?;
    let authority = match authority(&work, binding).await? {
        Ok(authority) => authority,
        Err(refusal) => {
            let mut outcome = void(merge, &refusal, Outcome::default());
            let handover = Handover::new(EscalationReason::LedgerBroken, refusal);
            hand_over(work, &mut outcome, handover)?;
            return Ok(outcome);
        }
    };
    match hold(&work, Lacking::Leave).await? {
        Hold::Held(_) => {}
        // Break it: go on; an anchor that the rules demand since the comparison is then not waited for
        // (`worker::anchoring::what_is_demanded_after_the_comparison_is_waited_for`).
        open => {
            let outcome = void(
                merge,
                "the approval is not held as the project demands",
                Outcome::default(),
            );
            return not_held(work, outcome, open);
        }
    }
    let order = match order(
        &authority,
        matched,
        &merge.execution,
        merge.checkpoint.as_ref(),
        work.now,
    ) {
        Ok(order) => order,
        // The next look at the facts closes what has expired.
        Err(error) => return Ok(void(merge, &error.to_string(), Outcome::default())),
    };
    let answer = asked(&work, &order).await;
    work.engine.passed("merge").await;
    let words = in_words(&answer);
    let mut outcome = Outcome::fact(Fact::MergeAsked {
        execution: merge.execution.clone(),
        answer: words.clone(),
    });
    match after(&answer, merge.comparisons) {
        AfterMerge::ProveLanding => Ok(outcome),
        AfterMerge::CompareAgain => Ok(void(merge, &words, outcome)),
        AfterMerge::WaitThenCompare(until) => {
            outcome.pause = Outcome::pause(until, words.clone()).pause;
            Ok(void(merge, &words, outcome))
        }
        AfterMerge::Stop(reason) => {
            let mut outcome = void(merge, &words, outcome);
            // Somebody who merged first is a reason to refuse; the next comparison records whose merge it was.
            let pull = work.connector.pull(binding.pull_request).await;
            if !pull.is_ok_and(|pull| pull.merged) {
                let detail = format!("the provider refused the merge: {reason}");
                let handover = Handover::new(EscalationReason::MergeRefused, detail);
                hand_over(work, &mut outcome, handover)?;
            }
            Ok(outcome)
        }
    }
}

/// The one request. A connector that gives no answer may still have merged.
async fn asked(work: &Work<'_>, order: &MergeOrder) -> MergeAnswer {
    match work.connector.merge(order).await {
        Ok(answer) => answer,
        Err(error) => MergeAnswer::Ambiguous(error.to_string()),
    }
}

/// The authority to merge this binding, from the stored ledger as it verifies now.
pub(super) async fn authority(
    work: &Work<'_>,
    binding: &Binding,
) -> Result<Result<Authority, String>, StepError> {
    let snapshot = work.snapshot;
    let scoped = work.engine.store.within(&snapshot.organisation);
    let ledger = scoped.ledger(&snapshot.incident).await;
    let ledger = expect(ledger.map_err(|error| unread(&error))?, "the ledger")?;
    let trust = work.engine.keys.history();
    // The columns beside the envelopes are checked too: a ledger that is broken in any way authorises nothing.
    let report = crate::audit::verify(trust, &ledger);
    if report.verdict != crate::attest::chain::Verdict::Valid {
        return Ok(Err(format!(
            "the stored ledger does not verify ({} failures); nothing is merged",
            report.failures.len()
        )));
    }
    let expected = ledger.expectation();
    let found = Authority::from_ledger(trust, &expected, ledger.envelopes(), binding);
    Ok(found.map_err(|error| error.to_string()))
}

/// Ends an attempt at which nothing landed, and gives the lock back.
pub(super) fn void(merge: &ActiveMerge, reason: &str, mut outcome: Outcome) -> Outcome {
    outcome.facts.push(Fact::MergeVoid {
        execution: merge.execution.clone(),
        reason: reason.to_owned(),
    });
    outcome.merge_lock = Some(MergeLock::Release);
    outcome
}

/// An answer for the record. The landed commit is named in the form that [`landing`] looks for.
fn in_words(answer: &MergeAnswer) -> String {
    match answer {
        MergeAnswer::Merged(commit) => landing::merged_as(*commit),
        MergeAnswer::HeadMoved(reason) => format!("the head moved: {reason}"),
        MergeAnswer::NotAllowed(reason) => format!("not allowed: {reason}"),
        MergeAnswer::Limited(until) => format!("a limit until {until}"),
        MergeAnswer::CredentialExpired(reason) => format!("the credential expired: {reason}"),
        MergeAnswer::Refused(reason) => format!("refused: {reason}"),
        MergeAnswer::Ambiguous(reason) => format!("no clear answer: {reason}"),
    }
}
