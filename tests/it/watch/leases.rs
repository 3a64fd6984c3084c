//! Several processes watch the same projects.

use std::sync::Arc;
use std::time::Duration;

use caretaker::clock::{Clock as _, Millis};
use caretaker::forge::{Fault, FaultAction};
use caretaker::store::{Heard, HookDelivery};

use super::scene::{Scene, job, watch};

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_looked_at_by_one_process_and_taken_over_when_that_is_late() {
    let mut scene = Scene::new().await;
    scene.add("failure", vec![job("test", "failure")]);
    let mut other = watch(&scene.store, &scene.connectors, &scene.clock, "other");
    let now = scene.clock.now();
    assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 1);
    assert_eq!(
        other.look_at_due(now).await.unwrap().len(),
        0,
        "it is not due"
    );

    // Due again: it stays with the process that knows it.
    scene.pass(61);
    let now = scene.clock.now();
    assert_eq!(
        other.look_at_due(now).await.unwrap().len(),
        0,
        "it is another's"
    );
    assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 1);

    // Its process dies: another one takes it over, and raises nothing twice.
    scene.pass(60 + 11);
    let now = scene.clock.now();
    let taken = other.look_at_due(now).await.unwrap();
    assert_eq!((taken.len(), taken[0].1.opened.len()), (1, 0));
    assert_eq!(scene.kinds().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_at_once_look_at_each_project_once() {
    let scene = Scene::new().await;
    let now = scene.clock.now();
    let connectors = Arc::clone(&scene.connectors);
    let mut watches: Vec<_> = (0..4)
        .map(|number| {
            watch(
                &scene.store,
                &connectors,
                &scene.clock,
                &format!("process {number}"),
            )
        })
        .collect();
    let mut looks = 0;
    let mut tasks = tokio::task::JoinSet::new();
    for mut watch in watches.drain(..) {
        tasks.spawn(async move { watch.look_at_due(now).await.unwrap().len() });
    }
    while let Some(count) = tasks.join_next().await {
        looks += count.unwrap();
    }
    assert_eq!(looks, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_not_changed_costs_one_request_and_no_body() {
    let mut scene = Scene::new().await;
    scene.add("success", vec![job("test", "success")]);
    scene.look().await.unwrap();
    let before = scene.forge.requests().len();
    for _ in 0..5 {
        scene.pass(60);
        let report = scene.look().await.unwrap();
        assert_eq!(report.pages, 1);
    }
    let requests = scene.forge.requests();
    let statuses: Vec<_> = requests[before..]
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(statuses, [Some(304); 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_hints_does_not_cost_more_than_the_allowance() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    let before = scene.forge.requests().len();
    let repository = [scene.repository.id()];
    // A quarter of an hour of a hint every second.
    for second in 0..900 {
        scene.pass(1);
        let (now, name) = (scene.clock.now(), format!("delivery {second}"));
        let delivery = HookDelivery {
            id: &name,
            body: &format!("body {second}"),
            host: &scene.project.host,
            repositories: &repository,
            object: None,
        };
        let heard = scene
            .store
            .hear(&scene.project.organisation, &delivery, now);
        assert_eq!(heard.await.unwrap(), Heard::Hinted(1));
        scene.watch.look_at_due(now).await.unwrap();
    }
    let sent = scene.forge.requests().len() - before;
    assert!((20..=30 + 40).contains(&sent), "{sent} requests");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_is_heard_at_once() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.pass(20);
    let now = scene.clock.now();
    assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 0);
    scene.add("failure", vec![job("test", "failure")]);
    let delivery = HookDelivery {
        id: "one",
        body: "its body",
        host: &scene.project.host,
        repositories: &[scene.repository.id()],
        object: None,
    };
    let heard = scene
        .store
        .hear(&scene.project.organisation, &delivery, now);
    assert_eq!(heard.await.unwrap(), Heard::Hinted(1));
    let looks = scene.watch.look_at_due(now).await.unwrap();
    assert_eq!(looks[0].1.opened.len(), 1);
}

/// Break it: let the lease last until the next moment of the schedule.
#[tokio::test(flavor = "multi_thread")]
async fn a_hint_for_a_project_with_a_schedule_is_heard_after_its_process_was_killed() {
    let mut scene = Scene::scheduled("0 0 3 * * *").await;
    scene.look().await.unwrap();
    let mut other = watch(&scene.store, &scene.connectors, &scene.clock, "other");
    scene.pass(11 * 60);
    let now = scene.clock.now();
    assert_eq!(other.look_at_due(now).await.unwrap().len(), 0, "not due");
    scene.add("failure", vec![job("test", "failure")]);
    let delivery = HookDelivery {
        id: "one",
        body: "its body",
        host: &scene.project.host,
        repositories: &[scene.repository.id()],
        object: None,
    };
    let heard = scene
        .store
        .hear(&scene.project.organisation, &delivery, now);
    assert_eq!(heard.await.unwrap(), Heard::Hinted(1));
    let looks = other.look_at_due(now).await.unwrap();
    assert_eq!(looks.len(), 1);
    assert_eq!(looks[0].1.opened.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_moved_back_stops_no_look() {
    for restarted in [false, true] {
        let mut scene = Scene::new().await;
        scene.look().await.unwrap();
        scene.pass(24 * 3600);
        scene.look().await.unwrap();
        let ahead = scene.clock.now();
        assert_eq!(scene.watch.look_at_due(ahead).await.unwrap().len(), 0);
        scene.pass(-24 * 3600);
        if restarted {
            scene.restart();
        }
        scene.add("failure", vec![job("test", "failure")]);
        let now = scene.clock.now();
        // Break it: leave the moments that are still to come out of `store::look::TAKE_LOOKS`; nothing is looked at for a day.
        let looks = scene.watch.look_at_due(now).await.unwrap();
        assert_eq!(looks.len(), 1, "{restarted}");
        assert_eq!(scene.kinds().await, ["code test"]);
        // And then at the usual pace.
        scene.pass(10);
        let now = scene.clock.now();
        assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 0);
        scene.pass(60);
        let now = scene.clock.now();
        assert_eq!(scene.watch.look_at_due(now).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_takes_its_time_keeps_its_project_and_is_shown() {
    let scene = Scene::new().await;
    let (store, began) = (&scene.store, scene.clock.now());
    let at = |seconds| began.plus_seconds(seconds);
    let looks = store.take_looks("one", began, 1).await.unwrap();
    assert!(store.keep_look(&looks[0], at(50)).await.unwrap());
    assert!(store.take_looks("two", at(61), 1).await.unwrap().is_empty());
    assert!(store.keep_look(&looks[0], at(100)).await.unwrap());
    assert!(
        store
            .take_looks("two", at(111), 1)
            .await
            .unwrap()
            .is_empty()
    );
    // It is killed: another one takes the project over.
    let others = store.take_looks("two", at(161), 1).await.unwrap();
    assert_eq!(others.len(), 1);
    assert!(!store.keep_look(&looks[0], at(162)).await.unwrap());
}

/// Waits until the project's next look is planned for this moment.
async fn planned(scene: &Scene, at: Millis) {
    let scope = scene.store.within(&scene.project.organisation);
    let planned = async {
        while scope.watch_states().await.unwrap()[0].next_at != at {
            tokio::task::yield_now().await;
        }
    };
    let planned = tokio::time::timeout(Duration::from_secs(20), planned).await;
    planned.unwrap_or_else(|_| panic!("never planned for {at}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_look_says_again_and_again_that_it_goes_on() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    scene.pass(60);
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/actions/runs".to_owned(),
        nth: 1,
        action: FaultAction::Hang,
    });
    let began = scene.clock.now();
    let at = |seconds| began.plus_seconds(seconds);
    let first = watch(&scene.store, &scene.connectors, &scene.clock, "first");
    let mut first = first.keeping_every(Duration::from_millis(1));
    let looking = tokio::spawn(async move { first.look_at_due(began).await });
    planned(&scene, at(60)).await;
    for minute in [50, 100, 150] {
        scene.pass(50);
        planned(&scene, at(minute + 60)).await;
        let others = scene.store.take_looks("two", at(minute + 59), 1).await;
        assert!(others.unwrap().is_empty(), "{minute}");
    }
    // Its process is killed: after a minute another one takes the project over.
    looking.abort();
    assert!(looking.await.unwrap_err().is_cancelled());
    let others = scene.store.take_looks("two", at(210), 1).await.unwrap();
    assert_eq!(others.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_asks_meanwhile_is_not_counted_as_watching() {
    let mut scene = Scene::new().await;
    scene.look().await.unwrap();
    let state = async |scene: &Scene| {
        let scope = scene.store.within(&scene.project.organisation);
        scope.watch_states().await.unwrap().remove(0)
    };
    let before = state(&scene).await.requests;
    scene.pass(60);
    scene.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/actions/runs".to_owned(),
        nth: 1,
        action: FaultAction::Delay(500),
    });
    // A worker has the same connector.
    let connector = Arc::clone(&*scene.connectors.0.lock().unwrap());
    let sent = connector.usage().requests;
    let working = async {
        while connector.usage().requests == sent {
            tokio::task::yield_now().await;
        }
        for _ in 0..5 {
            connector.find_pull("caretaker/fix").await.unwrap();
        }
    };
    let now = scene.clock.now();
    let (looked, ()) = tokio::join!(scene.watch.look_at_due(now), working);
    assert_eq!(looked.unwrap().len(), 1);
    assert_eq!(connector.usage().requests - sent, 6);
    assert_eq!(state(&scene).await.requests - before, 1);
}
