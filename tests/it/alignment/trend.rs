//! Drift, as it is told.

use caretaker::intent::{DriftRule, Outage};

use super::scene::{Scene, Wanted};

fn drift(window: i64, floor: f64, run: i64) -> Wanted {
    Wanted {
        drift: Some(DriftRule::new(window, floor, run).unwrap()),
        ..Wanted::default()
    }
}

#[tokio::test]
async fn a_task_enters_drift_once_and_recovers_once_and_no_call_is_denied_for_it() {
    let scene = Scene::begun(Wanted {
        thresholds: (0.5, -1.0),
        ..drift(2, 0.5, 0)
    })
    .await;
    let mut decisions = Vec::new();
    for cosine in [1.0, 0.0, 0.0, 0.0, 1.0, 1.0] {
        decisions.push(scene.call(cosine).await.0);
    }
    assert_eq!(
        decisions,
        ["allow", "warn", "warn", "warn", "allow", "allow"]
    );
    assert_eq!(
        scene.stream.turns(),
        ["entered mean_below_threshold", "recovered recovered"]
    );
}

#[tokio::test]
async fn a_run_of_outages_is_told_as_drift() {
    let scene = Scene::begun(drift(3, 0.35, 0)).await;
    scene.fake.fails(Outage::Unreachable);
    for cosine in [0.9, 0.8, 0.7] {
        assert_eq!(scene.call(cosine).await.0, "deny");
    }
    assert_eq!(scene.stream.turns(), ["entered mean_below_threshold"]);
    let all = scene.stream.all();
    assert_eq!(all.last().unwrap().fields["mean"], -1.0);
}

#[tokio::test]
async fn a_run_of_calls_of_a_task_that_nobody_began_is_told_as_drift() {
    let scene = Scene::begun(drift(3, 0.35, 0)).await;
    for _ in 0..5 {
        scene.called("stranger", "{}").await;
    }
    assert_eq!(scene.stream.turns(), ["entered mean_below_threshold"]);
    // And what it did goes with it once it begins.
    scene.engine.begin("stranger", "the intent").await.unwrap();
    for cosine in [1.0, 1.0, 1.0] {
        let arguments = format!("{{\"at\":{cosine}}}");
        scene.call(cosine).await;
        scene.called("stranger", &arguments).await;
    }
    assert_eq!(scene.stream.turns()[1], "recovered recovered");
}

#[tokio::test]
async fn tasks_drift_each_for_itself() {
    let scene = Scene::begun(drift(2, 0.5, 0)).await;
    scene.engine.begin("other", "the intent").await.unwrap();
    scene.call(1.0).await;
    scene.call(0.9).await;
    for _ in 0..2 {
        scene.called("other", "{\"at\":0.9}").await;
    }
    scene.call(0.0).await;
    assert_eq!(scene.stream.turns(), ["entered mean_below_threshold"]);
    assert_eq!(scene.stream.all().last().unwrap().task_id, "task");
}

#[tokio::test]
async fn scores_that_fall_are_told_though_each_is_allowed() {
    let scene = Scene::begun(drift(5, 0.35, 3)).await;
    for cosine in [0.9, 0.85, 0.8, 0.75, 0.7] {
        assert_eq!(scene.call(cosine).await.0, "allow");
    }
    assert_eq!(scene.stream.turns(), ["entered monotone_decrease"]);
}
