//! What stands in the audit stream, and what becomes of a decision that cannot.

use std::sync::atomic::Ordering;

use caretaker::intent::{DriftRule, Outage};
use serde_json::json;

use super::scene::{Scene, Wanted};

#[tokio::test]
async fn every_scored_call_is_one_event_with_four_members() {
    let scene = Scene::begun(Wanted::default()).await;
    scene.call(0.847).await;
    let scored = scene.engine.score_for(
        Some("req-xyz"),
        "task",
        "cli_execute",
        Some("A tool"),
        "{\"at\":0.847}",
    );
    scored.await;
    let all = scene.stream.all();
    assert_eq!(all.len(), 2);
    assert_eq!(
        serde_json::to_value(&all[1]).unwrap(),
        json!({
            "event": "intent_alignment",
            "task_id": "task",
            "correlation_id": "req-xyz",
            "fields": {
                "tool": "cli_execute",
                "score": 0.847,
                "decision": "allow",
                "reason": "score 0.847 above threshold 0.500",
            },
        })
    );
}

#[tokio::test]
async fn a_drift_event_has_five_members() {
    let rule = DriftRule::new(2, 0.35, 0).unwrap();
    let scene = Scene::begun(Wanted {
        drift: Some(rule),
        ..Wanted::default()
    })
    .await;
    scene.call(0.3).await;
    scene.call(0.142).await;
    let all = scene.stream.all();
    assert_eq!(
        serde_json::to_value(&all[2]).unwrap(),
        json!({
            "event": "intent_drift",
            "task_id": "task",
            "fields": {
                "tool": "tool",
                "severity": "mean_below_threshold",
                "transition": "entered",
                "mean": 0.221,
                "window": 2,
            },
        })
    );
}

#[tokio::test]
async fn no_word_of_a_user_a_model_or_a_provider_is_recorded() {
    let scene = Scene::begun(Wanted {
        deny_prompts: r#"["forbidden"]"#,
        exempt: &["todo"],
        drift: Some(DriftRule::new(2, 0.9, 2).unwrap()),
        ..Wanted::default()
    })
    .await;
    scene.engine.begin("other", "SECRET intent").await.unwrap();
    for arguments in ["SECRET", "SECRET forbidden"] {
        scene.called("other", arguments).await;
        scene.called("nobody", arguments).await;
        scene
            .engine
            .score("other", "todo", Some("SECRET"), arguments)
            .await;
    }
    scene.fake.fails(Outage::Refused);
    scene.called("other", "SECRET again").await;
    let tool = format!("fn\n\u{1b}[2J{}", "x".repeat(10_000));
    scene.engine.score("other", &tool, None, "SECRET").await;
    let all = serde_json::to_string(&scene.stream.all()).unwrap();
    assert!(scene.stream.all().len() >= 8);
    assert!(!all.contains("SECRET"), "{all}");
    assert!(!all.contains("\\u001b"));
    assert!(all.len() < 8_000, "the name of a tool is cut");
}

#[tokio::test]
async fn a_decision_without_a_score_says_so() {
    let scene = Scene::begun(Wanted::default()).await;
    scene.called("nobody", "{}").await;
    let event = &scene.stream.all()[0];
    assert_eq!(event.fields["score"], "NaN");
    assert_eq!(event.fields["decision"], "deny");
}

#[tokio::test]
async fn what_cannot_be_recorded_is_denied() {
    let rule = DriftRule::new(2, 0.5, 0).unwrap();
    let scene = Scene::begun(Wanted {
        drift: Some(rule),
        thresholds: (0.5, -1.0),
        exempt: &["todo"],
        ..Wanted::default()
    })
    .await;
    scene.stream.full.store(true, Ordering::SeqCst);
    assert_eq!(
        scene.call(1.0).await,
        ("deny", "audit stream unavailable (fail-closed)".to_owned())
    );
    let exempt = scene.engine.score("task", "todo", None, "{}").await;
    assert!(exempt.is_denied());
    // What is denied for another reason keeps it.
    assert_eq!(
        scene.called("nobody", "{}").await.1,
        "no stated_intent registered for task (fail-closed)"
    );
    scene.call(-1.0).await;
    scene.stream.full.store(false, Ordering::SeqCst);
    assert!(scene.stream.all().is_empty());
    // The turn that could not be told is told with the next call.
    assert_eq!(scene.call(-0.9).await.0, "warn");
    assert_eq!(scene.stream.turns(), ["entered mean_below_threshold"]);
}
