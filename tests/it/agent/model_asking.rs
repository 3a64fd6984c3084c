//! Asking a model by HTTP: what goes out, what is repeated, and what comes of answers that are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use caretaker::agent::builtin::PATIENCE;
use caretaker::agent::model::persist::{NoAnswer, persist};
use caretaker::agent::model::{
    Answer, Class, Conversation, HttpModel, HttpModelError, LanguageModel as _, Limits, ModelError,
    ModelSettings, Protocol, Turn, refusal,
};
use caretaker::clock::{FixedClock, Millis};
use caretaker::https::patience::Patience;
use reqwest::StatusCode;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::embedder::server::{Reply, Server, ok, status};

fn model_with(server: &Server, change: impl FnOnce(&mut ModelSettings)) -> HttpModel {
    let mut settings = ModelSettings {
        protocol: Protocol::Openai,
        name: "m".to_owned(),
        base: server.base().parse().unwrap(),
        key: Some(SecretString::from("sk-key")),
        limits: Limits::default(),
    };
    change(&mut settings);
    let clock = Arc::new(FixedClock::at(Millis(1_800_000_000_000)));
    HttpModel::new(settings, clock).unwrap()
}

fn conversation() -> Conversation {
    Conversation {
        system: "the system text".to_owned(),
        tools: Vec::new(),
        turns: vec![Turn::Ours("my words".to_owned())],
    }
}

