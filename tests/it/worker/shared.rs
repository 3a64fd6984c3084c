//! Several workers on one PostgreSQL.

use caretaker::approve::HumanDecision;
use caretaker::incident::{Stage, stage};
use caretaker::worker::drain;

use super::world::{Setting, World};
use crate::support::postgres;

/// Lets two workers race until the incident rests.
async fn race(world: &World) -> Stage {
    let another = world.another_engine();
    for _ in 0..60 {
        let (first, second) =
            tokio::join!(drain(&world.engine, "first"), drain(&another, "second"));
        first.unwrap();
        second.unwrap();
        let snapshot = world.snapshot().await;
        let reached = stage(&snapshot);
        let asked = snapshot
            .link
            .as_ref()
            .is_some_and(|link| snapshot.link_sent(&link.approval));
        if reached.is_final() || asked {
            return reached;
        }
        world.clock.advance_millis(5_000);
    }
    panic!("it does not rest: {:#?}", world.snapshot().await.facts);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_on_one_postgresql_make_one_pull_request_and_one_merge() {
    let Some(schema) = postgres::schema().await else {
        return;
    };
    let world = World::new(Setting {
        database: Some(schema),
        ..Setting::sums()
    })
    .await;
    assert_eq!(Box::pin(race(&world)).await, Stage::AwaitingApproval);
    world.answer(HumanDecision::Approve).await;
    assert_eq!(
        Box::pin(race(&world)).await,
        Stage::Resolved,
        "{:#?}",
        world.snapshot().await.facts
    );
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "execution"]
    );
    let pulls = world.planted.repository.pulls().unwrap();
    assert_eq!(pulls.len(), 1);
    let changes = world.planted.repository.reference_changes().unwrap();
    let merges = changes
        .iter()
        .filter(|change| change.name == "refs/heads/main");
    assert_eq!(merges.count(), 1);
}
