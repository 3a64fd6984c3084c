//! Claims, leases and the fence.

use super::*;

on_both! {
    async fn an_incident_is_due_at_once_and_held_by_one(world) {
        let (claim, _) = world.claimed("test").await;
        assert_eq!((claim.attempts, &claim.project), (1, &world.project.id));
        assert_eq!(world.claim("worker-2", after(59)).await, None);
    }

    async fn whoever_has_waited_longest_comes_first(world) {
        let early = world.open("early").await;
        let (late, id) = (failure("late", 101), IncidentId::new(NOW, world.fresh()));
        let observed = world.store.observe(&world.project, &late, None, &id, after(5)).await.unwrap();
        assert_eq!(observed, Observed::Opened(id.clone()));
        assert_eq!(world.claim("a", after(9)).await.unwrap().incident, early);
        assert_eq!(world.claim("b", after(9)).await.unwrap().incident, id);
        assert_eq!(world.claim("c", after(9)).await, None);
    }

    /// Break it: leave `lease_owner = $12` out of `commit::ADVANCE`.
    async fn a_worker_that_stalled_beyond_its_lease_writes_nothing_once_another_took_over(world) {
        let (stalled, snapshot) = world.claimed("test").await;
        let heir = world.claim("worker-2", after(60)).await.unwrap();
        assert_eq!((&heir.incident, heir.attempts), (&stalled.incident, 2));
        let outcome = Outcome::fact(Fact::Screened { passed: true });
        assert_eq!(world.commit(&stalled, &snapshot, &outcome).await, Commit::Lost);
        assert!(!world.store.extend(&stalled, after(61), LEASE).await.unwrap());
        assert!(!world.store.rest(&stalled, snapshot.version, None, "", 0).await.unwrap());
        world.store.release(&stalled).await.unwrap();
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
        world.done(&heir, &snapshot, outcome).await;
    }

    async fn a_heartbeat_keeps_the_lease(world) {
        let (claim, _) = world.claimed("test").await;
        assert!(world.store.extend(&claim, after(50), LEASE).await.unwrap());
        assert_eq!(world.claim("worker-2", after(100)).await, None);
        assert!(world.claim("worker-2", after(110)).await.is_some());
    }

    /// Break it: leave `version = $11` out of `commit::ADVANCE`.
    async fn a_commit_over_an_older_version_is_lost(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let outcome = Outcome::fact(Fact::Screened { passed: true });
        let newer = world.done(&claim, &snapshot, outcome.clone()).await;
        assert_eq!(world.commit(&claim, &snapshot, &outcome).await, Commit::Lost);
        assert_eq!(world.snapshot(&snapshot.incident).await, newer);
    }

    async fn a_resting_incident_is_due_when_it_said(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let until = Some(after(300));
        let rested = world.store.rest(&claim, snapshot.version, until, "the provider is down", 4);
        assert!(rested.await.unwrap());
        let scope = world.store.within(&world.project.organisation);
        let row = scope.incident(&claim.incident).await.unwrap().unwrap();
        assert_eq!(row.wait, Some((after(300), "the provider is down".to_owned())));
        assert_eq!(world.claim("worker-2", after(299)).await, None);
        assert_eq!(world.claim("worker-2", after(300)).await.unwrap().attempts, 5);
    }

    async fn an_incident_without_anything_to_do_is_never_due(world) {
        let (claim, snapshot) = world.claimed("test").await;
        assert!(world.store.rest(&claim, snapshot.version, None, "", 0).await.unwrap());
        assert_eq!(world.claim("worker-2", after(1_000_000)).await, None);
    }

    /// Break it: write `wake_at = $2` without the comparison of versions in `work::REST`.
    async fn what_happened_meanwhile_keeps_an_incident_from_going_to_sleep(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let consumed = world.store.consume(&token, caretaker::approve::HumanDecision::Approve, None, after(1));
        assert!(matches!(consumed.await.unwrap(), caretaker::store::Consumed::Done { .. }));
        assert!(world.store.rest(&claim, snapshot.version, Some(after(3600)), "the owner", 0).await.unwrap());
        assert_eq!(world.claim("worker-2", after(2)).await.unwrap().incident, claim.incident);
    }

    async fn a_paused_step_wakes_later_and_progress_resets_the_count_of_attempts(world) {
        let (claim, snapshot) = world.claimed("test").await;
        world.done(&claim, &snapshot, Outcome::pause(after(600), "checks are running")).await;
        world.store.release(&claim).await.unwrap();
        assert_eq!(world.claim("worker-2", after(599)).await, None);
        assert_eq!(world.claim("worker-2", after(600)).await.unwrap().attempts, 1);
    }

    async fn many_workers_never_claim_the_same_incident(world) {
        let mut opened = std::collections::BTreeSet::new();
        for number in 0..12 {
            opened.insert(world.open(&format!("job-{number}")).await);
        }
        let claims: Vec<_> = (0..16)
            .map(|number| {
                let store = world.store.clone();
                tokio::spawn(async move {
                    store.claim(&format!("worker-{number}"), NOW, LEASE).await.unwrap()
                })
            })
            .collect();
        let mut claimed = Vec::new();
        for claim in claims {
            claimed.extend(claim.await.unwrap().map(|claim| claim.incident));
        }
        // Where several claim at once, one may find nothing although something was due: then the next poll has it.
        while let Some(claim) = world.claim("last", NOW).await {
            claimed.push(claim.incident);
        }
        assert_eq!(claimed.len(), opened.len());
        assert_eq!(claimed.into_iter().collect::<std::collections::BTreeSet<_>>(), opened);
    }

    async fn the_clock_is_a_moment_of_today(world) {
        let now = world.store.now().await.unwrap();
        assert!((1_700_000_000_000..4_000_000_000_000).contains(&now.0));
    }
}
