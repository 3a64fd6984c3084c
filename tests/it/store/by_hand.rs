//! What a person does at the command line is one transaction, on both databases.

use caretaker::approve::HumanDecision;
use caretaker::store::{ApprovalState, Consumed, LocalAnswer, StoreError, Woken};

use super::*;

impl World {
    async fn answer(
        &self,
        incident: &IncidentId,
        number: u8,
        now: Millis,
    ) -> Result<(), StoreError> {
        let (request, principal) = (request().digest(), principal());
        let approval = ApprovalId::new(NOW, self.fresh());
        let answer = LocalAnswer {
            incident,
            request,
            principal: &principal,
            decision: HumanDecision::Approve,
            comment: None,
            approval: &approval,
            token: &named(&number.to_string()),
        };
        let organisation = &self.project.organisation;
        self.store.answer_locally(organisation, &answer, now).await
    }
}

on_both! {
    async fn an_incident_that_rests_is_woken_with_its_failures_forgotten(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let organisation = &world.project.organisation;
        let woken = world.store.wake(organisation, &claim.incident, "local:ada", after(1)).await;
        assert_eq!(woken.unwrap(), Woken::AtWork);
        let rest = world.store.rest(&claim, snapshot.version, Some(after(600)), "tired", 5);
        assert!(rest.await.unwrap());
        assert_eq!(world.claim("other", after(2)).await, None);
        let woken = world.store.wake(organisation, &claim.incident, "local:ada", after(2)).await;
        assert_eq!(woken.unwrap(), Woken::Due);
        assert_eq!(world.claim("other", after(2)).await.unwrap().attempts, 1);
    }

    async fn another_organisations_incident_does_not_exist(world) {
        let (_, snapshot, token) = world.asked("test").await;
        let other = OrganisationId::new(NOW, [9; 10]);
        let incident = &snapshot.incident;
        let woken = world.store.wake(&other, incident, "local:eve", after(1)).await;
        assert!(matches!(woken, Err(StoreError::Refused { .. })));
        let renewed = world.store.renew_link(&other, incident, "local:eve", after(1)).await;
        assert!(matches!(renewed, Err(StoreError::Refused { .. })));
        let view = world.store.approval_by_token(&token.hash(), after(1)).await.unwrap().unwrap();
        assert_eq!((view.state, world.snapshot(incident).await), (ApprovalState::Live, snapshot));
    }

    async fn a_renewed_link_ends_the_older_one(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let organisation = &world.project.organisation;
        world.store.renew_link(organisation, &claim.incident, "local:ada", after(1)).await.unwrap();
        let used = world.store.consume(&token, HumanDecision::Approve, None, after(2)).await;
        assert_eq!(used.unwrap(), Consumed::Gone);
        let after_it = world.snapshot(&claim.incident).await;
        assert_eq!((after_it.version, after_it.link), (snapshot.version + 1, None));
        assert_eq!(world.commit(&claim, &snapshot, &Outcome::fact(Fact::CleanedUp)).await, Commit::Lost);
    }

    /// Break it: leave the comparison of the principal, or of the request, out of `Store::answer_locally`.
    async fn a_local_answer_is_by_who_was_asked_about_what_was_asked(world) {
        let (claim, snapshot, _) = world.asked("test").await;
        let organisation = &world.project.organisation;
        let (eve, asked) = ("local:eve".parse().unwrap(), principal());
        let approval = ApprovalId::new(NOW, world.fresh());
        let token = named("local");
        let right = LocalAnswer {
            incident: &claim.incident,
            request: request().digest(),
            principal: &asked,
            decision: HumanDecision::Approve,
            comment: None,
            approval: &approval,
            token: &token,
        };
        let wrong = [
            LocalAnswer { principal: &eve, ..right },
            LocalAnswer { request: Sha256Digest::of(b"another"), ..right },
        ];
        for answer in wrong {
            let refused = world.store.answer_locally(organisation, &answer, after(1)).await;
            assert!(matches!(refused, Err(StoreError::Refused { .. })));
        }
        assert_eq!(world.snapshot(&claim.incident).await, snapshot);
        world.store.answer_locally(organisation, &right, after(1)).await.unwrap();
        assert_eq!(world.snapshot(&claim.incident).await.answer(), Some(HumanDecision::Approve));
    }

    async fn a_local_answer_after_the_end_does_not_count(world) {
        let (claim, snapshot, _) = world.asked("test").await;
        let late = world.answer(&claim.incident, 1, after(3600)).await;
        assert!(matches!(late, Err(StoreError::Refused { .. })));
        assert_eq!(world.snapshot(&claim.incident).await, snapshot);
    }

    /// Break it: leave the look at `snapshot.answer()` out of `by_hand::open_question`, and from the migrations the index
    /// `fact_once` and, for SQLite, the trigger `fact_no_replace`: each refuses a second answer. Without the look alone the
    /// reason is another one, and `commands::answering::the_local_owner_approves_and_the_sent_link_is_spent` fails.
    async fn of_a_link_and_local_answers_at_once_one_wins(world) {
        let (claim, _, token) = world.asked("test").await;
        let world = std::sync::Arc::new(world);
        let mut uses = Vec::new();
        for number in 0..6 {
            let (world, incident, token) = (world.clone(), claim.incident.clone(), token.clone());
            uses.push(tokio::spawn(async move {
                if number == 3 {
                    let used = world.store.consume(&token, HumanDecision::Reject, None, after(1));
                    matches!(used.await.unwrap(), Consumed::Done { .. })
                } else {
                    world.answer(&incident, number, after(1)).await.is_ok()
                }
            }));
        }
        let mut won = 0;
        for one in uses {
            won += u32::from(one.await.unwrap());
        }
        let answered = world.snapshot(&claim.incident).await;
        let answers = answered.facts.iter().filter(|one| one.fact.kind() == "consumed").count();
        assert_eq!((won, answers), (1, 1));
    }
}
