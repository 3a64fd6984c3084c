//! Embeddings that are kept, and requests that many share.

use std::sync::Arc;

use caretaker::intent::Outage;

use super::scene::{Scene, Wanted};

#[tokio::test]
async fn the_same_call_twice_is_embedded_once_for_all_tasks() {
    let scene = Scene::begun(Wanted::default()).await;
    scene.engine.begin("second", "the intent").await.unwrap();
    let before = scene.fake.calls();
    scene.call(0.9).await;
    scene.call(0.9).await;
    scene.called("second", "{\"at\":0.9}").await;
    assert_eq!(scene.fake.calls(), before + 1);
}

#[tokio::test]
async fn the_call_that_was_made_longest_ago_makes_room() {
    let scene = Scene::begun(Wanted {
        cache_size: 2,
        ..Wanted::default()
    })
    .await;
    for cosine in [0.91, 0.92, 0.91, 0.93] {
        scene.call(cosine).await;
    }
    let before = scene.fake.calls();
    scene.call(0.91).await;
    scene.call(0.93).await;
    assert_eq!(scene.fake.calls(), before, "both are kept");
    scene.call(0.92).await;
    assert_eq!(scene.fake.calls(), before + 1, "this one had made room");
}

#[tokio::test]
async fn a_cache_of_nothing_keeps_nothing() {
    let scene = Scene::begun(Wanted {
        cache_size: 0,
        ..Wanted::default()
    })
    .await;
    let before = scene.fake.calls();
    scene.call(0.9).await;
    scene.call(0.9).await;
    assert_eq!(scene.fake.calls(), before + 2);
}

/// Takes all permits of the fake, so that requests wait; gives them back one by one.
fn hold(scene: &Scene) {
    scene
        .fake
        .gate
        .forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn many_that_want_one_text_make_one_request() {
    let scene = Arc::new(Scene::begun(Wanted::default()).await);
    let before = scene.fake.calls();
    hold(&scene);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let scene = Arc::clone(&scene);
            tokio::spawn(async move { scene.call(0.9).await.0 })
        })
        .collect();
    until(|| scene.fake.calls() > before).await;
    scene.fake.gate.add_permits(100);
    for call in calls {
        assert_eq!(call.await.unwrap(), "allow");
    }
    assert_eq!(scene.fake.calls(), before + 1);
}

#[tokio::test]
async fn a_request_that_failed_fails_those_who_waited_and_not_the_next() {
    let scene = Arc::new(Scene::begun(Wanted::default()).await);
    hold(&scene);
    scene.fake.fails(Outage::Failing);
    let before = scene.fake.calls();
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let scene = Arc::clone(&scene);
            tokio::spawn(async move { scene.call(0.9).await.0 })
        })
        .collect();
    until(|| scene.fake.calls() > before).await;
    scene.fake.gate.add_permits(100);
    for call in calls {
        assert_eq!(call.await.unwrap(), "deny");
    }
    assert_eq!(scene.fake.calls(), before + 1);
    scene.fake.fails(None);
    assert_eq!(scene.call(0.9).await.0, "allow");
}

#[tokio::test]
async fn whoever_goes_away_leaves_the_request_to_those_who_wait() {
    let scene = Arc::new(Scene::begun(Wanted::default()).await);
    hold(&scene);
    let before = scene.fake.calls();
    let call = |scene: &Arc<Scene>| {
        let scene = Arc::clone(scene);
        tokio::spawn(async move { scene.call(0.9).await.0 })
    };
    let first = call(&scene);
    until(|| scene.fake.calls() > before).await;
    let second = call(&scene);
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    // The second asks anew in its place.
    until(|| scene.fake.calls() > before + 1).await;
    scene.fake.gate.add_permits(100);
    assert_eq!(second.await.unwrap(), "allow");
    // A lonely request that is given up leaves nothing behind that could be joined.
    scene.fake.gate.forget_permits(usize::MAX >> 4);
    let lonely = {
        let scene = Arc::clone(&scene);
        tokio::spawn(async move { scene.call(0.8).await.0 })
    };
    let asked = scene.fake.calls();
    until(|| scene.fake.calls() > asked).await;
    lonely.abort();
    drop(lonely.await);
    scene.fake.gate.add_permits(100);
    assert_eq!(scene.call(0.8).await.0, "allow");
}
