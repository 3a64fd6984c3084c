//! Projects, messages and the history.

use caretaker::incident::{AuditEvent, Notice, NoticeEvent};
use caretaker::store::StoreError;

use super::*;

impl World {
    /// The projects that are confirmed.
    async fn watched(&self) -> Vec<ProjectId> {
        let scope = self.store.within(&self.project.organisation);
        let projects = scope.projects().await.unwrap().into_iter();
        let confirmed = projects.filter(|project| project.state == ProjectState::Confirmed);
        confirmed.map(|project| project.id).collect()
    }
}

on_both! {
    async fn a_project_is_watched_between_confirmation_and_pause(world) {
        let mut draft = project(1, 2);
        world.store.insert_project(&draft, b"sealed too").await.unwrap();
        assert_eq!(world.watched().await, std::slice::from_ref(&world.project.id));
        assert_eq!(world.store.credential(&draft.id).await.unwrap().as_deref(), Some(&b"sealed too"[..]));
        assert_eq!(world.store.credential(&project(1, 9).id).await.unwrap(), None);
        assert!(world.store.set_project_state(&draft, ProjectState::Paused, NOW).await.is_err());

        // The draft changed since it was shown.
        let shown = std::mem::replace(&mut draft.draft_digest, Sha256Digest::of(b"another"));
        let refused = world.store.confirm_project(&draft, None, NOW).await.unwrap_err();
        assert!(refused.to_string().contains("not the one that was shown"), "{refused}");
        draft.draft_digest = shown;
        world.store.confirm_project(&draft, None, after(3)).await.unwrap();
        assert_eq!(world.watched().await.len(), 2);
        assert!(world.store.confirm_project(&draft, None, after(4)).await.is_err());

        world.store.set_project_state(&draft, ProjectState::Paused, NOW).await.unwrap();
        assert_eq!(world.watched().await.len(), 1);
        world.store.set_project_state(&draft, ProjectState::Confirmed, NOW).await.unwrap();
        let scope = world.store.within(&draft.organisation);
        let confirmed = scope.project(&draft.id).await.unwrap().unwrap();
        assert_eq!((confirmed.state, confirmed.confirmed_at), (ProjectState::Confirmed, Some(after(3))));
    }

    async fn a_repository_is_watched_once(world) {
        let mut twin = project(1, 2);
        twin.repository_id.clone_from(&world.project.repository_id);
        world.store.insert_project(&twin, b"sealed").await.unwrap();
        let refused = world.store.confirm_project(&twin, None, NOW).await.unwrap_err();
        assert!(refused.to_string().contains(&format!("is watched by {} already", world.project.id)), "{refused}");
    }

    async fn text_with_a_nul_is_refused_where_it_means_something(world) {
        let mut bent = project(1, 2);
        bent.full_name.push('\0');
        let refused = world.store.insert_project(&bent, b"sealed").await;
        assert!(matches!(refused, Err(StoreError::Value { .. })));
    }

    async fn there_is_one_organisation_until_there_are_two(world) {
        let first = world.project.organisation.clone();
        assert_eq!(world.store.organisation().await.unwrap(), Some(first.clone()));
        world.store.ensure_organisation(&first, "renamed", NOW).await.unwrap();
        assert_eq!(world.store.organisation().await.unwrap(), Some(first));
        world.store.ensure_organisation(&project(2, 2).organisation, "second", NOW).await.unwrap();
        assert_eq!(world.store.organisation().await.unwrap(), None);
    }

    async fn a_message_is_handed_out_until_it_is_acknowledged(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let notice = |text: &str| Notice { event: NoticeEvent::Notice, text: text.to_owned() };
        let outcome = Outcome { notices: vec![notice("a"), notice("b")], ..Outcome::default() };
        world.done(&claim, &snapshot, outcome).await;
        let due = async |seconds: i64| {
            let notices = world.store.due_notices(after(seconds), 9).await.unwrap();
            notices.into_iter().map(|notice| (notice.number, notice.attempts)).collect::<Vec<_>>()
        };
        let first = due(0).await;
        assert_eq!(first.len(), 3);
        assert_eq!(due(1).await, [], "hidden while they are being delivered");
        let [opened, a, b] = [first[0].0, first[1].0, first[2].0];
        world.store.notice_delivered(opened, after(1)).await.unwrap();
        world.store.notice_failed(a, Some(after(10))).await.unwrap();
        assert_eq!(due(10).await, [(a, 2)]);
        assert_eq!(due(60).await, [(b, 2)], "its deliverer died");
        world.store.notice_failed(b, None).await.unwrap();
        world.store.notice_delivered(a, after(61)).await.unwrap();
        assert_eq!(due(100_000).await, []);
    }

    async fn a_message_waits_a_while_for_the_signature_of_what_it_tells(world) {
        let (claim, snapshot) = world.claimed("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let notice = Notice { event: NoticeEvent::IncidentEscalated, text: "look".to_owned() };
        let outcome = Outcome { drafts: vec![first.clone()], notices: vec![notice], ..Outcome::default() };
        let snapshot = world.done(&claim, &snapshot, outcome).await;
        let due = async |seconds: i64| {
            let notices = world.store.due_notices(after(seconds), 9).await.unwrap();
            notices.into_iter().map(|notice| notice.event).collect::<Vec<_>>()
        };
        // Break it: leave the look at `chain` out of `outbox::TAKE`.
        assert_eq!(due(1).await, [], "nothing of the incident goes out before it is signed");
        let outcome = Outcome { envelope: Some(signed(&first)), ..Outcome::default() };
        world.done(&claim, &snapshot, outcome).await;
        assert_eq!(due(2).await, [NoticeEvent::IncidentOpened, NoticeEvent::IncidentEscalated]);
    }

    async fn two_processes_do_not_deliver_the_same_message(world) {
        for number in 0..10 {
            world.open(&format!("job-{number}")).await;
        }
        let together = std::sync::Arc::new(tokio::sync::Barrier::new(8));
        let taking: Vec<_> = (0..8)
            .map(|_| {
                let (store, together) = (world.store.clone(), together.clone());
                tokio::spawn(async move {
                    // Each has a connection by now, so that all of them ask at once.
                    store.now().await.unwrap();
                    together.wait().await;
                    store.due_notices(after(1), 10).await.unwrap()
                })
            })
            .collect();
        let mut numbers = Vec::new();
        for taken in taking {
            numbers.extend(taken.await.unwrap().into_iter().map(|notice| notice.number));
        }
        let taken = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), taken), (10, 10));
    }

    async fn the_history_tells_facts_events_links_and_audit_in_order(world) {
        let (claim, snapshot, _) = world.asked("test").await;
        let first = draft(&snapshot.incident, 0, None, "first");
        let outcome = Outcome { envelope: Some(signed(&first)), drafts: vec![first], ..Outcome::default() };
        world.done(&claim, &snapshot, outcome).await;
        let event = AuditEvent { kind: "signing-failed", detail: "no key".to_owned() };
        let organisation = &world.project.organisation;
        world.store.record(organisation, Some(&claim.incident), Some(&claim.project), &event, after(9)).await.unwrap();
        world.store.record(organisation, None, None, &event, after(9)).await.unwrap();
        let scope = world.store.within(organisation);
        let entries = scope.timeline(&claim.incident).await.unwrap().unwrap();
        let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds.first(), Some(&"opened"));
        assert_eq!(kinds.last(), Some(&"signing-failed"));
        for kind in ["requested", "link-made", "signed"] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
    }
}

