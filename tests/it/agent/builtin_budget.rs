//! How much a task may use, and that its session is told.

use std::sync::Arc;
use std::time::Duration;

use caretaker::agent::model::{Class, HttpModel, Limits, ModelSettings, Protocol, Usage};
use caretaker::agent::{Coder as _, CoderError};
use caretaker::clock::SystemClock;
use serde_json::json;

use super::builtin_scene::{SaidModel, Scene, answer, fix_task, status, submit_fix};
use crate::embedder::server::{Server, ok};

/// Reads for ever, two files at once.
fn endless() -> Arc<SaidModel> {
    let read = ("read_file", json!({"path": "src/lib.rs"}));
    SaidModel::new(vec![Ok(answer(&[read.clone(), read]))])
}

#[tokio::test]
async fn each_budget_ends_a_loop_that_never_ends() {
    let mut scene = Scene::new();
    scene.budget.requests = 5;
    let ended = scene.fix(endless()).await.unwrap_err();
    assert_eq!(status(&ended), "its budget of requests (5) used up");
    assert_eq!((scene.report().requests, scene.report().calls), (5, 10));

    let mut scene = Scene::new();
    scene.budget.tool_calls = 5;
    let ended = scene.fix(endless()).await.unwrap_err();
    assert_eq!(status(&ended), "its budget of tool_calls (5) used up");
    assert_eq!((scene.report().requests, scene.report().calls), (3, 5));
    assert_eq!(scene.gate.tools().len(), 5, "nobody is asked about a sixth");

    let mut scene = Scene::new();
    scene.budget.tokens = 31;
    let ended = scene.fix(endless()).await.unwrap_err();
    assert_eq!(status(&ended), "its budget of tokens (31) used up");
    let report = scene.report();
    assert_eq!(
        (report.requests, report.input_tokens, report.output_tokens),
        (3, 30, 15)
    );

    let mut scene = Scene::new();
    scene.budget.wall = Duration::from_secs(1);
    let sleeps = ("run_command", json!({"command": ["sleep", "600"]}));
    let ended = scene.fix(SaidModel::calling(&[sleeps])).await.unwrap_err();
    assert_eq!(status(&ended), "its budget of wall_seconds (1) used up");
    assert_eq!((scene.report().requests, scene.report().calls), (1, 1));
}

#[tokio::test]
async fn requests_that_fail_count() {
    let mut scene = Scene::new();
    scene.budget.requests = 3;
    let ended = scene
        .fix(SaidModel::new(vec![Err(Class::Retry)]))
        .await
        .unwrap_err();
    assert_eq!(status(&ended), "its budget of requests (3) used up");
    assert_eq!(scene.report().requests, 3);

    let scene = Scene::new();
    let ended = scene.fix(SaidModel::new(vec![Err(Class::Retry)])).await;
    assert!(matches!(ended, Err(CoderError::Unavailable { .. })));
    assert_eq!(scene.report().requests, 4, "four tries");
}

#[tokio::test]
async fn counts_beyond_all_numbers_end_it_too() {
    let scene = Scene::new();
    let mut boastful = answer(&[("list_files", json!({}))]);
    boastful.usage = Some(Usage {
        input: u64::MAX,
        output: u64::MAX,
    });
    let ended = scene
        .fix(SaidModel::new(vec![Ok(boastful)]))
        .await
        .unwrap_err();
    assert!(status(&ended).contains("tokens"));
    assert_eq!(scene.report().requests, 1);
}

#[tokio::test]
async fn who_does_not_count_tokens_is_counted_by_bytes() {
    let server = Server::answering(|_, _| {
        ok(
            &json!({"message": {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "list_files", "arguments": {}}}]}, "done_reason": "stop"}),
        )
    })
    .await;
    let settings = ModelSettings {
        protocol: Protocol::Ollama,
        name: "m".to_owned(),
        base: server.base().parse().unwrap(),
        key: None,
        limits: Limits::default(),
    };
    let mut scene = Scene::new();
    scene.budget.tokens = 5_000;
    let model = HttpModel::new(settings, Arc::new(SystemClock)).unwrap();
    let ended = scene.fix(Arc::new(model)).await.unwrap_err();
    assert!(status(&ended).contains("tokens"), "{ended}");
    let report = scene.report();
    assert!(
        report.input_tokens > 4_000 && report.output_tokens > 20,
        "{report:?}"
    );
}

#[tokio::test]
async fn a_session_is_told_on_every_way_out() {
    // Broken off from outside, while a program runs.
    let scene = Scene::new();
    let sleeps = ("run_command", json!({"command": ["sleep", "600"]}));
    let coder = scene.coder(SaidModel::calling(&[sleeps])).await;
    let (task, tree) = (fix_task(), scene.tree());
    let working = coder.fix(&task, &tree, Some(&scene.session));
    let broken = tokio::time::timeout(Duration::from_millis(300), working).await;
    assert!(broken.is_err());
    assert_eq!((scene.report().requests, scene.report().calls), (1, 1));
    // And when all went well.
    let scene = Scene::new();
    scene
        .fix(SaidModel::calling(&[submit_fix()]))
        .await
        .unwrap();
    assert_eq!((scene.report().requests, scene.report().calls), (1, 1));
}
