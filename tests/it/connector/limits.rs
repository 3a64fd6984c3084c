//! Limits, repetitions and credentials that end, as requests that are sent or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use caretaker::clock::Millis;
use caretaker::connector::github::GithubOptions;
use caretaker::connector::github::credential::{PersonalToken, TokenError, Use};
use caretaker::connector::{Connector as _, ConnectorError, GitUse, NewPull};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::credentials::{Numbered, Without};
use super::provider::{Asked, NOW, Provider, Reply, json, with_headers};

fn runs() -> Value {
    json!({"workflow_runs": []})
}

fn new_pull() -> NewPull {
    NewPull {
        head_ref: "caretaker/a".to_owned(),
        base_ref: "main".to_owned(),
        title: "Fix".to_owned(),
        body: String::new(),
    }
}

fn until(error: &ConnectorError) -> Millis {
    match error {
        ConnectorError::Limited { until, .. } => *until,
        other => panic!("{other}"),
    }
}

/// Answers in this order, the last one for ever.
async fn answering(replies: Vec<Reply>) -> Provider {
    let next = AtomicU32::new(0);
    Provider::start(move |_| {
        let number = next.fetch_add(1, Ordering::SeqCst) as usize;
        replies[number.min(replies.len() - 1)].clone()
    })
    .await
}

/// Report 20: a secondary limit may come as 403 with requests left and without a word of when to come back.
#[tokio::test]
async fn a_paused_credential_sends_nothing() {
    let secondary = || {
        with_headers(
            403,
            &[("x-ratelimit-remaining", "4000")],
            &json!({"message": "You have exceeded a secondary rate limit."}),
        )
    };
    let provider = answering(vec![
        secondary(),
        json(200, &runs()),
        secondary(),
        secondary(),
        json(200, &runs()),
        secondary(),
    ])
    .await;
    let watching = provider.connector();
    let elsewhere = provider.made(GithubOptions {
        name: "gadget".to_owned(),
        ..provider.options()
    });
    assert_eq!(
        until(&watching.runs(1).await.unwrap_err()),
        NOW.plus_seconds(60)
    );
    // Whatever has this credential stands still, reading and changing alike; what has another goes on.
    assert_eq!(
        until(&elsewhere.runs(1).await.unwrap_err()),
        NOW.plus_seconds(60)
    );
    assert_eq!(
        until(&watching.find_pull("caretaker/a").await.unwrap_err()),
        NOW.plus_seconds(60)
    );
    assert_eq!(
        until(&watching.rerun_failed(7).await.unwrap_err()),
        NOW.plus_seconds(60)
    );
    assert_eq!(provider.asked().len(), 1);
    let usage = elsewhere.usage();
    assert_eq!(usage.paused_until, Some(NOW.plus_seconds(60)));
    let why = usage.paused_for.unwrap();
    assert!(why.contains("secondary rate limit"), "{why}");
    let other = provider.connector_with(Arc::new(PersonalToken::new("another".into())));
    other.runs(1).await.unwrap();
    // The next ones wait longer each time, and a success begins anew.
    let mut now = NOW;
    for (pass, wait) in [
        (60, Some(120)),
        (120, Some(240)),
        (240, None),
        (0, Some(60)),
    ] {
        now = now.plus_seconds(pass);
        provider.clock.advance_millis(pass * 1_000);
        let found = watching.runs(1).await;
        let waited = found.err().map(|error| until(&error));
        assert_eq!(waited, wait.map(|wait| now.plus_seconds(wait)));
    }
}

#[tokio::test]
async fn a_plain_403_pauses_nothing() {
    let provider = answering(vec![
        json(
            403,
            &json!({"message": "Resource not accessible by integration"}),
        ),
        json(200, &runs()),
    ])
    .await;
    let connector = provider.connector();
    let error = connector.runs(1).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Forbidden { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("caretaker project credential ID --token-env VAR")
    );
    connector.runs(1).await.unwrap();
    assert_eq!(connector.usage().paused_until, None);
}

#[tokio::test]
async fn watching_leaves_a_reserve_for_proposing_and_merging() {
    let numbers = |remaining: &'static str| {
        [
            ("x-ratelimit-limit", "5000"),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", "1800000600"),
        ]
    };
    let provider = Provider::start(move |asked| match asked.tail() {
        "/actions/runs" => with_headers(200, &numbers("500"), &runs()),
        _ => with_headers(200, &numbers("250"), &json!([])),
    })
    .await;
    let connector = provider.connector();
    connector.runs(1).await.unwrap();
    let usage = connector.usage();
    assert_eq!((usage.limit, usage.remaining), (Some(5_000), Some(500)));
    assert_eq!(usage.resets_at, Some(NOW.plus_seconds(600)));
    assert_eq!(usage.paused_until, usage.resets_at, "for watching");
    assert_eq!(
        until(&connector.runs(1).await.unwrap_err()),
        NOW.plus_seconds(600)
    );
    assert_eq!(connector.find_pull("caretaker/a").await.unwrap(), None);
    until(&connector.find_pull("caretaker/a").await.unwrap_err());
    assert_eq!(provider.asked().len(), 2);
    provider.clock.advance_millis(600_000);
    connector.runs(1).await.unwrap();
}