fn said() -> Reply {
    ok(
        &json!({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
    )
}

const QUICK: Patience = Patience {
    first_pause: Duration::from_millis(1),
    ..PATIENCE
};

async fn ask(server: &Server, patience: &Patience) -> Result<Answer, ModelError> {
    let model = model_with(server, |_| {});
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    let asked = persist(&model, &conversation(), patience, end, || 0, || true).await;
    asked.map_err(|error| match error {
        NoAnswer::Failed(error) => error,
        NoAnswer::Unallowed => panic!("it was allowed"),
    })
}

async fn failure(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (ModelError, usize) {
    let server = Server::answering(move |number, _| reply(number)).await;
    let error = ask(&server, &QUICK).await.unwrap_err();
    (error, server.requests().len())
}

#[tokio::test]
async fn each_protocol_has_its_address_key_and_version() {
    let server = Server::answering(|_, _| status("418 Teapot", "", "")).await;
    for (protocol, base, name, line, key) in [
        (
            Protocol::Anthropic,
            "",
            "m",
            "post /v1/messages http",
            "x-api-key: sk-key",
        ),
        (
            Protocol::Openai,
            "v1",
            "m",
            "post /v1/chat/completions http",
            "authorization: bearer sk-key",
        ),
        (
            Protocol::Openai,
            "v1///",
            "m",
            "post /v1/chat/completions http",
            "authorization: bearer sk-key",
        ),
        (
            Protocol::Gemini,
            "",
            "a/b?c#d",
            "post /v1beta/models/a%2fb%3fc%23d:generatecontent http",
            "x-goog-api-key: sk-key",
        ),
        (
            Protocol::Ollama,
            "below",
            "m",
            "post /below/api/chat http",
            "authorization: bearer sk-key",
        ),
    ] {
        let model = model_with(&server, |settings| {
            settings.protocol = protocol;
            settings.name = name.to_owned();
            settings.base.set_path(base);
        });
        model.ask(&conversation()).await.unwrap_err();
        let head = server.requests().pop().unwrap().head;
        assert!(head.starts_with(line), "{head}");
        assert!(head.contains(&format!("{key}\r\n")), "{head}");
        let versioned = head.contains("anthropic-version: 2023-06-01\r\n");
        assert_eq!(versioned, protocol == Protocol::Anthropic);
    }
    let model = model_with(&server, |settings| settings.key = None);
    model.ask(&conversation()).await.unwrap_err();
    assert!(
        !server
            .requests()
            .pop()
            .unwrap()
            .head
            .contains("authorization")
    );
}

#[tokio::test]
async fn clear_text_is_for_loopback_only() {
    for address in ["http://models.example/v1", "ftp://127.0.0.1/", "data:x"] {
        let settings = ModelSettings {
            protocol: Protocol::Openai,
            name: "m".to_owned(),
            base: address.parse().unwrap(),
            key: Some(SecretString::from("sk-key")),
            limits: Limits::default(),
        };
        let clock = Arc::new(FixedClock::at(Millis(0)));
        let found = HttpModel::new(settings, clock).unwrap_err();
        assert!(
            matches!(found, HttpModelError::Address { .. }),
            "{address}: {found}"
        );
    }
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_nothing_else_is() {
    let server = Server::answering(|number, _| match number {
        0 => status("529 Overloaded", "", ""),
        1 => status("429 Too Many Requests", "retry-after: 0\r\n", ""),
        2 => status("200 OK", "", "<html>"),
        _ => said(),
    })
    .await;
    let answer = ask(&server, &QUICK).await.unwrap();
    assert_eq!(
        (answer.turn.text.as_str(), server.requests().len()),
        ("hello", 4)
    );

    for (line, expected) in [
        ("500 Internal Server Error", 4),
        ("503 Service Unavailable", 4),
        ("408 Request Timeout", 4),
        ("400 Bad Request", 1),
        ("401 Unauthorized", 1),
        ("403 Forbidden", 1),
        ("404 Not Found", 1),
        ("413 Content Too Large", 1),
        ("204 No Content", 1),
    ] {
        let (error, asked) = failure(move |_| status(line, "", "the provider's words")).await;
        assert_eq!(asked, expected, "{line}");
        assert!(error.detail.contains(&line[..3]), "{error}");
        assert!(!error.to_string().contains("words"), "{error}");
    }
}

/// The key would go along.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::answering(|_, _| said()).await;
    let location = format!("location: {}/chat/completions\r\n", elsewhere.base());
    let (error, asked) = failure(move |_| status("307 Temporary Redirect", &location, "")).await;
    assert_eq!((error.class, asked), (Class::Permanent, 1));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn who_says_when_is_not_asked_before() {
    let server = Server::answering(|number, _| match number {
        0 => status("429 Too Many Requests", "retry-after: 1\r\n", ""),
        _ => said(),
    })
    .await;
    let begin = Instant::now();
    ask(&server, &QUICK).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn who_wants_a_long_pause_is_given_up() {
    let begin = Instant::now();
    let (error, asked) =
        failure(|_| status("429 Too Many Requests", "retry-after: 61\r\n", "")).await;
    assert_eq!(
        (error.class, asked),
        (Class::Wait(Duration::from_secs(61)), 1)
    );
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_model_that_hangs_is_given_up() {
    let server = Server::answering(|_, _| Reply::Silence).await;
    let patience = Patience {
        attempt: Duration::from_millis(20),
        ..QUICK
    };
    let error = ask(&server, &patience).await.unwrap_err();
    assert!(error.detail.contains("no answer within"), "{error}");
    // A request that is given up before it is read is not seen.
    assert!(server.requests().len() <= 4);
}

#[tokio::test]
async fn what_is_not_allowed_is_not_asked() {
    let server = Server::answering(|_, _| status("500 x", "", "")).await;
    let model = model_with(&server, |_| {});
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    let left = AtomicU32::new(2);
    let allow = || {
        let checked = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
        checked.is_ok()
    };
    let asked = persist(&model, &conversation(), &QUICK, end, || 0, allow).await;
    assert!(matches!(asked, Err(NoAnswer::Unallowed)));
    assert_eq!(server.requests().len(), 2);
}

/// The most memory that this process ever had, in kB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_answer_of_gigabytes_is_not_read() {
    let before = peak();
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-length: 8589934592\r\n\r\n{\"choices\":[",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        // What it says about a failure is not read to its end either.
        "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
    ] {
        let (error, asked) = failure(|_| Reply::Flood(head.as_bytes().to_vec())).await;
        assert_eq!((error.class, asked), (Class::Permanent, 1));
    }
    assert!(
        peak() - before < 100_000,
        "{before} kB before, {} after",
        peak()
    );
}

#[tokio::test]
async fn neither_key_nor_words_show_in_errors_or_debugging() {
    let server = Server::answering(|_, _| status("401 Unauthorized", "", "bad key sk-key")).await;
    let model = model_with(&server, |_| {});
    let error = model.ask(&conversation()).await.unwrap_err();
    let shown = format!("{error} {error:?} {model:?}");
    assert!(
        !shown.contains("sk-key") && !shown.contains("words"),
        "{shown}"
    );
    assert_eq!(
        error.to_string(),
        "asking the model openai:m: it answered with status 401; is the key right?"
    );
}

/// What the providers say when money or the day's share is spent, and when to come back.
#[test]
fn limits_that_no_pause_outlasts_are_told_from_those_that_pass() {
    let quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier";
    let delay = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"});
    let gemini = |details: Value| json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}});
    let minute = json!({"violations": [{"quotaId": "GenerateRequestsPerMinute"}]});
    let day = json!({"violations": [{"quotaId": quota}]});
    let cases = [
        (
            json!({"error": {"type": "rate_limit_error"}}),
            None,
            Class::Retry,
        ),
        (
            json!({"error": {"type": "rate_limit_error"}}),
            Some(7),
            Class::Wait(Duration::from_secs(7)),
        ),
        (
            json!({"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}}),
            None,
            Class::Permanent,
        ),
        (
            json!({"error": {"code": "insufficient_quota", "type": "insufficient_quota"}}),
            Some(1),
            Class::Permanent,
        ),
        (
            json!({"error": {"code": "rate_limit_exceeded", "type": "requests"}}),
            Some(1),
            Class::Wait(Duration::from_secs(1)),
        ),
        (
            gemini(json!([minute, delay])),
            Some(7),
            Class::Wait(Duration::from_secs_f64(34.5)),
        ),
        (gemini(json!([day, delay])), None, Class::Permanent),
        (
            gemini(
                json!([{"retryDelay": "-1s"}, {"retryDelay": "1e99s"}, {"retryDelay": 5}, null]),
            ),
            None,
            Class::Retry,
        ),
        (json!("no object"), None, Class::Retry),
    ];
    for (body, after, expected) in cases {
        let after = after.map(Duration::from_secs);
        let found = refusal(
            StatusCode::TOO_MANY_REQUESTS,
            after,
            body.to_string().as_bytes(),
        );
        assert_eq!(found.class, expected, "{body}");
    }
}
