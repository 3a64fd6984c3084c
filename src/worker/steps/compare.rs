//! Comparing live with approved, before a merge is asked for.

use super::super::Stepped;
use super::super::escalation::{Handover, hand_over};
use super::super::repository::{Clone, broken, on_disk, remote_failure};
use super::super::work::{Work, expect, unanswered};
use super::hold::{Hold, Lacking, hold, overdue};
use super::landing;
use crate::approve::Binding;
use crate::change::{ChangeSet, Oid};
use crate::clock::Millis;
use crate::id::ExecutionId;
use crate::incident::{EscalationReason, Fact, MergeLock, Outcome, Snapshot, StepError};
use crate::reconcile::{CheckRequirement, Comparison, Demands, Difference, compare as judge};
use crate::workspace::git_command::Merged;

/// Commits to a merge attempt when everything is as approved; otherwise waits, hands over, or records that a person merged.
pub(super) async fn compare(work: Work<'_>, comparisons: u32) -> Stepped {
    let binding = expect(work.snapshot.binding(), "the binding")?;
    if let Some(pause) = frozen(&work) {
        return Ok(pause);
    }
    match compared(&work, binding).await? {
        Comparison::Matched(matched) => match hold(&work, Lacking::Show).await? {
            Hold::Held(checkpoint) => {
                let entropy = work.engine.entropy()?;
                Ok(Outcome {
                    merge_lock: Some(MergeLock::Take),
                    audit: overdue(&work).await?,
                    ..Outcome::fact(Fact::Merging {
                        execution: ExecutionId::new(work.now, entropy),
                        comparisons: comparisons + 1,
                        base_tip: matched.base_tip(),
                        checkpoint,
                    })
                })
            }
            open => not_held(work, Outcome::default(), open),
        },
        Comparison::Pending(reason) => Ok(Outcome::pause(
            work.now.plus_millis(patience(work.snapshot, work.now)),
            reason,
        )),
        Comparison::MergedElsewhere => landing::merged_elsewhere(work, binding).await,
        Comparison::Blocked(differences) => blocked(work, Outcome::default(), differences),
    }
}

/// A frozen project merges nothing until a person lifts it.
pub(super) fn frozen(work: &Work<'_>) -> Option<Outcome> {
    work.snapshot.frozen.then(|| {
        Outcome::pause(
            work.now.plus_seconds(60),
            "the project is frozen; a person has to lift that first",
        )
    })
}

/// Waits for what does not hold the approval yet, or hands over what excludes the log.
pub(super) fn not_held(work: Work<'_>, mut outcome: Outcome, hold: Hold) -> Stepped {
    match hold {
        Hold::Contradicted(reason) => {
            let handover = Handover::new(EscalationReason::AnchorFailed, reason);
            hand_over(work, &mut outcome, handover)?;
        }
        Hold::Open(reason) => {
            let until = work.now.plus_millis(patience(work.snapshot, work.now));
            outcome.pause = Outcome::pause(until, reason).pause;
        }
        Hold::Held(_) => {}
    }
    Ok(outcome)
}

/// Everything that steps 1 to 6 of the protocol need, read now, and their verdict.
pub(super) async fn compared(work: &Work<'_>, binding: &Binding) -> Result<Comparison, StepError> {
    let live = work.connector.live(binding).await;
    let live = live.map_err(|error| unanswered(&error, work.now))?;
    let predicted = predicted(work, binding, live.base_tip).await?;
    let checks = &work.rules.document().checks;
    let required: Vec<CheckRequirement> = checks
        .required
        .iter()
        .map(|check| CheckRequirement {
            name: check.name.clone(),
            app: Some(check.app.clone()),
        })
        .collect();
    let demands = Demands {
        required_checks: &required,
        allow_no_checks: checks.allow_none,
        predicted: predicted.as_ref(),
    };
    Ok(judge(binding, &live, &demands, work.now))
}

/// What merging would change at the base tip, by git itself; none when it conflicts, or when a commit cannot be had.
async fn predicted(
    work: &Work<'_>,
    binding: &Binding,
    base_tip: Oid,
) -> Result<Option<ChangeSet>, StepError> {
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    clone.fetch(&binding.base_ref, base_tip).await?;
    let merged = clone
        .git()
        .merge_tree(&base_tip, &binding.head_commit)
        .await;
    let Merged::Tree(tree) = merged.map_err(|error| remote_failure(&error))? else {
        return Ok(None);
    };
    let repository = clone.open()?;
    let change = on_disk(move || {
        let change = repository.change_set(base_tip, tree);
        change.map_err(|error| broken(&error))
    });
    change.await.map(Some)
}

/// Hands over what is not as approved.
pub(super) fn blocked(
    work: Work<'_>,
    mut outcome: Outcome,
    differences: Vec<Difference>,
) -> Stepped {
    let named: Vec<String> = differences
        .iter()
        .map(|difference| {
            format!(
                "{}: approved {}, found {}",
                difference.rule, difference.expected, difference.found
            )
        })
        .collect();
    let changes = differences
        .iter()
        .find(|difference| difference.rule == "change-digest")
        .and_then(|difference| {
            let expected = difference.expected.parse().ok()?;
            Some((expected, difference.found.parse().ok()?))
        });
    let handover = Handover {
        reason: EscalationReason::ChangeMismatch,
        detail: format!("nothing was merged: {}", named.join("; ")),
        differences,
        compared: changes,
    };
    hand_over(work, &mut outcome, handover)?;
    Ok(outcome)
}

/// How long to wait for a check or for the provider, in milliseconds: half of the time since something happened last, so that
/// an answer that takes a moment is not waited for long, and checks that take minutes cost few looks.
fn patience(snapshot: &Snapshot, now: Millis) -> i64 {
    let last = snapshot.facts.last().map_or(now, |fact| fact.at);
    (now.0.saturating_sub(last.0) / 2).clamp(500, 60_000)
}
