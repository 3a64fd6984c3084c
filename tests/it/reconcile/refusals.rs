//! What the worker makes of each answer to its one request.

use caretaker::forge::FaultAction;
use caretaker::incident::{ClosedReason, EscalationReason, Fact, Stage};
use caretaker::worker::drain;

use super::installation::approved;
use crate::worker::world::World;

const RESOLVED: [&str; 4] = ["proposal", "policy-decision", "approval", "execution"];
const HANDED_OVER: [&str; 4] = ["proposal", "policy-decision", "approval", "escalation"];

/// Executions that were begun, and those given up.
async fn attempts(world: &World) -> (usize, usize) {
    let facts = world.snapshot().await.facts;
    let count = |kind: &str| facts.iter().filter(|fact| fact.fact.kind() == kind).count();
    (count("merging"), count("merge-void"))
}

async fn assert_resolved_after(world: &World, requests: usize) {
    let stage = world.settle().await;
    let facts = world.snapshot().await.facts;
    assert_eq!(stage, Stage::Resolved, "{facts:#?}");
    assert_eq!(world.events().await, RESOLVED);
    assert_eq!(world.merges_asked(), requests);
    assert_eq!(attempts(world).await, (requests, requests - 1));
    world.assert_merged();
    let begun = facts.iter().rev().find_map(|fact| match &fact.fact {
        Fact::Merging { execution, .. } => Some(execution.to_string()),
        _ => None,
    });
    let execution = world.signed("execution").await;
    assert_eq!(execution["by_us"], true, "{execution:#}");
    assert_eq!(execution["execution_id"].as_str(), begun.as_deref());
}

