//! What one organisation reads holds nothing of another.

use caretaker::incident::{AuditEvent, EvidenceDocument};

use super::*;

/// Break it: leave the organisation out of one statement of `store/scoped.rs`.
#[test]
fn every_scoped_statement_names_the_organisation() {
    let statements = Store::scoped_statements();
    assert!(statements.len() >= 12);
    for statement in statements {
        let predicate = statement.text.split_once(" WHERE ").map(|(_, rest)| rest);
        assert!(
            predicate.is_some_and(|text| text.starts_with("organisation = $1")
                || text.starts_with("i.organisation = $1")
                || text.starts_with("p.organisation = $1")
                || text.starts_with("u.organisation = $1")),
            "{} does not name the organisation first",
            statement.name
        );
        assert!(
            !statement.text.contains(" OR "),
            "{} has a way around",
            statement.name
        );
    }
}

on_both! {
    async fn nothing_of_one_organisation_is_there_for_another(world) {
        let (claim, snapshot, _) = world.asked("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let document = EvidenceDocument { media_type: "text/plain", bytes: b"secret".to_vec() };
        let outcome = Outcome {
            envelope: Some(signed(&first)),
            drafts: vec![first],
            evidence: vec![document.clone()],
            audit: vec![AuditEvent { kind: "tried", detail: String::new() }],
            ..Outcome::default()
        };
        world.done(&claim, &snapshot, outcome).await;
        let event = AuditEvent { kind: "poll-failed", detail: String::new() };
        let project_id = &world.project.id;
        world.store.record(&world.project.organisation, None, Some(project_id), &event, NOW).await.unwrap();
        let stranger = project(2, 2);
        world.store.ensure_organisation(&stranger.organisation, "stranger", NOW).await.unwrap();
        world.store.insert_project(&stranger, b"sealed").await.unwrap();

        let (incident, digest) = (&snapshot.incident, document.digest());
        let owner = world.store.within(&world.project.organisation);
        assert_eq!(owner.projects().await.unwrap(), std::slice::from_ref(&world.project));
        assert!(owner.project(&world.project.id).await.unwrap().is_some());
        assert_eq!(owner.incidents().await.unwrap().len(), 1);
        assert!(owner.incident(incident).await.unwrap().is_some());
        assert!(owner.snapshot(incident, NOW).await.unwrap().is_some());
        assert!(owner.ledger(incident).await.unwrap().is_some());
        assert!(owner.draft(incident, 0).await.unwrap().is_some());
        assert!(owner.evidence(&digest).await.unwrap().is_some());
        assert_eq!(owner.approvals(incident).await.unwrap().len(), 1);
        assert_eq!(owner.audit_events(incident).await.unwrap().len(), 1);
        assert!(owner.timeline(incident).await.unwrap().is_some());
        assert_eq!(owner.project_events(&world.project.id, 9).await.unwrap().len(), 1);
        sqlx::raw_sql("UPDATE project_watch SET looked_at = 1").execute(&mut world.raw().await).await.unwrap();
        assert_eq!(owner.watch_states().await.unwrap().len(), 1);

        let other = world.store.within(&stranger.organisation);
        assert_eq!(other.projects().await.unwrap(), std::slice::from_ref(&stranger));
        assert_eq!(other.project(&world.project.id).await.unwrap(), None);
        assert_eq!(other.incidents().await.unwrap(), []);
        assert_eq!(other.incident(incident).await.unwrap(), None);
        assert_eq!(other.snapshot(incident, NOW).await.unwrap(), None);
        assert_eq!(other.ledger(incident).await.unwrap(), None);
        assert_eq!(other.draft(incident, 0).await.unwrap(), None);
        assert_eq!(other.evidence(&digest).await.unwrap(), None);
        assert_eq!(other.approvals(incident).await.unwrap(), []);
        assert_eq!(other.audit_events(incident).await.unwrap(), []);
        assert_eq!(other.timeline(incident).await.unwrap(), None);
        assert_eq!(other.project_events(&world.project.id, 9).await.unwrap(), []);
        assert_eq!(other.watch_states().await.unwrap(), []);
    }

    async fn nothing_of_one_organisation_is_written_by_another(world) {
        let mut posing = world.project.clone();
        posing.organisation = project(2, 2).organisation;
        world.store.ensure_organisation(&posing.organisation, "stranger", NOW).await.unwrap();
        assert!(world.store.set_project_state(&posing, ProjectState::Paused, NOW).await.is_err());
        let id = IncidentId::new(NOW, world.fresh());
        assert!(world.store.observe(&posing, &failure("test", 100), None, &id, NOW).await.is_err());
        let event = AuditEvent { kind: "tried", detail: String::new() };
        let recorded = world.store.record(&posing.organisation, None, Some(&posing.id), &event, NOW);
        assert!(recorded.await.is_err());
        let (claim, mut snapshot) = world.claimed("test").await;
        snapshot.organisation = posing.organisation;
        let outcome = Outcome::fact(Fact::CleanedUp);
        assert_eq!(world.commit(&claim, &snapshot, &outcome).await, Commit::Lost);
    }
}
