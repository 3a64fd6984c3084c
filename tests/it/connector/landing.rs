//! What became of a merge, read from the base branch.

use std::sync::Arc;

use caretaker::approve::{Binding, MergeMethod};
use caretaker::connector::{Connector as _, ConnectorError};
use caretaker::id::ExecutionId;
use caretaker::reconcile::{LandedView, Landing, prove};
use serde_json::json;

use super::provider::NOW;
use super::world::{Files, World, files, oid};

const FILE: u32 = 0o100_644;

fn before() -> Files {
    files(&[("src/a.rs", FILE, "a"), ("README", FILE, "read me")])
}

fn after() -> Files {
    files(&[("src/a.rs", FILE, "a, mended"), ("README", FILE, "read me")])
}

fn execution() -> ExecutionId {
    ExecutionId::new(NOW, [7; 10])
}

fn message() -> String {
    format!(
        "Fix (#7)\n\nBecause.\n\nCaretaker-Execution: {}\n",
        execution()
    )
}

async fn landed(world: &Arc<World>, binding: &Binding) -> Result<LandedView, ConnectorError> {
    world
        .serve()
        .await
        .connector()
        .landed(binding, &execution())
        .await
}

fn proven(binding: &Binding, view: &LandedView) -> Landing {
    prove(binding, view, Some(&execution()))
}

/// Says that the pull request is merged, as this commit.
fn merged_as(world: &World, commit: git2::Oid) {
    let members =
        json!({"state": "closed", "merged": true, "merge_commit_sha": commit.to_string()});
    world.change(|facts| facts.pull = members);
}

#[tokio::test]
async fn a_squash_is_proven_by_its_tree_and_its_place() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let commit = world.commit(&after(), &[world.facts().base], &message());
    world.change(|facts| facts.base = commit);
    merged_as(&world, commit);
    let view = landed(&world, &binding).await.unwrap();
    let found = view.landed.as_ref().unwrap();
    assert_eq!((found.commit, found.on_base), (oid(commit), true));
    match proven(&binding, &view) {
        Landing::Proven(proof) => assert!(proof.ours),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_merge_commit_under_later_commits_is_found() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Merge);
    let facts = world.facts();
    let merge = world.commit(&after(), &[facts.base, facts.head], &message());
    let mut later = after();
    later.insert("README".to_owned(), (FILE, "later".to_owned()));
    let tip = world.commit(&later, &[merge], "later");
    world.change(|facts| facts.base = tip);
    merged_as(&world, merge);
    let view = landed(&world, &binding).await.unwrap();
    assert_eq!(view.base_tip, oid(tip));
    assert_eq!(view.landed.as_ref().unwrap().commit, oid(merge));
    assert!(matches!(proven(&binding, &view), Landing::Proven(_)));
}

#[tokio::test]
async fn a_lost_answer_is_found_while_the_pull_request_still_says_open() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let commit = world.commit(&after(), &[world.facts().base], &message());
    world.change(|facts| facts.base = commit);
    // Break it: search only when `merged` is true in landed.rs; this then fails.
    let view = landed(&world, &binding).await.unwrap();
    assert!(!view.pull.merged);
    assert!(matches!(proven(&binding, &view), Landing::Proven(_)));
}

#[tokio::test]
async fn nothing_landed_is_said_and_the_test_merge_is_no_hint() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let start = world.facts().base;
    let other = world.commit(&before(), &[start], "other\n\nCaretaker-Execution: another");
    world.change(|facts| facts.base = other);
    // Before a merge this member names a trial merge that the provider made.
    world.change(|facts| facts.pull = json!({"merge_commit_sha": other.to_string()}));
    let view = landed(&world, &binding).await.unwrap();
    assert_eq!(view.landed, None);
    assert_eq!(proven(&binding, &view), Landing::Nothing);
}

#[tokio::test]
async fn another_tree_under_our_execution_differs() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let mut more = after();
    more.insert("extra".to_owned(), (FILE, "not approved".to_owned()));
    let commit = world.commit(&more, &[world.facts().base], &message());
    world.change(|facts| facts.base = commit);
    merged_as(&world, commit);
    let view = landed(&world, &binding).await.unwrap();
    // Break it: fill `entries` from the binding in landed.rs; this then fails.
    assert!(matches!(proven(&binding, &view), Landing::Differs { .. }));
}