/// The answer is lost, the effect is not: it is found by the execution that the landed commit names, and never asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_not_asked_for_again() {
    let world = approved().await;
    world.merge_fails(1, FaultAction::CloseAfterEffect);
    // Break: answer `CompareAgain` for `Ambiguous` in `after` of src/execute/outcome.rs.
    assert_resolved_after(&world, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_without_an_effect_is_asked_again_after_a_look() {
    let world = approved().await;
    world.merge_answers(1, 500, "Something went wrong");
    assert_resolved_after(&world, 2).await;
    let snapshot = world.snapshot().await;
    let void = snapshot.facts.iter().find_map(|fact| match &fact.fact {
        Fact::MergeVoid { reason, .. } => Some((fact.at, reason.clone())),
        _ => None,
    });
    let (at, reason) = void.unwrap();
    assert!(reason.contains("settling"), "{reason}");
    let asked = snapshot.facts.iter().find_map(|fact| match &fact.fact {
        Fact::MergeAsked { .. } => Some(fact.at),
        _ => None,
    });
    // Break: `SETTLING_MILLIS` of 0 in src/worker/steps/landing.rs.
    assert!(at.0 - asked.unwrap().0 >= 30_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_although_the_head_is_the_same_is_compared_again() {
    let world = approved().await;
    world.merge_answers(
        1,
        409,
        "Head branch was modified. Review and try the merge again.",
    );
    assert_resolved_after(&world, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_that_stays_is_given_up_after_three_comparisons() {
    let world = approved().await;
    for nth in 1..=4 {
        world.merge_answers(nth, 409, "Head branch was modified.");
    }
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, detail, _) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::MergeRefused);
    assert!(detail.contains("after 3 comparisons"), "{detail}");
    // Break: a larger `COMPARISONS_PER_MERGE` in src/execute/outcome.rs.
    assert_eq!(world.merges_asked(), 3);
    assert_eq!(world.events().await, HANDED_OVER);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modified_base_is_compared_again_and_any_other_405_stops() {
    let world = approved().await;
    world.merge_answers(
        1,
        405,
        "Base branch was modified. Review and try the merge again.",
    );
    let words = "At least 1 approving review is required by reviewers with write access.";
    world.merge_answers(2, 405, words);
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, detail, _) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::MergeRefused);
    assert!(detail.contains(words), "{detail}");
    assert_eq!(world.merges_asked(), 2);
    assert_eq!(world.events().await, HANDED_OVER);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_runs_out_under_the_request_is_taken_anew() {
    let world = approved().await;
    world.merge_answers(1, 401, "Bad credentials");
    assert_resolved_after(&world, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_waited_for() {
    let world = approved().await;
    world.merge_fails(
        1,
        FaultAction::Status {
            code: 429,
            body: r#"{"message":"API rate limit exceeded"}"#.to_owned(),
            headers: vec![("retry-after".to_owned(), "60".to_owned())],
        },
    );
    assert_resolved_after(&world, 2).await;
    let facts = world.snapshot().await.facts;
    let begun: Vec<_> = facts
        .iter()
        .filter(|fact| fact.fact.kind() == "merging")
        .map(|fact| fact.at.0)
        .collect();
    assert!(begun[1] - begun[0] >= 60_000, "{begun:?}");
}

/// A provider that claims a merge which nobody can find is not believed, and not asked again either.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_that_is_claimed_and_not_there_is_handed_over() {
    let world = approved().await;
    let body = serde_json::json!({"merged": true, "sha": "c".repeat(40), "message": "merged"});
    world.merge_fails(
        1,
        FaultAction::Status {
            code: 200,
            body: body.to_string(),
            headers: Vec::new(),
        },
    );
    assert_eq!(world.settle().await, Stage::Escalated);
    // Break: resolve on `MergeAnswer::Merged` alone in src/worker/steps/merge.rs.
    let (reason, _, _) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::MergeUnknown);
    assert_eq!(world.merges_asked(), 1);
    assert_eq!(world.events().await, HANDED_OVER);
    world.assert_unmerged();
}

/// The provider said that it failed, nothing was there for as long as anybody looked, and then it merged after all. It was our
/// order and the record says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_effect_after_it_was_given_up_is_recorded_as_ours() {
    let world = approved().await;
    world.merge_answers(1, 500, "Something went wrong");
    // Every comparison reads the files; the third one belongs to the second attempt.
    world.fails(
        "GET",
        "/pulls/1/files",
        3,
        FaultAction::Status {
            code: 502,
            body: "{}".to_owned(),
            // So that it is not asked again within the same step.
            headers: vec![("retry-after".to_owned(), "1".to_owned())],
        },
    );
    while attempts(&world).await != (1, 1) {
        drain(&world.engine, "worker").await.unwrap();
        world.clock.advance_millis(5_000);
    }
    let facts = world.snapshot().await.facts;
    let begun = facts.iter().find_map(|fact| match &fact.fact {
        Fact::Merging { execution, .. } => Some(execution.to_string()),
        _ => None,
    });
    let execution = begun.unwrap();
    world.merge_late(&execution).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    assert_eq!(world.events().await, RESOLVED);
    let signed = world.signed("execution").await;
    // Break: let `earlier_attempt` of src/worker/steps/landing.rs find nothing; a person would be said to have merged it.
    assert_eq!(signed["by_us"], true, "{signed:#}");
    assert_eq!(signed["execution_id"].as_str(), Some(execution.as_str()));
    assert_eq!(
        world.merges_asked(),
        2,
        "one of them is the late one itself"
    );
    world.assert_merged();
}

/// Everything was as approved, then the provider was away until the approval had run out.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_runs_out_between_check_and_request_merges_nothing() {
    let world = approved().await;
    world.fails(
        "GET",
        "/pulls/1/files",
        2,
        FaultAction::Status {
            code: 502,
            body: "{}".to_owned(),
            // So that it is not asked again within the same step.
            headers: vec![("retry-after".to_owned(), "1".to_owned())],
        },
    );
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.stage().await, Stage::Merging);
    world.clock.advance_millis(24 * 3_600_000);
    assert_eq!(world.settle().await, Stage::Closed);
    let snapshot = world.snapshot().await;
    assert_eq!(snapshot.closed().unwrap().0, ClosedReason::Expired);
    assert_eq!(world.merges_asked(), 0);
    assert_eq!(attempts(&world).await, (1, 1));
    world.assert_unmerged();
    assert!(!world.repository().pull(1).unwrap().open);
}
