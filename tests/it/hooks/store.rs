//! What the store makes of deliveries, the same on SQLite and on PostgreSQL.

use caretaker::connector::{Condition, Usage};
use caretaker::store::Looked;

use super::*;

fn ordered(digits: &str) -> HookVersion<'_> {
    HookVersion::Ordered { digits, at: NOW }
}

on_both! {
    async fn a_delivery_is_heard_once(world) {
        assert_eq!(world.hear(1, ordered("1"), NOW).await, Heard::Hinted(1));
        // The version is newer; the delivery is not.
        assert_eq!(world.hear(1, ordered("2"), after(1)).await, Heard::Known);
        assert_eq!(world.hinted_at().await, Some(NOW.0));
        assert_eq!(world.hear(2, ordered("2"), after(2)).await, Heard::Hinted(1));
        assert_eq!(world.hinted_at().await, Some(after(2).0));
        assert_eq!(world.store.last_hook_delivery().await.unwrap(), Some(after(2)));
    }

    /// Identifiers are not signed: the same body under another one, and another body under the same one, are known.
    async fn identifier_and_body_are_each_heard_once(world) {
        let id = guid(1);
        let delivery = HookDelivery { id: &id, body: "sha256=aa", host: HOST, repositories: &[1], object: None };
        assert_eq!(world.hear_of(&delivery, NOW).await, Heard::Hinted(1));
        let (second, third) = (guid(2), guid(3));
        let replayed = HookDelivery { id: &second, ..delivery };
        assert_eq!(world.hear_of(&replayed, after(1)).await, Heard::Known);
        // Also under the identifier that only the replay had.
        let other = HookDelivery { body: "sha256=bb", ..replayed };
        assert_eq!(world.hear_of(&other, after(2)).await, Heard::Known);
        let fresh = HookDelivery { id: &third, body: "sha256=cc", ..delivery };
        assert_eq!(world.hear_of(&fresh, after(3)).await, Heard::Hinted(1));
    }

    async fn an_older_version_hints_nobody(world) {
        assert_eq!(world.hear(1, ordered("20"), NOW).await, Heard::Hinted(1));
        assert_eq!(world.hear(2, ordered("19"), after(1)).await, Heard::Stale);
        assert_eq!(world.hear(3, ordered("20"), after(2)).await, Heard::Stale);
        assert_eq!(world.hinted_at().await, Some(NOW.0));
        assert_eq!(world.hear(4, ordered("21"), after(3)).await, Heard::Hinted(1));
        assert_eq!(world.hear(5, ordered("20"), after(4)).await, Heard::Stale);
    }

    /// A version without an order is news unless it is the one that is known.
    async fn a_commit_is_news_until_it_is_pushed_again(world) {
        let commit = HookVersion::Other;
        assert_eq!(world.hear(1, commit("b"), NOW).await, Heard::Hinted(1));
        assert_eq!(world.hear(2, commit("b"), NOW).await, Heard::Stale);
        assert_eq!(world.hear(3, commit("a"), NOW).await, Heard::Hinted(1));
        assert_eq!(world.hear(4, commit("b"), NOW).await, Heard::Hinted(1));
    }

    /// What was remembered of it would be forgotten by now, so that a replay could not be told from news.
    async fn what_is_older_than_the_memory_is_no_news(world) {
        let old = HookVersion::Ordered { digits: "1", at: after(-3 * 86_400 - 1) };
        assert_eq!(world.hear(1, old, NOW).await, Heard::Stale);
        let just = HookVersion::Ordered { digits: "1", at: after(-3 * 86_400) };
        assert_eq!(world.hear(2, just, NOW).await, Heard::Hinted(1));
    }

    async fn a_hint_brings_a_look_forward_and_never_puts_it_off(world) {
        assert_eq!(world.hinted_at().await, None);
        let _heard = world.hear(1, ordered("1"), NOW).await;
        let expected = Watch { next_at: NOW.0, hinted_at: Some(NOW.0), lease_owner: None };
        assert_eq!(world.watch_of(&world.project).await, Some(expected));
        // Somebody has looked, and will look again in a while.
        world.run_sql("UPDATE project_watch SET next_at = 1800000090000, lease_owner = 'w', lease_until = 1800000100000").await;
        let _heard = world.hear(2, ordered("2"), after(5)).await;
        let expected = Watch { next_at: after(5).0, hinted_at: Some(after(5).0), lease_owner: Some("w".to_owned()) };
        assert_eq!(world.watch_of(&world.project).await, Some(expected));
        // It has been due for long.
        world.run_sql("UPDATE project_watch SET next_at = 1").await;
        let _heard = world.hear(3, ordered("3"), after(6)).await;
        assert_eq!(world.watch_of(&world.project).await.unwrap().next_at, 1);
    }

    /// Somebody is looking already, perhaps at what was there before: the project is due when that look ends, not during it.
    async fn a_hint_during_a_look_is_heard_when_it_ends(world) {
        let looks = world.store.take_looks("w", NOW, 10).await.unwrap();
        let [look] = &looks[..] else { panic!("{looks:?}") };
        assert_eq!(world.hear(1, ordered("1"), after(5)).await, Heard::Hinted(1));
        assert_eq!(world.watch_of(&world.project).await.unwrap().next_at, after(60).0);
        assert!(world.store.take_looks("w", after(5), 10).await.unwrap().is_empty());
        let looked = Looked {
            began: NOW,
            now: after(6),
            next_at: after(90),
            answered: true,
            condition: Condition::Fine,
            detail: None,
            mend: None,
            lag: None,
            requests: 1,
            unchanged: 0,
            budget: Usage::default(),
        };
        world.store.looked("w", &[(look.clone(), looked.clone())]).await.unwrap();
        // A second lies between two looks, whoever hints.
        assert!(world.store.take_looks("w", after(6), 10).await.unwrap().is_empty());
        let again = world.store.take_looks("w", after(7), 10).await.unwrap();
        assert_eq!(again.len(), 1);
        let looked = Looked { began: after(7), now: after(7), ..looked };
        world.store.looked("w", &[(again[0].clone(), looked)]).await.unwrap();
        assert!(world.store.take_looks("w", after(8), 10).await.unwrap().is_empty());
        // Between two looks it is due at once.
        assert_eq!(world.hear(2, ordered("2"), after(8)).await, Heard::Hinted(1));
        assert_eq!(world.store.take_looks("w", after(8), 10).await.unwrap().len(), 1);
    }

    /// Break it: leave organisation, host, state or `removed_at` out of HINT or of WATCHED.
    async fn only_who_watches_that_repository_is_hinted(world) {
        let paused = project(1, 2);
        world.watch(&paused).await;
        world.store.set_project_state(&paused, ProjectState::Paused, NOW).await.unwrap();
        let removed = project(1, 3);
        world.watch(&removed).await;
        world.run_sql("UPDATE project SET removed_at = 1 WHERE repository_id = '3'").await;
        let draft = project(1, 4);
        world.store.insert_project(&draft, b"sealed").await.unwrap();
        let elsewhere = Project {
            host: "elsewhere.example".to_owned(),
            repository_id: "1".to_owned(),
            ..project(1, 5)
        };
        world.watch(&elsewhere).await;
        let foreign = Project { repository_id: "1".to_owned(), ..project(2, 6) };
        world.watch(&foreign).await;
        // Nobody here watches a repository with such a number.
        let only_elsewhere = Project { host: "elsewhere.example".to_owned(), ..project(1, 7) };
        let only_foreign = project(2, 8);
        world.watch(&only_elsewhere).await;
        world.watch(&only_foreign).await;
        for repository in [2, 3, 4, 5, 7, 8, 99] {
            let id = guid(repository);
            let delivery = HookDelivery { id: &id, body: &format!("b {id}"), host: HOST, repositories: &[repository], object: None };
            assert_eq!(world.hear_of(&delivery, NOW).await, Heard::Unwatched, "{repository}");
        }
        let id = guid(1);
        let many = HookDelivery { id: &id, body: "b", host: HOST, repositories: &[1, 2, 3, 4, 5, 7, 8, 99], object: None };
        assert_eq!(world.hear_of(&many, NOW).await, Heard::Hinted(1));
        assert!(world.hinted_at().await.is_some());
        for other in [&paused, &removed, &draft, &elsewhere, &foreign, &only_elsewhere, &only_foreign] {
            assert_eq!(world.watch_of(other).await.and_then(|watch| watch.hinted_at), None, "{}", other.id);
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM project_watch WHERE hinted_at IS NOT NULL").await, 1);
    }

    /// Break it: leave the organisation out of `within` in `store::hook`.
    async fn what_one_organisation_was_sent_is_not_known_to_another(world) {
        let foreign = Project { repository_id: "1".to_owned(), ..project(2, 6) };
        world.watch(&foreign).await;
        let object = HookObject { name: "workflow_run/1/7", version: ordered("9") };
        let id = guid(1);
        let delivery = HookDelivery { id: &id, body: "b", host: HOST, repositories: &[1], object: Some(object) };
        assert_eq!(world.hear_of(&delivery, NOW).await, Heard::Hinted(1));
        let theirs = world.store.hear(&foreign.organisation, &delivery, NOW);
        assert_eq!(theirs.await.unwrap(), Heard::Hinted(1));
    }

    async fn what_says_nothing_is_noted_and_hints_nobody(world) {
        let id = guid(1);
        let delivery = HookDelivery { id: &id, body: "b", host: HOST, repositories: &[], object: None };
        assert_eq!(world.hear_of(&delivery, NOW).await, Heard::Noted);
        assert_eq!(world.hinted_at().await, None);
        assert_eq!(world.store.last_hook_delivery().await.unwrap(), Some(NOW));
    }

    /// A name with a NUL is refused alike, and nothing of the delivery stays.
    async fn a_refused_delivery_leaves_nothing(world) {
        let id = guid(1);
        let object = HookObject { name: "push/1/a\0b", version: HookVersion::Other("c") };
        let delivery = HookDelivery { id: &id, body: "b", host: HOST, repositories: &[1], object: Some(object) };
        let refused = world.store.hear(&world.project.organisation, &delivery, NOW).await;
        assert!(refused.unwrap_err().to_string().contains("NUL"));
        assert_eq!(world.store.last_hook_delivery().await.unwrap(), None);
        assert_eq!(world.hinted_at().await, None);
    }

    /// However many processes hear it.
    async fn one_delivery_at_many_processes_at_once_is_one_hint(world) {
        let world = Arc::new(world);
        let hearing: Vec<_> = (0..8).map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.hear(1, ordered("1"), NOW).await })
        }).collect();
        let mut hints = 0;
        for heard in hearing {
            match heard.await.unwrap() {
                Heard::Hinted(1) => hints += 1,
                other => assert_eq!(other, Heard::Known),
            }
        }
        assert_eq!(hints, 1);
    }

    /// In whatever order they are committed, the newest one stays.
    async fn many_versions_at_once_leave_the_newest(world) {
        let world = Arc::new(world);
        let hearing: Vec<_> = (10_u64..34).map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.hear(number, ordered(&number.to_string()), NOW).await })
        }).collect();
        let mut hinted = false;
        for heard in hearing {
            hinted |= heard.await.unwrap() == Heard::Hinted(1);
        }
        assert!(hinted);
        assert_eq!(world.hear(99, ordered("33"), NOW).await, Heard::Stale);
        assert_eq!(world.hear(98, ordered("34"), NOW).await, Heard::Hinted(1));
    }

    /// Break it: drop `forget_hooks` from `Store::hear`; the tables then grow for ever.
    async fn what_is_three_days_old_is_forgotten_a_few_at_a_time(world) {
        for insert in [
            "INSERT INTO hook_delivery (delivery, received_at) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT 'old ' || i, i FROM n",
            "INSERT INTO hook_object (object, version, received_at) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) SELECT 'old ' || i, '1', i FROM n",
        ] {
            assert_eq!(world.run_sql(insert).await, 250);
        }
        let _heard = world.hear(1, ordered("1"), NOW).await;
        assert_eq!(world.count("SELECT COUNT(*) FROM hook_delivery WHERE delivery LIKE 'old %'").await, 150);
        assert_eq!(world.count("SELECT COUNT(*) FROM hook_object WHERE object LIKE 'old %'").await, 150);
        for number in 2..4 {
            let _heard = world.hear(number, ordered("1"), after(1)).await;
        }
        assert_eq!(world.count("SELECT COUNT(*) FROM hook_delivery WHERE delivery LIKE 'old %'").await, 0);
        assert_eq!(world.count("SELECT COUNT(*) FROM hook_object WHERE object LIKE 'old %'").await, 0);
        // What is younger stays, to the millisecond.
        assert_eq!(world.hear(1, ordered("9"), after(3 * 86_400)).await, Heard::Known);
        assert_eq!(world.count("SELECT COUNT(*) FROM hook_object").await, 1);
        let _heard = world.hear(5, ordered("9"), after(3 * 86_400 + 1)).await;
        let fresh = HookVersion::Ordered { digits: "9", at: after(3 * 86_400) };
        assert_eq!(world.hear(1, fresh, after(3 * 86_400 + 1)).await, Heard::Hinted(1));
    }
}
