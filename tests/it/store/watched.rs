//! Failures become incidents, once; successes end them.

use caretaker::incident::{ClosedReason, NoticeEvent, Rerun};
use caretaker::store::{Patience, StoreError};

use super::*;

impl World {
    async fn observe(&self, failure: &Failure) -> Observed {
        let id = IncidentId::new(NOW, self.fresh());
        let observed = self
            .store
            .observe(&self.project, failure, None, &id, after(1));
        observed.await.unwrap()
    }

    async fn succeed(&self, job: &str, run: u64) {
        self.succeed_in(job, run, 1).await;
    }

    async fn succeed_in(&self, job: &str, run: u64, attempt: u64) {
        let key = failure(job, run).key(&self.project.id);
        let observed = self
            .store
            .observe_success(&self.project, &key, run, attempt, after(2));
        observed.await.unwrap();
    }

    /// The job fails in that attempt of a run.
    async fn fail_in(&self, job: &str, run: u64, attempt: u64) -> Observed {
        let again = Failure {
            attempt,
            ..failure(job, run)
        };
        self.observe(&again).await
    }

    async fn closed(&self, claim: &Claim, reason: ClosedReason) {
        let snapshot = self.snapshot(&claim.incident).await;
        let detail = String::new();
        let closed = Outcome::fact(Fact::Closed { reason, detail });
        self.done(claim, &snapshot, closed).await;
    }
}