#[tokio::test]
async fn what_is_asked_for_a_merge_is_not_counted_as_watching() {
    let provider = answering(vec![json(200, &runs())]).await;
    let connector = provider.connector();
    connector.runs(1).await.unwrap();
    for _ in 0..3 {
        drop(connector.pull(1).await);
        drop(connector.find_pull("caretaker/a").await);
    }
    connector.runs(2).await.unwrap();
    let usage = connector.usage();
    assert_eq!((usage.requests, usage.watching), (8, 2));
}

#[tokio::test]
async fn a_read_that_came_to_nothing_is_repeated_and_counted() {
    let half = Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{".to_vec());
    for nothing in [json(502, &json!({})), half, Reply::Raw(Vec::new())] {
        let provider = answering(vec![nothing.clone(), nothing, json(200, &runs())]).await;
        let connector = provider.connector();
        connector.runs(1).await.unwrap();
        let usage = connector.usage();
        assert_eq!((usage.requests, usage.repeated), (3, 2));
    }
    // What would be the same again is not repeated, nor what is to come later.
    let later = with_headers(503, &[("retry-after", "60")], &json!({}));
    for lasting in [json(501, &json!({})), later, json(422, &json!({}))] {
        let provider = answering(vec![lasting, json(200, &runs())]).await;
        provider.connector().runs(1).await.unwrap_err();
        assert_eq!(provider.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_limit_met_while_repeating_ends_it() {
    let limit = with_headers(429, &[("retry-after", "9")], &json!({}));
    let provider = answering(vec![json(502, &json!({})), limit]).await;
    let connector = provider.connector();
    let error = connector.runs(1).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(provider.asked().len(), 2);
    assert_eq!(connector.usage().paused_until, Some(NOW.plus_seconds(9)));
}

/// A provider that takes no token but the second.
async fn after_the_first_token() -> Provider {
    Provider::start(|asked: &Asked| {
        if asked.all("authorization") == ["Bearer token-0"] {
            return json(401, &json!({"message": "Bad credentials"}));
        }
        match (asked.method.as_str(), asked.tail()) {
            ("POST", "/actions/runs/7/rerun-failed-jobs") => json(201, &json!({})),
            (_, "") => json(200, &json!({"id": 42})),
            _ => json(200, &runs()),
        }
    })
    .await
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let provider = after_the_first_token().await;
    let credential = Arc::new(Numbered::new(true));
    let connector = provider.connector_with(credential.clone());
    connector.runs(1).await.unwrap();
    assert_eq!((credential.number(), provider.asked().len()), (1, 2));
    connector.runs(1).await.unwrap();
    assert_eq!(provider.asked().len(), 3, "the new one stays");

    // 401 says that the request was not looked at: a change may go out again with another token.
    let provider = after_the_first_token().await;
    let credential = Arc::new(Numbered::new(true));
    let connector = provider.connector_with(credential.clone());
    connector.rerun_failed(7).await.unwrap();
    assert_eq!(provider.count("POST"), 2);
    assert_eq!(credential.uses(), [Use::Propose, Use::Propose]);

    // There is no other: said as what it is, with the mend, and nothing is repeated.
    let provider = after_the_first_token().await;
    let connector = provider.connector_with(Arc::new(Numbered::new(false)));
    let error = connector.runs(1).await.unwrap_err();
    assert!(
        matches!(error, ConnectorError::Unauthorised { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("caretaker project credential ID --token-env VAR")
    );
    assert!(!error.is_transient());
    connector.rerun_failed(7).await.unwrap_err();
    assert_eq!(provider.asked().len(), 2);

    // Every token is refused: one more, and no further one.
    let provider = answering(vec![json(401, &json!({}))]).await;
    let connector = provider.connector_with(Arc::new(Numbered::new(true)));
    connector.runs(1).await.unwrap_err();
    connector.rerun_failed(7).await.unwrap_err();
    assert_eq!(provider.asked().len(), 4);
}

#[tokio::test]
async fn each_task_has_its_token() {
    let provider = Provider::start(|asked| match (asked.method.as_str(), asked.tail()) {
        ("GET", "") => json(200, &json!({"id": 42})),
        ("POST", _) => json(422, &json!({})),
        _ => json(200, &json!([])),
    })
    .await;
    let credential = Arc::new(Numbered::new(false));
    let connector = provider.connector_with(credential.clone());
    connector.find_pull("caretaker/a").await.unwrap();
    connector.open_pull(&new_pull()).await.unwrap_err();
    let fetch = connector.git_remote(GitUse::Fetch).await.unwrap();
    assert_eq!(fetch.token.unwrap().expose_secret(), "token-0");
    connector.git_remote(GitUse::Push).await.unwrap();
    let uses = [Use::Read, Use::Read, Use::Propose, Use::Read, Use::Propose];
    assert_eq!(credential.uses(), uses);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let provider = Provider::start(|_| json(200, &runs())).await;
    let action = || "getting a token".to_owned();
    let limited = TokenError::Limited {
        action: action(),
        until: NOW.plus_seconds(5),
    };
    let connector = provider.connector_with(Arc::new(Without(limited)));
    assert_eq!(
        until(&connector.runs(1).await.unwrap_err()),
        NOW.plus_seconds(5)
    );
    connector.rerun_failed(7).await.unwrap_err();
    let refused = TokenError::Refused {
        action: action(),
        reason: "the App is gone".to_owned(),
    };
    let connector = provider.connector_with(Arc::new(Without(refused)));
    let error = connector.runs(1).await.unwrap_err();
    assert!(error.to_string().contains("the App is gone"), "{error}");
    connector.git_remote(GitUse::Push).await.unwrap_err();
    assert!(provider.asked().is_empty());
}
