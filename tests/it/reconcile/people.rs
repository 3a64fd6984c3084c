//! People do things between approval and merge, and between the comparison and the request.

use std::time::Duration;

use caretaker::approve::HumanDecision;
use caretaker::forge::{FileEdit, RepositoryHandle};
use caretaker::incident::{ClosedReason, EscalationReason, Fact, Stage};
use caretaker::store::Consumed;

use super::installation::{approved, waiting};
use crate::worker::world::World;

const HANDED_OVER: [&str; 4] = ["proposal", "policy-decision", "approval", "escalation"];

async fn closed_as(world: &World) -> ClosedReason {
    world.snapshot().await.closed().unwrap().0
}

/// The same file, another place: git merges it without a word.
fn edit_elsewhere(repository: &RepositoryHandle, path: &str) {
    let text = repository.file("main", path).unwrap().unwrap();
    let text = String::from_utf8(text).unwrap() + "\n";
    let edit = [(path, FileEdit::file(text))];
    repository
        .commit("main", &edit, "a line at the end")
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retarget_after_the_approval_hands_over_and_merges_nothing() {
    let world = approved().await;
    let repository = world.repository();
    let main = repository.tip("main").unwrap();
    repository.create_branch("release", &main).unwrap();
    repository.retarget_pull(1, "release").unwrap();
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, _, rules) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::ChangeMismatch);
    // Break: drop the comparison of `base-branch` in `pull_request` of src/reconcile/compare.rs.
    assert_eq!(rules, ["base-branch"]);
    assert_eq!(world.events().await, HANDED_OVER);
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_elsewhere_in_the_same_file_on_the_base_hands_over() {
    let world = approved().await;
    edit_elsewhere(&world.repository(), world.planted.file);
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, _, rules) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::ChangeMismatch);
    assert_eq!(rules, ["pre-image", "predicted-merge"]);
    assert_eq!(world.events().await, HANDED_OVER);
    assert_eq!(world.merges_asked(), 0);
    world.assert_unmerged();
}