on_both! {
    async fn the_same_failure_again_changes_nothing(world) {
        let incident = world.open("test").await;
        let before = world.snapshot(&incident).await;
        assert_eq!(world.observe(&failure("test", 100)).await, Observed::Known);
        assert_eq!(world.snapshot(&incident).await, before);
        let notices = world.store.due_notices(after(1), 9).await.unwrap();
        assert_eq!(notices.iter().map(|notice| notice.event).collect::<Vec<_>>(), [NoticeEvent::IncidentOpened]);
        assert!(notices[0].text.contains("example/repository-1: job \"test\" failed on main"));
    }

    async fn a_newer_failure_of_the_key_attaches_and_another_job_opens(world) {
        let incident = world.open("test").await;
        assert_eq!(world.observe(&failure("test", 101)).await, Observed::Attached(incident.clone()));
        let mut again = failure("test", 100);
        again.attempt = 2;
        assert_eq!(world.observe(&again).await, Observed::Attached(incident.clone()));
        assert!(matches!(world.observe(&failure("lint", 101)).await, Observed::Opened(_)));
        let scope = world.store.within(&world.project.organisation);
        let events = scope.audit_events(&incident).await.unwrap();
        assert_eq!(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["failure-attached"; 2]);
        assert_eq!(scope.incidents().await.unwrap().len(), 2);
    }

    /// Break it: drop the index `incident_open`.
    async fn of_many_processes_that_see_new_failures_of_one_key_one_opens_an_incident(world) {
        let observing: Vec<_> = (0..12)
            .map(|number| {
                let (store, project, id) = (world.store.clone(), world.project.clone(), IncidentId::new(NOW, world.fresh()));
                let failure = failure("test", 200 + number / 2);
                tokio::spawn(async move { store.observe(&project, &failure, None, &id, NOW).await.unwrap() })
            })
            .collect();
        let (mut opened, mut attached, mut known) = (0, 0, 0);
        for one in observing {
            match one.await.unwrap() {
                Observed::Opened(_) => opened += 1,
                Observed::Attached(_) => attached += 1,
                Observed::Known => known += 1,
                Observed::Suppressed => panic!("nothing was closed"),
            }
        }
        assert_eq!((opened, attached, known), (1, 5, 6));
    }

    async fn after_a_recovery_a_failure_opens_another_incident(world) {
        let (claim, _) = world.claimed("test").await;
        world.closed(&claim, ClosedReason::Recovered).await;
        assert!(matches!(world.observe(&failure("test", 101)).await, Observed::Opened(_)));
    }

    async fn after_a_rejection_or_expiry_nothing_is_raised_until_a_success(world) {
        for (job, reason) in [("rejected", ClosedReason::Rejected), ("expired", ClosedReason::Expired)] {
            let (claim, _) = world.claimed(job).await;
            world.closed(&claim, reason).await;
            assert_eq!(world.observe(&failure(job, 101)).await, Observed::Suppressed);
            assert_eq!(world.observe(&failure(job, 101)).await, Observed::Known);
            world.succeed("other", 102).await;
            assert_eq!(world.observe(&failure(job, 103)).await, Observed::Suppressed);
            world.succeed(job, 104).await;
            let Observed::Opened(id) = world.observe(&failure(job, 105)).await else {
                panic!("still silent after a success");
            };
            let claim = world.claim("worker-2", after(1)).await.unwrap();
            assert_eq!(claim.incident, id);
            world.closed(&claim, ClosedReason::Recovered).await;
        }
    }

    async fn a_success_is_told_once_to_the_open_incident_and_wakes_it(world) {
        let (claim, snapshot) = world.claimed("test").await;
        world.store.rest(&claim, snapshot.version, Some(after(9000)), "checks", 0).await.unwrap();
        world.succeed("test", 101).await;
        world.succeed("test", 102).await;
        let known = world.snapshot(&claim.incident).await;
        assert_eq!((known.recovered(), known.version), (Some(101), snapshot.version + 1));
        assert!(world.claim("worker-2", after(2)).await.is_some());
    }

    async fn a_success_older_than_the_newest_failure_says_nothing(world) {
        let incident = world.open("test").await;
        assert!(matches!(world.observe(&failure("test", 110)).await, Observed::Attached(_)));
        world.succeed("test", 109).await;
        assert_eq!(world.snapshot(&incident).await.recovered(), None);
    }

    async fn a_later_attempt_of_the_failed_run_that_succeeds_makes_it_flaky(world) {
        let incident = world.open("test").await;
        world.succeed_in("test", 100, 1).await;
        let known = world.snapshot(&incident).await;
        assert_eq!(known.recovered(), None, "the attempt that failed does not succeed, too");
        world.succeed_in("test", 100, 2).await;
        let known = world.snapshot(&incident).await;
        let told = Fact::Recovered { run_id: 100, attempt: 2 };
        assert_eq!(known.facts.last().map(|last| &last.fact), Some(&told));
        let words = "failed in attempt 1, passed in attempt 2 of run 100 at the same commit";
        assert_eq!(known.flake().as_deref(), Some(words));
    }

    /// Break it: let `Snapshot::learns_from` say yes to every failure; a branch that keeps failing then keeps the worker from
    /// ending any step.
    async fn only_a_failure_that_says_something_becomes_a_fact(world) {
        let (claim, snapshot) = world.claimed("test").await;
        assert!(matches!(world.fail_in("test", 101, 1).await, Observed::Attached(_)));
        assert_eq!(world.snapshot(&claim.incident).await, snapshot, "another run is history only");
        assert!(matches!(world.fail_in("test", 100, 2).await, Observed::Attached(_)));
        let known = world.snapshot(&claim.incident).await;
        assert_eq!((known.failed_attempts(100), known.version), (vec![1, 2], snapshot.version + 1));
        assert_eq!(world.fail_in("test", 100, 2).await, Observed::Known);
        assert_eq!(world.snapshot(&claim.incident).await, known);
        world.succeed_in("test", 101, 2).await;
        let words = world.snapshot(&claim.incident).await.flake();
        assert_eq!(words, None, "of run 101 no failure is known here: it is a newer run that succeeds");
    }

    async fn while_another_attempt_is_waited_for_a_newer_run_that_fails_answers_too(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let asked = Fact::RerunAsked { run_id: 100, attempt: 2 };
        let snapshot = world.done(&claim, &snapshot, Outcome::fact(asked)).await;
        assert!(world.store.rest(&claim, snapshot.version, Some(after(3600)), "a rerun", 0).await.unwrap());
        assert!(matches!(world.fail_in("test", 101, 1).await, Observed::Attached(_)));
        let known = world.snapshot(&claim.incident).await;
        assert_eq!(known.rerun(), Rerun::FailedAgain { run_id: 101, attempt: 1 });
        assert!(world.claim("worker-2", after(1)).await.is_some(), "it is due");
        assert!(matches!(world.fail_in("test", 102, 1).await, Observed::Attached(_)));
        assert_eq!(world.snapshot(&claim.incident).await.facts, known.facts, "one answer is enough");
    }

    /// Break it: leave `rerun-asked` to the kinds of fact that repeat.
    async fn a_second_rerun_of_one_incident_cannot_be_written(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let asked = Outcome::fact(Fact::RerunAsked { run_id: 100, attempt: 2 });
        let snapshot = world.done(&claim, &snapshot, asked.clone()).await;
        let refused = world.store.commit(&claim, &snapshot, &asked, NOW, LEASE).await.unwrap_err();
        assert!(refused.to_string().contains("\"rerun-asked\" is known already"), "{refused}");
        assert_eq!(world.snapshot(&claim.incident).await, snapshot);
    }

    async fn a_success_says_nothing_once_something_landed(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let landed = Fact::Landed {
            execution: None,
            commit: oid(5),
            observed: Sha256Digest::of(b"x"),
            matches: false,
            event: Sha256Digest::of(b"e"),
        };
        let snapshot = world.done(&claim, &snapshot, Outcome::fact(landed)).await;
        world.succeed("test", 101).await;
        assert_eq!(world.snapshot(&claim.incident).await, snapshot);
    }

    async fn a_run_is_seen_once_it_was_marked(world) {
        let project = &world.project.id;
        assert!(world.store.seen_runs(project, 7).await.unwrap().is_empty());
        for _ in 0..2 {
            world.store.mark_seen(project, &[(6, 1), (7, 1), (8, 3)], NOW).await.unwrap();
        }
        let seen = world.store.seen_runs(project, 7).await.unwrap();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(7, 1), (8, 3)]);
        assert!(world.store.mark_seen(project, &[(9, 1), (u64::MAX, 1)], NOW).await.is_err());
        assert_eq!(world.store.seen_runs(project, 9).await.unwrap().len(), 0, "half of it would be written");
    }

    /// Break it: leave `still_there` out of `observe`.
    async fn of_a_project_that_was_removed_nothing_is_raised(world) {
        let (removal, _) = world.store.remove_project(&world.project, "local:ada", NOW).await.unwrap();
        assert_eq!(removal.closed, []);
        assert_eq!(world.observe(&failure("test", 100)).await, Observed::Known);
        let scope = world.store.within(&world.project.organisation);
        assert_eq!(scope.incidents().await.unwrap(), []);
        let told = world.store.due_notices(after(9), 9).await.unwrap();
        assert!(told.iter().all(|notice| notice.event != NoticeEvent::IncidentOpened), "{told:?}");
    }

    /// Break it: end the incidents of a project only before it is marked as removed.
    async fn what_is_observed_while_a_project_is_removed_does_not_stay_open(world) {
        let observing: Vec<_> = (0..12)
            .map(|number| {
                let (store, project, id) = (world.store.clone(), world.project.clone(), IncidentId::new(NOW, world.fresh()));
                let failure = failure(&format!("job {number}"), 200);
                tokio::spawn(async move { store.observe(&project, &failure, None, &id, NOW).await.unwrap() })
            })
            .collect();
        world.store.remove_project(&world.project, "local:ada", NOW).await.unwrap();
        for one in observing {
            drop(one.await.unwrap());
        }
        let scope = world.store.within(&world.project.organisation);
        for incident in scope.incidents().await.unwrap() {
            assert_eq!(incident.stage, caretaker::incident::Stage::Closed, "{}", incident.failure.kind);
        }
    }
}

