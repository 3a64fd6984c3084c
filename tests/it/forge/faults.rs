//! Networks that fail, servers that hang, and people who act between two requests.

use std::time::Duration;

use caretaker::forge::{Fault, FaultAction, ForgeError, Moment};
use serde_json::json;

use super::bench::{Bench, file};

fn fault(method: &str, path: &str, nth: usize, action: FaultAction) -> Fault {
    Fault {
        method: method.to_owned(),
        path: path.to_owned(),
        nth,
        action,
    }
}

/// Whether a merge request got an answer at all.
async fn answered(bench: &Bench) -> bool {
    let url = format!("{}/repos/acme/widget/pulls/1/merge", bench.forge.url());
    let request = bench
        .client
        .put(url)
        .bearer_auth(bench.forge.token())
        .body("{}");
    match request.send().await {
        Ok(response) => response.bytes().await.is_ok(),
        Err(_) => false,
    }
}

async fn bench_with_pull() -> Bench {
    let bench = Bench::new().await;
    bench.branch("fix", &[("c.txt", file("c\n"))]);
    bench.pull("fix").await;
    bench
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_strikes_the_nth_matching_request_once() {
    let bench = Bench::new().await;
    let action = FaultAction::Status {
        code: 429,
        body: json!({"message": "API rate limit exceeded"}).to_string(),
        headers: vec![
            ("retry-after".to_owned(), "60".to_owned()),
            ("x-ratelimit-remaining".to_owned(), "0".to_owned()),
        ],
    };
    bench.forge.fault(fault("GET", "/branches/", 2, action));
    assert_eq!(bench.get("/branches/main").await.status, 200);
    assert_eq!(bench.get("").await.status, 200);
    let struck = bench.get("/branches/main").await;
    assert_eq!(
        (
            struck.status,
            struck.header("retry-after"),
            struck.message()
        ),
        (429, "60", "API rate limit exceeded")
    );
    assert_eq!(bench.get("/branches/main").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_has_no_effect() {
    let bench = bench_with_pull().await;
    bench.forge.fault(fault(
        "*",
        "/merge",
        1,
        FaultAction::Status {
            code: 502,
            body: String::new(),
            headers: vec![],
        },
    ));
    assert_eq!(bench.put("/pulls/1/merge", json!({})).await.status, 502);
    assert!(bench.repository.pull(1).unwrap().open);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_can_be_lost_before_or_after_the_merge() {
    let bench = bench_with_pull().await;
    bench.forge.fault(fault(
        "PUT",
        "/pulls/1/merge",
        1,
        FaultAction::CloseBeforeEffect,
    ));
    bench.forge.fault(fault(
        "PUT",
        "/pulls/1/merge",
        2,
        FaultAction::CloseAfterEffect,
    ));
    assert!(!answered(&bench).await);
    assert!(bench.repository.pull(1).unwrap().open, "nothing happened");
    assert!(!answered(&bench).await);
    assert!(
        bench.repository.pull(1).unwrap().merge_commit.is_some(),
        "it was merged all the same"
    );
    let puts: Vec<Option<u16>> = bench
        .forge
        .requests()
        .iter()
        .filter(|record| record.method == "PUT")
        .map(|record| record.status)
        .collect();
    assert_eq!(puts, [None, None]);
    // Other connections live on.
    assert_eq!(bench.get("").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_request_never_answers_and_does_not_keep_the_forge_from_stopping() {
    let bench = bench_with_pull().await;
    bench
        .forge
        .fault(fault("PUT", "/merge", 1, FaultAction::Hang));
    let url = format!("{}/repos/acme/widget/pulls/1/merge", bench.forge.url());
    let request = bench
        .client
        .put(url)
        .bearer_auth(bench.forge.token())
        .body("{}")
        .timeout(Duration::from_millis(300));
    assert!(request.send().await.unwrap_err().is_timeout());
    assert!(bench.repository.pull(1).unwrap().open);
    bench
        .forge
        .fault(fault("GET", "/meta", 1, FaultAction::Hang));
    let hanging = tokio::spawn(
        bench
            .client
            .get(format!("{}/meta", bench.forge.url()))
            .send(),
    );
    while !bench
        .forge
        .requests()
        .iter()
        .any(|record| record.path == "/meta")
    {
        tokio::task::yield_now().await;
    }
    bench.forge.stop().await;
    assert!(hanging.await.unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_can_end_early() {
    let bench = Bench::new().await;
    for length in [0, 10] {
        bench.forge.fault(fault(
            "GET",
            "/repos/acme/widget",
            1,
            FaultAction::Truncate(length),
        ));
        let url = format!("{}/repos/acme/widget", bench.forge.url());
        let mut response = bench
            .client
            .get(url)
            .bearer_auth(bench.forge.token())
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        assert!(
            response.content_length().unwrap() > 1_000,
            "the headers promise everything"
        );
        let mut received = Vec::new();
        let end = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => received.extend(chunk),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        assert!(end.is_err(), "the client notices");
        assert_eq!(received.len(), length);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_request_still_happens() {
    let bench = bench_with_pull().await;
    bench
        .forge
        .fault(fault("PUT", "/merge", 1, FaultAction::Delay(30)));
    let started = std::time::Instant::now();
    assert_eq!(bench.put("/pulls/1/merge", json!({})).await.status, 200);
    assert!(started.elapsed() >= Duration::from_millis(30));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_git_can_fail_as_well() {
    let bench = Bench::new().await;
    bench
        .forge
        .fault(fault("GET", "/info/refs", 1, FaultAction::CloseAfterEffect));
    assert!(
        !bench
            .git(".", &["clone", "--quiet", &bench.git_url(), "work"])
            .status
            .success()
    );
    assert!(
        bench
            .git(".", &["clone", "--quiet", &bench.git_url(), "work"])
            .status
            .success()
    );
    // A push whose answer is lost has happened.
    bench.forge.fault(fault(
        "POST",
        "/git-receive-pack",
        1,
        FaultAction::CloseAfterEffect,
    ));
    assert!(
        !bench
            .git(
                "work",
                &["push", "--quiet", "origin", "HEAD:refs/heads/pushed"]
            )
            .status
            .success()
    );
    assert_eq!(
        bench.repository.tip("pushed").unwrap(),
        bench.repository.tip("main").unwrap()
    );
    bench.forge.fault(fault(
        "GET",
        "/logs/",
        1,
        FaultAction::Status {
            code: 503,
            body: String::new(),
            headers: vec![],
        },
    ));
    let log = bench
        .client
        .get(format!("{}/logs/1/1", bench.forge.logs_url()))
        .send()
        .await
        .unwrap();
    assert_eq!(log.status(), 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_can_win_the_race_against_the_merge() {
    let bench = bench_with_pull().await;
    let head = bench.repository.tip("fix").unwrap();
    let repository = bench.repository.clone();
    bench
        .forge
        .on("PUT", "/pulls/1/merge", 1, Moment::Before, move || {
            repository
                .commit("fix", &[("evil.txt", file("x\n"))], "Late")
                .map(drop)
        });
    let refused = bench
        .put("/pulls/1/merge", json!({"sha": head.as_str()}))
        .await;
    assert_eq!(refused.status, 409);
    assert!(bench.repository.pull(1).unwrap().open);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_after_the_effect_comes_before_the_answer() {
    let bench = bench_with_pull().await;
    let repository = bench.repository.clone();
    bench.forge.on("PUT", "/merge", 1, Moment::After, move || {
        repository
            .commit("main", &[("d.txt", file("d\n"))], "On top")
            .map(drop)
    });
    let merged = bench.put("/pulls/1/merge", json!({})).await;
    let landed = merged.body["sha"].as_str().unwrap();
    assert_ne!(bench.repository.tip("main").unwrap(), landed);
    assert_eq!(bench.bare(&["rev-parse", "main^"]), landed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_act_makes_the_request_fail_visibly() {
    let bench = Bench::new().await;
    bench.forge.on("GET", "/branches", 1, Moment::Before, || {
        Err(ForgeError::Absent {
            what: "the thing".to_owned(),
        })
    });
    let failed = bench.get("/branches/main").await;
    assert_eq!(failed.status, 500);
    assert!(failed.body.as_str().unwrap().contains("the thing"));
}