/// The same when the request is on its way already: the provider merges, the proof tells, and the project merges nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_on_the_base_under_the_request_freezes_the_project() {
    let world = approved().await;
    let path = world.planted.file;
    world.meanwhile(move |repository| edit_elsewhere(repository, path));
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, detail, rules) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::ExecutedDiffers);
    // Break: compare `landed.entries` with themselves in `prove` of src/reconcile/landed.rs.
    assert_eq!(rules, ["landed-change"]);
    assert!(detail.contains("frozen"), "{detail}");
    let snapshot = world.snapshot().await;
    assert!(snapshot.frozen);
    assert_eq!(snapshot.landed(), Some(false));
    assert_eq!(world.events().await, HANDED_OVER);
    assert_eq!(world.merges_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_to_the_branch_under_the_request_is_refused_and_handed_over() {
    let world = approved().await;
    let branch = world.branch().await;
    world.meanwhile(move |repository| {
        let main = repository.tip("main").unwrap();
        let edit = [("extra.py", FileEdit::file("pass\n"))];
        let other = repository.commit_object(&[main], &edit, "another").unwrap();
        let name = format!("refs/heads/{branch}");
        repository.force_reference(&name, &other).unwrap();
    });
    assert_eq!(world.settle().await, Stage::Escalated);
    let (reason, _, rules) = world.handed_over().await;
    assert_eq!(reason, EscalationReason::ChangeMismatch);
    assert!(rules.contains(&"head-commit".to_owned()), "{rules:?}");
    // Break: leave `sha` out of the request in src/connector/github/merge.rs; the other commit is merged then.
    assert_eq!(world.merges_asked(), 1);
    world.assert_unmerged();
    assert_eq!(world.events().await, HANDED_OVER);
}

async fn assert_merged_by_a_person(world: &World) {
    assert_eq!(world.settle().await, Stage::Closed);
    assert_eq!(closed_as(world).await, ClosedReason::ByPerson);
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let execution = world.signed("execution").await;
    assert_eq!(execution["by_us"], false, "{execution:#}");
    assert!(execution["authority"].is_null(), "{execution:#}");
    let snapshot = world.snapshot().await;
    let landed = snapshot.facts.iter().find_map(|fact| match &fact.fact {
        Fact::Landed { execution, .. } => Some(execution.clone()),
        _ => None,
    });
    // Break: `by_us = true` in `executed` of src/worker/steps/landing.rs.
    assert_eq!(landed, Some(None));
    world.assert_merged();
    // The branch is left to the person who merged it.
    let branch = world.branch().await;
    assert!(world.repository().tip(&branch).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_by_a_person_before_ours_is_recorded_as_theirs() {
    let world = approved().await;
    world.repository().merge_by_person(1, "merge").unwrap();
    assert_merged_by_a_person(&world).await;
    assert_eq!(world.merges_asked(), 0);
}

/// The provider refuses ours then, in the words that it has for every refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_by_a_person_under_our_request_is_recorded_as_theirs() {
    let world = approved().await;
    world.meanwhile(|repository| {
        repository.merge_by_person(1, "squash").unwrap();
    });
    // Break: drop the look at the pull request in `ask` of src/worker/steps/merge.rs.
    assert_merged_by_a_person(&world).await;
    assert_eq!(world.merges_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_closes_the_pull_request_and_removes_the_branch() {
    let world = waiting().await;
    let branch = world.branch().await;
    world.answer(HumanDecision::Reject).await;
    assert_eq!(world.settle().await, Stage::Closed);
    assert_eq!(closed_as(&world).await, ClosedReason::Rejected);
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval"]
    );
    assert_eq!(world.signed("approval").await["answer"], "reject");
    assert_tidied(&world, &branch, "rejected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_expires() {
    let world = waiting().await;
    let branch = world.branch().await;
    let day = i64::try_from(Duration::from_hours(24).as_millis()).unwrap();
    world.clock.advance_millis(day);
    // Break: drop the expiry from the predicate of `consume` in src/store/approval.rs.
    assert_eq!(
        world.try_answer(HumanDecision::Approve).await,
        Consumed::Gone
    );
    assert_eq!(world.settle().await, Stage::Closed);
    assert_eq!(closed_as(&world).await, ClosedReason::Expired);
    assert_eq!(world.events().await, ["proposal", "policy-decision"]);
    assert_eq!(world.merges_asked(), 0);
    assert_tidied(&world, &branch, "expired").await;
}

/// Nobody asked us, so nothing tells us; before the incident is closed we look.
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_by_a_person_instead_of_an_answer_is_recorded_as_theirs() {
    let world = waiting().await;
    world.repository().merge_by_person(1, "squash").unwrap();
    let day = i64::try_from(Duration::from_hours(24).as_millis()).unwrap();
    world.clock.advance_millis(day);
    assert_eq!(world.settle().await, Stage::Closed);
    // Break: drop the look at the pull request in src/worker/steps/close.rs.
    assert_eq!(closed_as(&world).await, ClosedReason::ByPerson);
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "execution"]
    );
    let branch = world.branch().await;
    assert!(world.repository().tip(&branch).is_ok());
}

/// An answer in time does not outlive the time for which it was given.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_is_acted_upon_too_late_merges_nothing() {
    let world = approved().await;
    let branch = world.branch().await;
    let day = i64::try_from(Duration::from_hours(24).as_millis()).unwrap();
    world.clock.advance_millis(day);
    assert_eq!(world.settle().await, Stage::Closed);
    assert_eq!(closed_as(&world).await, ClosedReason::Expired);
    // Break: `_ if false && expired` in `authorisation` of src/incident/next.rs; then the comparison says `expiry`.
    assert_eq!(world.merges_asked(), 0);
    assert_tidied(&world, &branch, "expired").await;
}

async fn assert_tidied(world: &World, branch: &str, word: &str) {
    let pull = world.repository().pull(1).unwrap();
    assert!(!pull.open);
    assert_eq!(pull.comments.len(), 1, "{:?}", pull.comments);
    assert!(pull.comments[0].contains(word), "{:?}", pull.comments);
    assert!(
        world.repository().tip(branch).is_err(),
        "the branch is gone"
    );
    assert!(world.snapshot().await.cleaned_up());
    world.assert_unmerged();
}
