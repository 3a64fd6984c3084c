//! How much a task may use, and that its session is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use caretaker::agent::model::{Class, HttpModel, Limits, ModelSettings, Protocol, Usage};
use caretaker::agent::{Coder as _, CoderError};
use caretaker::clock::SystemClock;
use caretaker::incident::{Currency, MoneyBudget, Prices};
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
    let begin = Instant::now();
    let ended = scene.fix(SaidModel::calling(&[sleeps])).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(15));
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

/// A dollar a million tokens sent, two for those received.
fn costing(most: &str) -> MoneyBudget {
    let amount = |text: &str| text.parse().unwrap();
    MoneyBudget {
        prices: Prices {
            input: amount("1"),
            output: amount("2"),
            currency: Currency::try_from("USD".to_owned()).unwrap(),
        },
        most: Some(amount(most)),
    }
}

#[tokio::test]
async fn a_request_that_could_cost_too_much_is_not_made() {
    // An answer alone may have 8,192 tokens at two millionths each.
    let mut scene = Scene::new();
    scene.budget.money = Some(costing("0.016383"));
    let ended = scene.fix(endless()).await.unwrap_err();
    assert_eq!(status(&ended), "its budget of money (0.016383 USD) used up");
    let report = scene.report();
    assert_eq!((report.requests, report.cost.unwrap().micro), (0, 0));

    // With room for what was said first and more than that, but not for ever.
    let mut scene = Scene::new();
    scene.budget.money = Some(costing("0.03"));
    scene.budget.requests = 1_000;
    scene.budget.tool_calls = 10_000;
    let ended = scene.fix(endless()).await.unwrap_err();
    assert!(status(&ended).contains("money"), "{ended}");
    let report = scene.report();
    assert!(report.requests > 1, "{report:?}");
    let cost = report.cost.unwrap().micro;
    assert_eq!(cost, report.input_tokens + 2 * report.output_tokens);
    assert!(cost < 30_000, "{cost}");
}

#[tokio::test]
async fn without_a_bound_money_is_only_counted() {
    let mut scene = Scene::new();
    let mut money = costing("1");
    money.most = None;
    scene.budget.money = Some(money);
    scene.budget.requests = 3;
    let ended = scene.fix(endless()).await.unwrap_err();
    assert!(status(&ended).contains("requests"), "{ended}");
    assert_eq!(scene.report().cost.unwrap().to_string(), "0.00006 USD");
}

#[tokio::test]
async fn requests_that_fail_cost_too() {
    let mut scene = Scene::new();
    scene.budget.money = Some(costing("1"));
    let ended = scene.fix(SaidModel::new(vec![Err(Class::Retry)])).await;
    assert!(matches!(ended, Err(CoderError::Unavailable { .. })));
    let report = scene.report();
    assert_eq!((report.requests, report.input_tokens), (4, 0));
    assert!(report.cost.unwrap().micro > 400, "{report:?}");
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
