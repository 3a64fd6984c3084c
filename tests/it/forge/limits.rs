//! Rate limits, and answers that are odd, endless or garbage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caretaker::forge::{Fault, FaultAction, Limits, NewToken, Profile, Sources, TokenKind};
use reqwest::Method;
use serde_json::{Value, json};

use super::bench::{Bench, file, read};
use super::tokens::with;

const START: u64 = 1_767_600_000;

/// A bench whose clock the test turns.
async fn bench_with_clock() -> (Bench, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(START));
    let clock = Arc::clone(&seconds);
    let sources = Sources {
        now: Arc::new(move || clock.load(Ordering::SeqCst)),
        ..Sources::default()
    };
    (
        Bench::in_form(Profile::Github20221128, sources).await,
        seconds,
    )
}

fn token(bench: &Bench) -> String {
    bench.forge.issue_token(NewToken {
        kind: TokenKind::Classic {
            scopes: vec!["repo".to_owned()],
        },
        repositories: None,
        expires_at: None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_primary_limit_ends_with_the_hour_and_304_is_free() {
    let (bench, clock) = bench_with_clock().await;
    bench.forge.limit(Limits {
        primary_per_hour: Some(3),
        status: 429,
        ..Limits::default()
    });
    let first = bench.get("").await;
    assert_eq!(first.header("x-ratelimit-limit"), "3");
    assert_eq!(first.header("x-ratelimit-remaining"), "2");
    assert_eq!(
        first.header("x-ratelimit-reset"),
        (START + 3_600).to_string()
    );
    for _ in 0..10 {
        let again = bench
            .client
            .get(format!("{}/repos/acme/widget", bench.forge.url()))
            .bearer_auth(bench.forge.token())
            .header("if-none-match", first.header("etag"));
        let again = read(again.send().await.unwrap()).await;
        assert_eq!(again.status, 304);
        assert_eq!(again.header("x-ratelimit-remaining"), "2");
    }
    bench.get("").await;
    assert_eq!(bench.get("").await.header("x-ratelimit-remaining"), "0");
    let refused = bench.get("").await;
    assert_eq!(refused.status, 429);
    assert!(
        refused
            .message()
            .starts_with("API rate limit exceeded for user ID")
    );
    assert_eq!(refused.header("x-ratelimit-remaining"), "0");
    assert_eq!(refused.header("retry-after"), "");
    // What is left can always be asked for, and another credential has its own account.
    let state = bench.send(Method::GET, "/rate_limit", None).await;
    assert_eq!(state.body["resources"]["core"]["remaining"], 0);
    let other = token(&bench);
    let answer = with(&bench, &other, Method::GET, "/repos/acme/widget", None).await;
    assert_eq!(answer.status, 200);
    clock.store(START + 3_600, Ordering::SeqCst);
    assert_eq!(bench.get("").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn points_run_out_within_a_minute() {
    let (bench, clock) = bench_with_clock().await;
    bench.forge.limit(Limits {
        points_per_minute: Some(7),
        ..Limits::default()
    });
    let tip = bench.repository.tip("main").unwrap();
    let status = format!("/statuses/{tip}");
    let good = json!({"state": "success", "context": "ci"});
    assert_eq!(bench.post(&status, good.clone()).await.status, 201);
    assert_eq!(bench.get("").await.status, 200);
    assert_eq!(bench.get("").await.status, 200);
    let refused = bench.get("").await;
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .message()
            .starts_with("You have exceeded a secondary rate limit")
    );
    assert_eq!(refused.header("retry-after"), "60");
    assert_ne!(refused.header("x-ratelimit-remaining"), "0");
    clock.store(START + 60, Ordering::SeqCst);
    assert_eq!(bench.get("").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_limited_by_minute_and_hour() {
    let (bench, clock) = bench_with_clock().await;
    bench.branch("fix", &[("new.txt", file("new\n"))]);
    bench.pull("fix").await;
    bench.forge.limit(Limits {
        content_per_minute: Some(2),
        content_per_hour: Some(3),
        retry_after: false,
        ..Limits::default()
    });
    let comment = || bench.post("/issues/1/comments", json!({"body": "Hi"}));
    assert_eq!(comment().await.status, 201);
    assert_eq!(comment().await.status, 201);
    let refused = comment().await;
    assert_eq!(refused.status, 403);
    assert!(
        refused
            .message()
            .contains("temporarily blocked from content creation")
    );
    assert_eq!(refused.header("retry-after"), "");
    // Reading goes on.
    assert_eq!(bench.get("").await.status, 200);
    clock.store(START + 60, Ordering::SeqCst);
    assert_eq!(comment().await.status, 201);
    assert_eq!(comment().await.status, 403);
    clock.store(START + 3_660, Ordering::SeqCst);
    assert_eq!(comment().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_at_once_are_refused() {
    let bench = Bench::new().await;
    bench.forge.limit(Limits {
        concurrent: Some(1),
        ..Limits::default()
    });
    bench.forge.fault(Fault {
        method: "GET".to_owned(),
        path: "/branches/".to_owned(),
        nth: 1,
        action: FaultAction::Hang,
    });
    let (url, token) = (bench.forge.url().to_owned(), bench.forge.token().to_owned());
    let client = bench.client.clone();
    let hanging = tokio::spawn(async move {
        let path = format!("{url}/repos/acme/widget/branches/main");
        client.get(path).bearer_auth(token).send().await.is_ok()
    });
    while !bench
        .forge
        .requests()
        .iter()
        .any(|request| request.path.contains("/branches/"))
    {
        tokio::task::yield_now().await;
    }
    let refused = bench.get("").await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(
        refused
            .message()
            .starts_with("You have exceeded a secondary rate limit")
    );
    hanging.abort();
    drop(hanging.await);
    // The connection of the aborted request is noticed when it is, so the next answers may still be refused.
    let mut status = 403;
    while status != 200 {
        status = bench.get("").await.status;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_distorted_as_planned() {
    let bench = Bench::new().await;
    let before = bench.get("").await;
    bench.forge.distort("GET", "/repos/acme/widget", |body| {
        body["default_branch"] = Value::Null;
        body["invented"] = json!(1);
    });
    let after = bench.get("").await;
    assert_eq!(after.body["default_branch"], Value::Null);
    assert_eq!(after.body["invented"], 1);
    assert_eq!(after.body["name"], "widget");
    assert_ne!(after.header("etag"), before.header("etag"));
    assert_eq!(
        bench.send(Method::GET, "/user", None).await.body["invented"],
        Value::Null
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_may_be_garbage_or_endless() {
    let bench = Bench::new().await;
    let plan = |action| {
        bench.forge.fault(Fault {
            method: "*".to_owned(),
            path: "/repos".to_owned(),
            nth: 1,
            action,
        });
    };
    plan(FaultAction::Garbage(vec![0xff, 0, b'{']));
    let url = format!("{}/repos/acme/widget", bench.forge.url());
    let garbage = bench.client.get(&url).send().await.unwrap();
    assert_eq!(garbage.status(), 200);
    assert_eq!(garbage.bytes().await.unwrap().as_ref(), [0xff, 0, b'{']);
    plan(FaultAction::Endless);
    let mut endless = bench.client.get(&url).send().await.unwrap();
    let mut seen = 0;
    while seen < 1_000_000 {
        seen += endless.chunk().await.unwrap().unwrap().len();
    }
    drop(endless);
    // Nothing of it keeps the forge from stopping.
    tokio::time::timeout(Duration::from_secs(20), bench.forge.stop())
        .await
        .unwrap();
}
