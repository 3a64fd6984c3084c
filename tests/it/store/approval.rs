//! A link is looked at as often as anyone likes and used once.

use caretaker::approve::{Consumption, HumanDecision};
use caretaker::incident::ClosedReason;
use caretaker::store::{ApprovalState, Consumed, StoreError};

use super::*;

impl World {
    async fn consume(&self, token: &ApprovalToken, now: Millis) -> Consumed {
        let consume = self
            .store
            .consume(token, HumanDecision::Approve, Some("fine"), now);
        consume.await.unwrap()
    }

    async fn state(&self, token: &ApprovalToken, now: Millis) -> ApprovalState {
        let view = self
            .store
            .approval_by_token(&token.hash(), now)
            .await
            .unwrap();
        view.unwrap().state
    }
}

on_both! {
    async fn the_preview_shows_the_question_and_changes_nothing(world) {
        let (_, snapshot, token) = world.asked("test").await;
        for _ in 0..3 {
            let view = world.store.approval_by_token(&token.hash(), after(1)).await.unwrap().unwrap();
            assert_eq!((view.request, view.state), (request(), ApprovalState::Live));
            assert_eq!((view.incident, view.organisation), (snapshot.incident.clone(), snapshot.organisation.clone()));
        }
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
        let unknown = named("guessed");
        assert_eq!(world.store.approval_by_token(&unknown.hash(), after(1)).await.unwrap(), None);
        assert_eq!(world.consume(&unknown, after(1)).await, Consumed::Unknown);
    }

    async fn an_answer_is_a_fact_with_evidence_and_the_worker_that_did_not_see_it_loses(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let incident = claim.incident.clone();
        assert_eq!(world.consume(&token, after(5)).await, Consumed::Done { incident: incident.clone() });

        let answered = world.snapshot(&incident).await;
        assert_eq!((answered.answer(), answered.version, &answered.link), (Some(HumanDecision::Approve), snapshot.version + 1, &None));
        let scope = world.store.within(&world.project.organisation);
        let (_, bytes) = scope.evidence(&answered.consumption().unwrap()).await.unwrap().unwrap();
        let record: Consumption = serde_json::from_slice(&bytes).unwrap();
        let expected = Consumption {
            request: request().digest(),
            approval: snapshot.link.clone().unwrap().approval,
            token: token.hash(),
            nonce: None,
            issued_at: NOW,
            expires_at: after(3600),
            consumed_at: after(5),
            decision: HumanDecision::Approve,
            principal: principal(),
            comment: Some("fine".to_owned()),
            seal: None,
        }
        .sealed_by(&token);
        // Whoever reads the database must not find what a link is made of.
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains(token.to_link_text().as_str()), "{text}");
        assert!(record.is_sealed_by(&token) && !record.is_sealed_by(&named("guessed")));
        assert_eq!(record, expected);
        let rows = scope.approvals(&incident).await.unwrap();
        assert_eq!((rows[0].consumed_at, rows[0].decision), (Some(after(5)), Some(HumanDecision::Approve)));

        let outcome = Outcome::fact(Fact::CleanedUp);
        assert_eq!(world.commit(&claim, &snapshot, &outcome).await, Commit::Lost);
        world.store.release(&claim).await.unwrap();
        assert_eq!(world.claim("worker-2", after(5)).await.unwrap().incident, incident);
    }

    async fn a_used_link_is_gone(world) {
        let (_, _, token) = world.asked("test").await;
        assert!(matches!(world.consume(&token, after(1)).await, Consumed::Done { .. }));
        assert_eq!(world.consume(&token, after(2)).await, Consumed::Gone);
        assert_eq!(world.state(&token, after(2)).await, ApprovalState::Used);
    }

    /// Break it: leave `expires_at > $1` out of `approval::CONSUME`.
    async fn an_expired_link_is_gone(world) {
        let (_, snapshot, token) = world.asked("test").await;
        assert_eq!(world.consume(&token, after(3600)).await, Consumed::Gone);
        assert_eq!(world.state(&token, after(3600)).await, ApprovalState::Expired);
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
        let scope = world.store.within(&world.project.organisation);
        let later = scope.snapshot(&snapshot.incident, after(3600)).await.unwrap().unwrap();
        assert_eq!(later.link, None);
    }

    /// Break it: leave `revoked_at IS NULL` out of `approval::CONSUME`.
    async fn a_newer_link_revokes_the_older_one(world) {
        let (claim, snapshot, old) = world.asked("test").await;
        let new = named("new");
        let outcome = Outcome { link: Some(world.link(&request(), new.hash(), after(7200))), ..Outcome::default() };
        world.done(&claim, &snapshot, outcome).await;
        assert_eq!(world.consume(&old, after(1)).await, Consumed::Gone);
        assert_eq!(world.state(&old, after(1)).await, ApprovalState::Revoked);
        assert!(matches!(world.consume(&new, after(1)).await, Consumed::Done { .. }));
    }

    /// Break it: let `over` be false in `Writing::documents_and_links` of the store's commit.
    async fn no_link_of_an_incident_that_is_over_can_be_used(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let closed = Fact::Closed { reason: ClosedReason::Recovered, detail: String::new() };
        let closed = world.done(&claim, &snapshot, Outcome::fact(closed)).await;
        assert_eq!(closed.link, None);
        assert_eq!(world.snapshot(&snapshot.incident).await, closed);
        assert_eq!(world.consume(&token, after(1)).await, Consumed::Gone);
        let late = Outcome { link: Some(world.link(&request(), named("late").hash(), after(9))), ..Outcome::default() };
        let refused = world.store.commit(&claim, &closed, &late, NOW, LEASE).await;
        assert!(matches!(refused, Err(StoreError::Inconsistent { .. })));
    }

    /// Break it: split `approval::CONSUME` in two, a SELECT with the conditions and an UPDATE by `token` alone, and take the
    /// lock on the incident after them; on SQLite also begin with a plain BEGIN.
    async fn of_twenty_five_that_use_one_link_at_once_one_wins(world) {
        let (claim, snapshot, token) = world.asked("test").await;
        let uses: Vec<_> = (0..25)
            .map(|number| {
                let (store, token) = (world.store.clone(), token.clone());
                tokio::spawn(async move {
                    let decision = if number % 2 == 0 { HumanDecision::Approve } else { HumanDecision::Reject };
                    store.consume(&token, decision, None, after(1)).await.unwrap()
                })
            })
            .collect();
        let mut won = 0;
        for one in uses {
            match one.await.unwrap() {
                Consumed::Done { incident } => {
                    assert_eq!(incident, claim.incident);
                    won += 1;
                }
                other => assert_eq!(other, Consumed::Gone),
            }
        }
        let answered = world.snapshot(&claim.incident).await;
        let answers = answered.facts.iter().filter(|one| one.fact.kind() == "consumed").count();
        assert_eq!((won, answers, answered.version), (1, 1, snapshot.version + 1));
    }

    async fn a_link_for_another_question_than_the_incident_asks_shows_nothing(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let token = named("token");
        let mut other = request();
        other.binding.title.push_str(", but another");
        let outcome = Outcome {
            link: Some(world.link(&other, token.hash(), after(3600))),
            facts: vec![Fact::Requested { request: Box::new(request()) }],
            ..Outcome::default()
        };
        world.done(&claim, &snapshot, outcome).await;
        let view = world.store.approval_by_token(&token.hash(), after(1)).await;
        assert!(matches!(view, Err(StoreError::Unreadable { .. })));
    }

    async fn a_remark_longer_than_a_statement_takes_is_refused(world) {
        let (_, snapshot, token) = world.asked("test").await;
        let long = "x".repeat(501);
        let refused = world.store.consume(&token, HumanDecision::Reject, Some(&long), after(1)).await;
        assert!(matches!(refused, Err(StoreError::Value { .. })));
        assert_eq!(world.snapshot(&snapshot.incident).await, snapshot);
    }
}
