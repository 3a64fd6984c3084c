//! A worker that is killed after any effect, and the next one that finishes its work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use caretaker::approve::HumanDecision;
use caretaker::incident::Stage;
use caretaker::worker::{Failpoint, drain};
use tokio::sync::Notify;

use super::world::{Setting, World};

/// Stops the worker right after its effect with this number, counted from 1, as `kill -9` would.
pub(super) struct StopAfter {
    number: usize,
    passed: AtomicUsize,
    pub(super) reached: Notify,
}

impl StopAfter {
    pub(super) fn effect(number: usize) -> Arc<Self> {
        Arc::new(Self {
            number,
            passed: AtomicUsize::new(0),
            reached: Notify::new(),
        })
    }
}

#[async_trait]
impl Failpoint for StopAfter {
    async fn passed(&self, _: &'static str) {
        if self.passed.fetch_add(1, Ordering::SeqCst) + 1 == self.number {
            self.reached.notify_one();
            // The test drops the worker's future here, in the middle of whatever it was doing.
            std::future::pending::<()>().await;
        }
    }
}

/// Works, with the owner approving when asked, until the incident is over or the worker is killed. True when it was killed.
async fn work(world: &World, stop: &StopAfter) -> bool {
    for _ in 0..40 {
        tokio::select! {
            drained = drain(&world.engine, "first") => drained.unwrap(),
            () = stop.reached.notified() => return true,
        }
        match world.stage().await {
            Stage::AwaitingApproval if world.snapshot().await.answer().is_none() => {
                world.answer(HumanDecision::Approve).await;
            }
            stage if stage.is_final() => return false,
            _ => world.clock.advance_millis(5_000),
        }
    }
    panic!("it does not end");
}

/// Kills the first worker after effect `number`; the second one ends the story. False when there is no such effect.
async fn killed_after(number: usize) -> bool {
    let mut world = World::new(Setting::sums()).await;
    let stop = StopAfter::effect(number);
    world.engine.failpoint = Some(stop.clone());
    if !work(&world, &stop).await {
        return false;
    }
    // The dead one's lease has to run out first.
    world.engine.failpoint = None;
    world.clock.advance_millis(61_000);
    let mut stage = world.settle().await;
    if stage == Stage::AwaitingApproval {
        world.answer(HumanDecision::Approve).await;
        stage = world.settle().await;
    }
    assert_eq!(
        stage,
        Stage::Resolved,
        "after {number}: {:#?}",
        world.snapshot().await.facts
    );
    assert_eq!(
        world.events().await,
        ["proposal", "policy-decision", "approval", "execution"],
        "after {number}"
    );
    let repository = &world.planted.repository;
    let pulls = repository.pulls().unwrap();
    assert_eq!(pulls.len(), 1, "after {number}: one pull request");
    let changes = repository.reference_changes().unwrap();
    let landed = changes
        .iter()
        .filter(|change| change.name == "refs/heads/main")
        .count();
    assert_eq!(landed, 1, "after {number}: one merge: {changes:#?}");
    let pushed = changes
        .iter()
        .filter(|change| change.name.starts_with("refs/heads/caretaker/"))
        .count();
    assert_eq!(pushed, 1, "after {number}: one push: {changes:#?}");
    true
}

/// Every fourth effect, so that four tests share the work.
async fn every_fourth(first: usize) {
    let mut number = first;
    while killed_after(number).await {
        number += 4;
    }
    assert!(
        number > 20,
        "the story has more than twenty effects, but ended before effect {number}"
    );
}

// Break it: let `steps::publish::open` open without `find_pull`; a worker killed after `open-pull` then opens a second one
// (the fourth quarter fails). The look for the branch in `push` only saves a push: one of the same commit changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_effect_the_story_ends_the_same_first_quarter() {
    every_fourth(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_effect_the_story_ends_the_same_second_quarter() {
    every_fourth(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_effect_the_story_ends_the_same_third_quarter() {
    every_fourth(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_after_any_effect_the_story_ends_the_same_fourth_quarter() {
    every_fourth(4).await;
}
