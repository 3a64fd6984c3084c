//! Memory has its bounds, whoever names tasks.

use caretaker::alignment::{BeginError, MOST_TASKS};

use super::scene::{Scene, Wanted};

#[tokio::test]
async fn tasks_are_bounded_and_idle_ones_make_room() {
    let scene = Scene::new(Wanted {
        scoring: false,
        deny_prompts: r#"["x"]"#,
        ..Wanted::default()
    });
    for number in 0..MOST_TASKS {
        scene
            .engine
            .begin(&format!("task-{number}"), "mend")
            .await
            .unwrap();
        scene.clock.advance_millis(1);
    }
    let full = scene.engine.begin("one more", "mend").await;
    assert_eq!(full, Err(BeginError::Full));
    assert_eq!(scene.engine.tasks(), MOST_TASKS);
    // The first is used, so the second has been idle longest.
    scene.clock.advance_millis(3600 * 1000 - 1);
    scene.called("task-0", "{}").await;
    scene.clock.advance_millis(1);
    scene.engine.begin("one more", "mend").await.unwrap();
    assert_eq!(scene.engine.tasks(), MOST_TASKS);
    let second = scene.engine.begin("task-1", "mend").await;
    assert!(second.is_ok(), "it made room and comes back: {second:?}");
}

#[tokio::test]
async fn strangers_leave_no_state() {
    let scene = Scene::begun(Wanted::default()).await;
    for number in 0..1000 {
        scene.called(&format!("unknown-{number}"), "{}").await;
    }
    assert_eq!(scene.engine.tasks(), 1);
    scene.called(&"x".repeat(1_000_000), "{}").await;
    let long = scene.engine.begin(&"x".repeat(513), "mend").await;
    assert_eq!(long, Err(BeginError::Name));
}

#[tokio::test]
async fn a_large_call_is_scored_by_its_beginning() {
    let scene = Scene::begun(Wanted::default()).await;
    let large = "y".repeat(1_000_000);
    scene.called("task", &large).await;
    let asked = scene.fake.asked.lock().unwrap();
    assert_eq!(
        asked.last().unwrap().len(),
        caretaker::intent::EMBEDDED_BYTES
    );
}
