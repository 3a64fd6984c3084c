//! What happens to an incident when its project's credential is sealed anew, or its project is removed.

use caretaker::approve::HumanDecision;
use caretaker::incident::{AuditEvent, Stage};
use caretaker::store::{Consumed, Swap};
use caretaker::worker::drain;

use super::world::{Setting, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_anew_after_the_key_was_rotated_and_the_old_link_is_dead() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    drain(&world.engine, "worker").await.unwrap();
    let old = world.inbox.link().unwrap();
    let store = &world.engine.store;
    let project = store.sealed_credentials().await.unwrap().remove(0).0;
    let swaps = [Swap {
        project,
        before: b"sealed".to_vec(),
        after: b"sealed anew".to_vec(),
    }];
    let event = AuditEvent {
        kind: "deployment-key-rotated",
        detail: String::new(),
    };
    let (organisation, now) = (
        &world.project.organisation,
        super::world::NOW.plus_seconds(600),
    );
    let resealed = store.reseal_credentials(&swaps, organisation, &event, now);
    assert_eq!(
        resealed.await.unwrap(),
        std::slice::from_ref(&world.incident)
    );
    world.clock.advance_millis(700_000);
    drain(&world.engine, "worker").await.unwrap();
    let new = world.inbox.link().unwrap();
    assert_ne!(old.hash(), new.hash());
    let dead = store.consume(&old, HumanDecision::Approve, None, now).await;
    assert_eq!(dead.unwrap(), Consumed::Gone);
    world.answer(HumanDecision::Approve).await;
    assert_eq!(world.settle().await, Stage::Resolved);
    let events = world.events().await;
    assert_eq!(
        events,
        ["proposal", "policy-decision", "approval", "execution"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_an_incident_whose_project_was_removed_still_verifies() {
    let world = World::new(Setting::sums()).await;
    assert_eq!(world.settle().await, Stage::AwaitingApproval);
    let store = &world.engine.store;
    let now = super::world::NOW.plus_seconds(600);
    let (removal, _) = store
        .remove_project(&world.project, "local:ada", now)
        .await
        .unwrap();
    assert_eq!(removal.closed, std::slice::from_ref(&world.incident));
    assert_eq!(removal.pulls.len(), 1);
    world.clock.advance_millis(700_000);
    let requests = world.forge.requests().len();
    drain(&world.engine, "worker").await.unwrap();
    assert_eq!(world.stage().await, Stage::Closed);
    assert_eq!(world.events().await, ["proposal", "policy-decision"]);
    // Nothing was done at the provider for it, not even tidying up.
    assert_eq!(world.forge.requests().len(), requests);
}