#[tokio::test]
async fn the_hint_alone_proves_nothing() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    // The right content, named by the provider, but not on the base branch.
    let commit = world.commit(&after(), &[world.facts().base], &message());
    merged_as(&world, commit);
    let view = landed(&world, &binding).await.unwrap();
    assert!(!view.landed.as_ref().unwrap().on_base);
    assert!(matches!(proven(&binding, &view), Landing::Differs { .. }));
}

#[tokio::test]
async fn a_landing_behind_a_second_parent_is_still_on_the_base() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let start = world.facts().base;
    let commit = world.commit(&after(), &[start], &message());
    let side = world.commit(&before(), &[start], "side");
    let tip = world.commit(&after(), &[side, commit], "merged the wrong way round");
    world.change(|facts| facts.base = tip);
    merged_as(&world, commit);
    let view = landed(&world, &binding).await.unwrap();
    assert!(view.landed.as_ref().unwrap().on_base);
    assert!(matches!(proven(&binding, &view), Landing::Proven(_)));
}

#[tokio::test]
async fn a_rebase_is_known_by_the_proposal_of_the_head() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Rebase);
    let start = world.facts().base;
    let base = world.commit(&before(), &[start], "meanwhile");
    let commit = world.commit(&after(), &[base], "fix\n\nCaretaker-Proposal: prp-1\n");
    world.change(|facts| facts.base = commit);
    let view = landed(&world, &binding).await.unwrap();
    assert!(matches!(proven(&binding, &view), Landing::Proven(_)));
}

#[tokio::test]
async fn a_merge_by_a_person_is_found_without_any_hint() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let facts = world.facts();
    let merge = world.commit(&after(), &[facts.base, facts.head], "Merge pull request #7");
    world.change(|facts| {
        facts.base = merge;
        facts.pull = json!({"state": "closed", "merged": true, "merge_commit_sha": null});
    });
    let view = landed(&world, &binding).await.unwrap();
    assert_eq!(view.landed.as_ref().unwrap().commit, oid(merge));
    match proven(&binding, &view) {
        Landing::Proven(proof) => assert!(!proof.ours),
        other => panic!("{other:?}"),
    }
    // Pushed to the base as it was: the head itself has landed.
    world.change(|facts| facts.base = facts.head);
    let view = landed(&world, &binding).await.unwrap();
    assert_eq!(view.landed.unwrap().commit, binding.head_commit);
}

#[tokio::test]
async fn merged_but_nowhere_to_be_found_is_an_error_not_nothing() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let members = json!({"state": "closed", "merged": true, "merge_commit_sha": null});
    world.change(|facts| facts.pull = members);
    let error = landed(&world, &binding).await.unwrap_err();
    assert!(
        error.to_string().contains("a person has to look"),
        "{error}"
    );
}

#[tokio::test]
async fn a_base_too_long_to_search_is_an_error_not_nothing() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let mut tip = world.facts().base;
    for n in 0..201 {
        tip = world.commit(&before(), &[tip], &format!("commit {n}"));
    }
    world.change(|facts| facts.base = tip);
    let error = landed(&world, &binding).await.unwrap_err();
    assert!(error.to_string().contains("newest 200 commits"), "{error}");
}

#[tokio::test]
async fn the_search_ends_at_the_commit_that_the_change_started_from() {
    let world = World::new(&before(), &after());
    let mut base = world.facts().base;
    for n in 0..250 {
        base = world.commit(&before(), &[base], &format!("long ago {n}"));
    }
    let head = world.commit(&after(), &[base], "fix");
    let tip = world.commit(&before(), &[base], "meanwhile");
    world.change(|facts| (facts.base, facts.head) = (tip, head));
    let binding = world.binding(MergeMethod::Squash);
    let provider = world.serve().await;
    let view = provider
        .connector()
        .landed(&binding, &execution())
        .await
        .unwrap();
    assert_eq!(view.landed, None);
    let asked = provider.asked();
    let commits = asked
        .iter()
        .filter(|it| it.tail().starts_with("/git/commits/"));
    assert_eq!(commits.count(), 1);
}

#[tokio::test]
async fn a_base_rewound_past_the_merge_base_has_nothing() {
    let world = World::new(&before(), &after());
    let binding = world.binding(MergeMethod::Squash);
    let root = world.commit(&before(), &[], "another beginning");
    world.change(|facts| facts.base = root);
    let view = landed(&world, &binding).await.unwrap();
    assert_eq!(proven(&binding, &view), Landing::Nothing);
}
