//! Credentials and their projects: what is replaced at once or not at all, and what ends with a project.

use caretaker::approve::HumanDecision;
use caretaker::clock::Millis;
use caretaker::connector::{Condition, Usage};
use caretaker::incident::{AuditEvent, ClosedReason, Stage, stage};
use caretaker::store::{ApprovalState, Consumed, Looked, StoreError, Swap};

use super::*;

impl World {
    fn swap(&self, before: &[u8], after: &[u8]) -> Swap {
        Swap {
            project: self.project.clone(),
            before: before.to_vec(),
            after: after.to_vec(),
        }
    }

    async fn reseal(&self, swaps: &[Swap]) -> Result<Vec<IncidentId>, StoreError> {
        let event = AuditEvent {
            kind: "deployment-key-rotated",
            detail: String::new(),
        };
        let organisation = &self.project.organisation;
        let resealed = self
            .store
            .reseal_credentials(swaps, organisation, &event, after(9));
        resealed.await
    }

    async fn credential(&self) -> Vec<u8> {
        let sealed = self.store.credential(&self.project.id).await;
        sealed.unwrap().unwrap()
    }

    async fn link_state(&self, token: &ApprovalToken) -> ApprovalState {
        let view = self.store.approval_by_token(&token.hash(), after(9)).await;
        view.unwrap().unwrap().state
    }
}

