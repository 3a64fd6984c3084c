//! Merges of one project are one at a time, and none happens while it is frozen.

use caretaker::incident::{EscalationReason, MergeLock, Stage, stage};

use super::*;

fn take() -> Outcome {
    Outcome {
        facts: vec![Fact::Recovered {
            run_id: 1,
            attempt: 1,
        }],
        merge_lock: Some(MergeLock::Take),
        ..Outcome::default()
    }
}

fn release() -> Outcome {
    Outcome {
        merge_lock: Some(MergeLock::Release),
        ..Outcome::default()
    }
}

on_both! {
    /// Break it: leave `merge_holder IS NULL OR …` out of `commit::TAKE_LOCK`.
    async fn while_one_incident_merges_another_one_waits(world) {
        let (first, first_snapshot) = world.claimed("first").await;
        let (second, second_snapshot) = world.claimed("second").await;
        let first_snapshot = world.done(&first, &first_snapshot, take()).await;
        assert_eq!(world.commit(&second, &second_snapshot, &take()).await, Commit::LockHeld);
        assert_eq!(world.snapshot(&second.incident).await, second_snapshot);
        // Who does not hold it cannot give it back.
        let second_snapshot = world.done(&second, &second_snapshot, release()).await;
        assert_eq!(world.commit(&second, &second_snapshot, &take()).await, Commit::LockHeld);
        // Who holds it may take it again, after a crash.
        let first_snapshot = world.done(&first, &first_snapshot, take()).await;
        world.done(&first, &first_snapshot, release()).await;
        world.done(&second, &second_snapshot, take()).await;
    }

    async fn the_lock_of_an_incident_that_is_over_is_free(world) {
        let (first, first_snapshot) = world.claimed("first").await;
        let (second, second_snapshot) = world.claimed("second").await;
        let first_snapshot = world.done(&first, &first_snapshot, take()).await;
        let escalated = Outcome::fact(Fact::Escalated {
            reason: EscalationReason::MergeUnknown,
            detail: String::new(),
            differences: Vec::new(),
        });
        let first_snapshot = world.done(&first, &first_snapshot, escalated).await;
        assert_eq!(stage(&first_snapshot), Stage::Escalated);
        world.done(&second, &second_snapshot, take()).await;
    }

    /// Break it: leave `frozen IS NULL` out of `commit::TAKE_LOCK`.
    async fn nothing_merges_while_the_project_is_frozen(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let freeze = Outcome { freeze: Some("what landed differs".to_owned()), ..Outcome::default() };
        let snapshot = world.done(&claim, &snapshot, freeze).await;
        assert!(snapshot.frozen);
        assert_eq!(world.commit(&claim, &snapshot, &take()).await, Commit::LockHeld);
        let again = Outcome { freeze: Some("a second reason".to_owned()), ..Outcome::default() };
        let snapshot = world.done(&claim, &snapshot, again).await;
        let frozen = world.reread_project().await;
        assert_eq!(frozen.frozen.as_deref(), Some("what landed differs"));

        assert!(world.store.rest(&claim, snapshot.version, Some(after(3600)), "frozen", 0).await.unwrap());
        world.store.unfreeze(&frozen, after(10)).await.unwrap();
        let claim = world.claim("worker-2", after(10)).await.unwrap();
        let snapshot = world.snapshot(&claim.incident).await;
        assert!(!snapshot.frozen);
        world.done(&claim, &snapshot, take()).await;
    }

    async fn of_many_that_want_to_merge_one_does(world) {
        let mut ready = Vec::new();
        for number in 0..8 {
            ready.push(world.claimed(&format!("job-{number}")).await);
        }
        let commits: Vec<_> = ready
            .into_iter()
            .map(|(claim, snapshot)| {
                let store = world.store.clone();
                tokio::spawn(async move { store.commit(&claim, &snapshot, &take(), NOW, LEASE).await.unwrap() })
            })
            .collect();
        let mut done = 0;
        for commit in commits {
            match commit.await.unwrap() {
                Commit::Done(_) => done += 1,
                other => assert_eq!(other, Commit::LockHeld),
            }
        }
        assert_eq!(done, 1);
    }
}
