//! Webhooks against a receiver on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use caretaker::clock::Millis;
use caretaker::id::{IncidentId, ProjectId};
use caretaker::incident::NoticeEvent;
use caretaker::notify::{
    ApprovalLink, Notification, Notifier as _, Notifiers, NotifyError, Webhook,
};
use serde_json::{Value, json};
use tokio_util::io::ReaderStream;

/// What a receiver got, by path.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

async fn receive(State(received): State<Received>, request: Request) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let body = axum::body::to_bytes(request.into_body(), 100_000)
        .await
        .unwrap();
    let message = serde_json::from_slice(&body).unwrap();
    received.lock().unwrap().push((path.clone(), message));
    let answer = |status: StatusCode| Response::builder().status(status);
    match path.as_str() {
        "/hang" => std::future::pending().await,
        "/endless" => {
            let body = Body::from_stream(ReaderStream::new(tokio::io::repeat(b'x')));
            answer(StatusCode::OK).body(body).unwrap()
        }
        "/silent" => {
            let (ours, theirs) = tokio::io::duplex(1);
            // Never written to and never closed.
            std::mem::forget(theirs);
            let body = Body::from_stream(ReaderStream::new(ours));
            answer(StatusCode::OK).body(body).unwrap()
        }
        "/moved" => answer(StatusCode::TEMPORARY_REDIRECT)
            .header(header::LOCATION, "/ok")
            .body(Body::empty())
            .unwrap(),
        other => {
            let status = other.trim_start_matches('/').parse().unwrap_or(204);
            answer(StatusCode::from_u16(status).unwrap())
                .body(Body::from(body))
                .unwrap()
        }
    }
}

/// A receiver; its base address.
async fn receiver() -> (String, Received) {
    let received = Received::default();
    let service = Router::new()
        .fallback(receive)
        .with_state(Arc::clone(&received));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, service).await });
    (base, received)
}

fn webhook(address: &str, deadline: Duration) -> Webhook {
    Webhook::new(address.parse().unwrap(), deadline).unwrap()
}

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(200);

fn incident() -> IncidentId {
    IncidentId::new(Millis(1), [1; 10])
}

fn project() -> ProjectId {
    ProjectId::new(Millis(1), [2; 10])
}

fn opened() -> Notification {
    Notification::new(
        NoticeEvent::IncidentOpened,
        Some(incident()),
        Some(project()),
        "CI fails on main",
    )
}

fn asking() -> Notification {
    let link = ApprovalLink {
        url: "http://127.0.0.1:8080/a/TOKEN".to_owned().into(),
        digest: "ab".repeat(32).parse().unwrap(),
        expires_at: Millis(1_767_600_000_000),
    };
    Notification::approval_requested(incident(), project(), "please look", link)
}

#[tokio::test]
async fn a_message_arrives_once_as_the_documented_json() {
    let (base, received) = receiver().await;
    let notifiers = Notifiers::new(vec![Box::new(webhook(&format!("{base}/204"), LONG))]);
    notifiers.deliver(&opened()).await.unwrap();
    notifiers.deliver(&asking()).await.unwrap();
    let messages: Vec<Value> = received
        .lock()
        .unwrap()
        .iter()
        .map(|(_, message)| message.clone())
        .collect();
    assert_eq!(
        messages,
        [
            json!({"event": "incident-opened", "incident": incident(), "project": project(), "text": "CI fails on main"}),
            json!({"event": "approval-requested", "incident": incident(), "project": project(), "text": "please look",
                "approval_url": "http://127.0.0.1:8080/a/TOKEN", "digest": "ab".repeat(32), "expires_at": "2026-01-05T08:00:00Z"}),
        ]
    );
}

#[tokio::test]
async fn refusals_are_told_from_bad_moments() {
    let (base, _) = receiver().await;
    for (status, transient) in [
        (400, false),
        (401, false),
        (404, false),
        (408, true),
        (410, false),
        (429, true),
        (500, true),
        (503, true),
    ] {
        let error = webhook(&format!("{base}/{status}"), LONG)
            .notify(&opened())
            .await
            .unwrap_err();
        assert_eq!(error.is_transient(), transient, "{error}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_since_the_message_may_carry_a_link() {
    let (base, received) = receiver().await;
    let error = webhook(&format!("{base}/moved"), LONG)
        .notify(&asking())
        .await
        .unwrap_err();
    assert!(matches!(error, NotifyError::Refused { status: 307, .. }));
    assert_eq!(received.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_receiver_that_hangs_is_given_up_at_the_deadline() {
    let (base, _) = receiver().await;
    let error = webhook(&format!("{base}/hang"), SHORT)
        .notify(&opened())
        .await
        .unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("200 ms"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let (base, _) = receiver().await;
    // Break it: let `swallow` read on; the message is then taken after a minute instead of at once.
    let endless = webhook(&format!("{base}/endless"), LONG);
    tokio::time::timeout(Duration::from_secs(30), endless.notify(&opened()))
        .await
        .unwrap()
        .unwrap();
    // The status has come: the message is taken, even when the rest never does.
    webhook(&format!("{base}/silent"), SHORT)
        .notify(&opened())
        .await
        .unwrap();
}

#[tokio::test]
async fn one_receiver_that_fails_does_not_keep_the_message_from_the_others() {
    let (base, received) = receiver().await;
    let to = |path: &str| -> Box<dyn caretaker::notify::Notifier> {
        Box::new(webhook(&format!("{base}{path}"), LONG))
    };
    let notifiers = Notifiers::new(vec![to("/404"), to("/500"), to("/200")]);
    let error = notifiers.deliver(&opened()).await.unwrap_err();
    assert_eq!((error.failures.len(), error.is_transient()), (2, true));
    assert_eq!(received.lock().unwrap().len(), 3);
    assert!(Notifiers::default().deliver(&opened()).await.is_ok());
}

#[tokio::test]
async fn no_secret_of_address_or_message_shows_in_errors_or_debugging() {
    // Nobody listens on port 1; `user` and `hunter2` would be credentials.
    let address = "http://user:hunter2@127.0.0.1:1/services/T0K3N?key=k3y";
    let webhook = webhook(address, LONG);
    let error = webhook.notify(&asking()).await.unwrap_err();
    assert!(error.is_transient());
    let shown = format!("{error} {error:?} {webhook:?} {:?}", asking());
    for secret in ["hunter2", "T0K3N", "k3y", "user", "/a/TOKEN"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(shown.contains("http://127.0.0.1:1/…"), "{shown}");
}

#[test]
fn a_deadline_of_zero_is_refused() {
    let error = Webhook::new("http://127.0.0.1:1/".parse().unwrap(), Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("longer than zero"), "{error}");
}