on_both! {
    async fn a_credential_is_replaced_only_in_the_place_of_the_one_that_was_read(world) {
        let event = AuditEvent { kind: "credential-replaced", detail: String::new() };
        let wrong = world.swap(b"another", b"new");
        assert!(world.store.replace_credential(&wrong, None, &event, NOW).await.is_err());
        assert_eq!(world.credential().await, b"sealed");
        let right = world.swap(b"sealed", b"new");
        world.store.replace_credential(&right, None, &event, NOW).await.unwrap();
        assert_eq!(world.credential().await, b"new");
        assert_eq!(world.reread_project().await, world.project);
    }

    async fn sealing_anew_is_all_or_nothing_and_asks_open_questions_anew(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        assert!(world.store.rest(&claim, snapshot.version, Some(after(3600)), "asked", 0).await.unwrap());
        let incomplete = world.reseal(&[]).await.unwrap_err();
        assert!(incomplete.to_string().contains("registered or removed meanwhile"), "{incomplete}");
        let wrong = world.reseal(&[world.swap(b"another", b"new")]).await;
        assert!(wrong.is_err());
        assert_eq!((world.credential().await, world.link_state(&token).await), (b"sealed".to_vec(), ApprovalState::Live));

        let renewed = world.reseal(&[world.swap(b"sealed", b"new")]).await.unwrap();
        assert_eq!(renewed, std::slice::from_ref(&claim.incident));
        assert_eq!((world.credential().await, world.link_state(&token).await), (b"new".to_vec(), ApprovalState::Revoked));
        // A worker makes another link at once.
        let due = world.claim("worker-2", after(10)).await.unwrap();
        assert_eq!(due.incident, claim.incident);
        assert_eq!(world.snapshot(&claim.incident).await.link, None);
    }

    async fn a_link_that_is_being_made_while_the_key_is_rotated_is_not_kept(world) {
        let (claim, snapshot, _) = world.asked("test").await;
        world.reseal(&[world.swap(b"sealed", b"new")]).await.unwrap();
        let late = Outcome { link: Some(world.link(&request(), named("late").hash(), after(3600))), ..Outcome::default() };
        assert_eq!(world.commit(&claim, &snapshot, &late).await, Commit::Lost);
    }

    async fn an_answer_that_waits_for_its_signature_holds_the_rotation_up(world) {
        let (claim, _, token) = world.asked("test").await;
        let used = world.store.consume(&token, HumanDecision::Approve, None, after(1)).await.unwrap();
        assert!(matches!(used, Consumed::Done { .. }));
        let swap = [world.swap(b"sealed", b"new")];
        let error = world.reseal(&swap).await.unwrap_err().to_string();
        assert!(error.contains("waits for its signature"), "{error}");
        assert_eq!(world.credential().await, b"sealed");
        let snapshot = world.snapshot(&claim.incident).await;
        let drafted = Outcome::fact(Fact::ApprovalDrafted { event: Sha256Digest::of(b"event") });
        world.done(&claim, &snapshot, drafted).await;
        world.reseal(&swap).await.unwrap();
    }

    async fn with_its_project_an_open_incident_ends_and_its_link_with_it(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let (removal, _) = world.store.remove_project(&world.project, "local:ada", after(9)).await.unwrap();
        assert_eq!((&removal.closed, &removal.left), (&vec![claim.incident.clone()], &vec![]));
        assert_eq!(world.credential().await, b"");
        assert_eq!(world.link_state(&token).await, ApprovalState::Revoked);
        let ended = world.snapshot(&claim.incident).await;
        assert_eq!(stage(&ended), Stage::Closed);
        assert_eq!(ended.closed(), Some((ClosedReason::Superseded, "local:ada removed the project")));
        // Whoever held it has lost it, and nobody gets it again.
        assert_eq!(world.commit(&claim, &snapshot, &Outcome::fact(Fact::CleanedUp)).await, Commit::Lost);
        assert_eq!(world.claim("worker-2", after(9_000)).await, None);
    }

    async fn an_incident_whose_record_is_unfinished_stays_as_it_is_and_is_said_to(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let drafted = Outcome { drafts: vec![first], ..Outcome::default() };
        world.done(&claim, &snapshot, drafted).await;
        let (removal, _) = world.store.remove_project(&world.project, "local:ada", after(9)).await.unwrap();
        assert_eq!(removal.left, [(claim.incident.clone(), "an event was drafted and not signed yet")]);
        let scoped = world.store.within(&world.project.organisation);
        let events = scoped.audit_events(&claim.incident).await.unwrap();
        assert!(events[0].detail.contains("stays as it is"), "{events:?}");
        assert_eq!(stage(&world.snapshot(&claim.incident).await), Stage::Detected);
        assert_eq!(world.claim("worker-2", after(9_000)).await, None);
    }

    /// Break it: leave the project out of the claim's predicate.
    async fn incidents_of_a_project_that_waits_for_confirmation_wait_too(world) {
        let incident = world.open("test").await;
        let event = AuditEvent { kind: "project-renamed", detail: String::new() };
        let drafted = Project { state: ProjectState::Draft, draft_digest: Sha256Digest::of(b"renamed"), ..world.project.clone() };
        let swap = world.swap(b"sealed", b"new");
        world.store.replace_credential(&swap, Some(&drafted), &event, NOW).await.unwrap();
        assert_eq!(world.claim("worker", after(9)).await, None);
        world.store.confirm_project(&drafted, None, after(9)).await.unwrap();
        assert_eq!(world.claim("worker", after(9)).await.unwrap().incident, incident);
    }

    async fn what_was_known_of_the_watch_goes_with_the_project(world) {
        sqlx::raw_sql("UPDATE project_watch SET looked_at = 1").execute(&mut world.raw().await).await.unwrap();
        let scoped = world.store.within(&world.project.organisation);
        assert_eq!(scoped.watch_states().await.unwrap()[0].condition, Condition::Fine);
        world.store.remove_project(&world.project, "local:ada", NOW).await.unwrap();
        assert_eq!(scoped.watch_states().await.unwrap(), []);
        let events = scoped.project_events(&world.project.id, 1).await.unwrap();
        assert_eq!(events[0].kind, "project-removed");
    }

    /// Break it: leave `look::NEWS` out of `replace_credential`.
    async fn with_another_credential_a_project_is_looked_at_at_once(world) {
        let store = &world.store;
        let looks = store.take_looks("watch", NOW, 9).await.unwrap();
        store.looked("watch", &[(looks[0].clone(), refused(after(600)))]).await.unwrap();
        assert_eq!(store.take_looks("watch", after(20), 9).await.unwrap().len(), 0);
        let event = AuditEvent { kind: "credential-replaced", detail: String::new() };
        store.replace_credential(&world.swap(b"sealed", b"new"), None, &event, after(20)).await.unwrap();
        let looks = store.take_looks("watch", after(20), 9).await.unwrap();
        assert_eq!(looks.len(), 1);
        // Replaced while somebody looks with the old one: looked at again when that ends.
        store.replace_credential(&world.swap(b"new", b"newer"), None, &event, after(21)).await.unwrap();
        let late = Looked { began: after(20), now: after(25), ..refused(after(900)) };
        store.looked("watch", &[(looks[0].clone(), late)]).await.unwrap();
        let looks = store.take_looks("watch", after(27), 9).await.unwrap();
        assert_eq!(looks.len(), 1);
        let last = Looked { began: after(27), now: after(28), ..refused(after(900)) };
        store.looked("watch", &[(looks[0].clone(), last)]).await.unwrap();
        // The same when it is watched again after a pause.
        for state in [ProjectState::Paused, ProjectState::Confirmed] {
            assert_eq!(store.take_looks("watch", after(30), 9).await.unwrap().len(), 0);
            store.set_project_state(&world.project, state, after(30)).await.unwrap();
        }
        assert_eq!(store.take_looks("watch", after(30), 9).await.unwrap().len(), 1);
    }
}

/// A look that the provider refused.
fn refused(next_at: Millis) -> Looked {
    Looked {
        began: NOW,
        now: NOW,
        next_at,
        answered: false,
        condition: Condition::CredentialRefused,
        detail: None,
        mend: None,
        lag: None,
        requests: 1,
        unchanged: 0,
        budget: Usage::default(),
    }
}