#[tokio::test]
async fn while_nothing_is_due_nobody_waits_for_the_lock() {
    let world = World::sqlite().await;
    let (store, project) = (&world.store, &world.project.id);
    let mut raw = world.raw().await;
    let both = "UPDATE project SET watch = 'health'";
    sqlx::raw_sql(both).execute(&mut raw).await.unwrap();
    let check = (project.clone(), "site".to_owned());
    store.add_health(&[check], NOW).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE")
        .execute(&mut raw)
        .await
        .unwrap();
    let hasty = Store::open_with(&world.url, Patience::Short).await.unwrap();
    let early = after(-1);
    assert_eq!(
        hasty.claim_health("one", early, LEASE, 9).await.unwrap(),
        []
    );
    assert_eq!(hasty.take_looks("one", early, 9).await.unwrap().len(), 0);
    // What is due needs it.
    let claimed = hasty.claim_health("one", NOW, LEASE, 9).await.unwrap_err();
    assert!(matches!(claimed, StoreError::Locked { .. }), "{claimed}");
    let taken = hasty.take_looks("one", NOW, 9).await.unwrap_err();
    assert!(matches!(taken, StoreError::Locked { .. }), "{taken}");
    sqlx::raw_sql("ROLLBACK").execute(&mut raw).await.unwrap();
    assert_eq!(
        hasty
            .claim_health("one", NOW, LEASE, 9)
            .await
            .unwrap()
            .len(),
        1
    );
}