/// On SQLite the write lock keeps the second process out.
///
/// Break it: leave the outer `due_at <= $2` out of `outbox::TAKE`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_another_process_is_just_taking_is_left_to_it() {
    use sqlx::Row as _;
    let Some(world) = World::postgres().await else {
        return;
    };
    world.open("test").await;
    let take = Store::statements().find(|statement| statement.name == "TAKE");
    let mut other = world.raw().await;
    let begin = sqlx::raw_sql("BEGIN").execute(&mut other).await;
    begin.unwrap();
    let taken = sqlx::query(take.unwrap().text)
        .bind(after(60).0)
        .bind(after(1).0)
        .bind(9_i64)
        .bind(after(-59).0)
        .fetch_all(&mut other);
    assert_eq!(taken.await.unwrap().len(), 1);
    let process = sqlx::query("SELECT CAST(pg_backend_pid() AS BIGINT)").fetch_one(&mut other);
    let process: i64 = process.await.unwrap().get(0);

    let store = world.store.clone();
    let second = tokio::spawn(async move { store.due_notices(after(1), 9).await.unwrap() });
    let mut observer = world.raw().await;
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE CAST($1 AS INTEGER) = ANY(pg_blocking_pids(pid))";
    loop {
        let row = sqlx::query(waiting).bind(process).fetch_one(&mut observer);
        if row.await.unwrap().get::<i64, _>(0) > 0 {
            break;
        }
        assert!(!second.is_finished(), "it did not wait for the first");
    }
    let commit = sqlx::raw_sql("COMMIT").execute(&mut other).await;
    commit.unwrap();
    assert_eq!(second.await.unwrap(), []);
}
