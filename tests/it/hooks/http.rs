//! `POST /webhooks/github`: what is taken, what is refused, and what a sender without the secret can cost.

use std::time::{Duration, Instant};

use axum::http::Method;
use caretaker::web::serve;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_util::io::ReaderStream;

use super::*;

/// The largest body that the hosting service sends.
const LARGEST: u64 = 25 << 20;

/// So many bytes that never were in memory together.
fn long_body(length: u64) -> Body {
    Body::from_stream(ReaderStream::new(tokio::io::repeat(b' ').take(length)))
}

/// The router behind a real socket, until it is dropped.
struct Server {
    address: std::net::SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Server {
    async fn start(state: WebState) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listener, state, async move {
            let _ended = stopped.await;
        }));
        Self {
            address,
            _stop: stop,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a delivery over a connection of its own; status line and body of the answer.
    async fn deliver(&self, event: &str, id: &str, signature: &str, body: &[u8]) -> String {
        let mut connection = self.connect().await;
        let head = head(event, id, signature, body.len());
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(body).await.unwrap();
        all(&mut connection).await
    }
}

fn head(event: &str, id: &str, signature: &str, length: usize) -> String {
    format!(
        "POST /webhooks/github HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-GitHub-Event: {event}\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: {signature}\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// What comes until the server closes, at most for a minute.
async fn all(connection: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let reading = connection.read_to_end(&mut answer);
    let ended = tokio::time::timeout(Duration::from_mins(1), reading).await;
    let _closed_or_reset = ended.expect("the server goes on waiting");
    String::from_utf8(answer).unwrap()
}

on_both! {
    /// The story of the issue, over a real connection.
    async fn a_signed_delivery_hints_once_and_an_older_version_never(world) {
        let server = Server::start(world.state(Some(webhooks()))).await;
        let send = async |number: u64, body: Vec<u8>| {
            server.deliver("workflow_run", &guid(number), &signed(SECRET, &body), &body).await
        };
        let completed = run(1, 1, after(-60), "completed");
        let hinted = send(1, completed.clone()).await;
        assert!(hinted.starts_with("HTTP/1.1 202 "), "{hinted}");
        assert!(hinted.contains("\"hinted\"") && hinted.contains("content-security-policy"), "{hinted}");
        assert_eq!(world.hinted_at().await, Some(NOW.0));

        world.clock.advance_millis(1_000);
        let replayed = send(1, completed.clone()).await;
        assert!(replayed.starts_with("HTTP/1.1 202 ") && replayed.contains("\"known\""), "{replayed}");
        let older = send(2, run(1, 1, after(-90), "in_progress")).await;
        assert!(older.starts_with("HTTP/1.1 202 ") && older.contains("\"stale\""), "{older}");
        let nobody = send(3, run(99, 1, after(-60), "completed")).await;
        assert!(nobody.starts_with("HTTP/1.1 202 ") && nobody.contains("\"unwatched\""), "{nobody}");
        let body = run(1, 9, after(0), "completed");
        let star = server.deliver("star", &guid(4), &signed(SECRET, &body), &body).await;
        assert!(star.starts_with("HTTP/1.1 202 ") && star.contains("\"noted\""), "{star}");
        assert_eq!(world.hinted_at().await, Some(NOW.0));

        let newer = send(5, run(1, 2, after(0), "queued")).await;
        assert!(newer.contains("\"hinted\""), "{newer}");
        assert_eq!(world.hinted_at().await, Some(after(1).0));
    }

    async fn a_wrong_signature_changes_nothing(world) {
        let router = world.router();
        let body = run(1, 1, NOW, "completed");
        let right = signed(SECRET, &body);
        let padded = [body.as_slice(), b" "].concat();
        let wrong = [
            (signed("another secret", &body), body.clone()),
            (signed(SECRET, &padded), body.clone()),
            (right.clone(), padded),
            (right.replace("sha256=", "sha1="), body.clone()),
            (right[..70].to_owned(), body.clone()),
            (String::new(), body.clone()),
            // Not even looked at.
            (signed("another secret", b"\xff["), b"\xff[".to_vec()),
        ];
        for (number, (signature, body)) in (1..).zip(wrong) {
            let sent = request("workflow_run", &guid(number), &signature, body);
            let (status, document) = answer(&router, sent).await;
            assert_eq!(status, 401, "{document}");
            assert!(document["mend"].as_str().unwrap().contains("github.webhook_secret"));
        }
        assert_eq!(world.store.last_hook_delivery().await.unwrap(), None);
        assert_eq!(world.hinted_at().await, None);
        let (status, _) = answer(&router, request("workflow_run", &guid(1), &right, body)).await;
        assert_eq!(status, 202);
    }

    /// Headers are not signed: whoever captured a delivery can send it as another one, or as another event.
    async fn a_replay_under_another_identifier_hints_nobody(world) {
        let router = world.router();
        let body = json!({"ref": "refs/heads/main", "after": "6113728f27ae82c7b1a177c8d03f9e96e0adf246", "repository": {"id": 1}});
        let body = body.to_string().into_bytes();
        let signature = signed(SECRET, &body);
        let (_, first) = answer(&router, request("push", &guid(1), &signature, body.clone())).await;
        assert_eq!(first["delivery"], "hinted");
        for (number, event) in [(2, "push"), (3, "repository"), (4, "check_run")] {
            let upper = signature.to_uppercase().replace("SHA256", "sha256");
            let replayed = request(event, &guid(number), &upper, body.clone());
            let (status, document) = answer(&router, replayed).await;
            assert_eq!((status, &document["delivery"]), (202, &json!("known")), "{event}");
        }
    }
}

#[tokio::test]
async fn what_the_service_does_not_send_so_is_refused_with_the_mend_and_notes_nothing() {
    let world = World::sqlite().await;
    let router = world.router();
    let body = run(1, 1, NOW, "completed");
    let signature = signed(SECRET, &body);
    let altered = |name: &'static str, value: Option<&str>| {
        let mut request = request("push", &guid(1), &signature, body.clone());
        match value {
            Some(value) => drop(request.headers_mut().insert(name, value.parse().unwrap())),
            None => drop(request.headers_mut().remove(name)),
        }
        request
    };
    let long = "a".repeat(100);
    for (name, value, expected) in [
        (
            "content-type",
            Some("application/x-www-form-urlencoded"),
            415,
        ),
        ("content-type", None, 415),
        ("x-github-delivery", None, 400),
        ("x-github-delivery", Some("one"), 400),
        ("x-github-delivery", Some(&long), 400),
        ("x-github-event", None, 400),
        ("x-github-event", Some("Push It"), 400),
        ("x-github-event", Some(&long), 400),
        ("x-hub-signature-256", None, 401),
    ] {
        let (status, document) = answer(&router, altered(name, value)).await;
        assert_eq!(status, expected, "{name}: {document}");
        assert!(document["mend"].as_str().unwrap().len() > 20, "{name}");
    }
    let (_, form) = answer(&router, altered("content-type", Some("text/plain"))).await;
    assert_eq!(
        form["mend"],
        "Set the webhook's content type to application/json."
    );
    for (number, body) in [&b""[..], b"[]", b"{\"repository\": {\"id\": -1}}", b"\xff"]
        .iter()
        .enumerate()
    {
        let sent = request(
            "push",
            &guid(number as u64),
            &signed(SECRET, body),
            body.to_vec(),
        );
        let (status, document) = answer(&router, sent).await;
        assert_eq!(status, 400, "{document}");
    }
    assert_eq!(world.store.last_hook_delivery().await.unwrap(), None);
    let charset = altered("content-type", Some("application/json; charset=utf-8"));
    assert_eq!(answer(&router, charset).await.0, 202);
}

#[tokio::test]
async fn nothing_but_post_is_taken_and_nothing_at_all_without_a_secret() {
    use tower::ServiceExt as _;
    let world = World::sqlite().await;
    let without = caretaker::web::router(world.state(None));
    for method in [
        Method::GET,
        Method::HEAD,
        Method::PUT,
        Method::DELETE,
        Method::OPTIONS,
    ] {
        let mut sent = request("push", &guid(1), "", "");
        *sent.method_mut() = method.clone();
        let (status, _) = answer(&world.router(), sent).await;
        assert_eq!(status, 405, "{method}");
    }
    let asked = Request::get("/webhooks/github")
        .body(Body::empty())
        .unwrap();
    assert_eq!(answer(&without, asked).await.0, 404);
    let sent = request("push", &guid(1), &signed("", b"{}"), "{}");
    let response = without.oneshot(sent).await.unwrap();
    assert_eq!(response.status(), 404);
    assert!(response.headers().contains_key("content-security-policy"));
}

#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_unread() {
    let world = World::sqlite().await;
    let server = Server::start(world.state(Some(webhooks()))).await;
    let mut connection = server.connect().await;
    let length = usize::try_from(LARGEST).unwrap() + 1;
    let head = head("push", &guid(1), &signed(SECRET, b""), length);
    // Nothing of the body is ever sent.
    connection.write_all(head.as_bytes()).await.unwrap();
    let answer = all(&mut connection).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_body_without_an_announced_length_is_cut_at_the_limit() {
    let world = World::sqlite().await;
    let router = world.router();
    let without_end = request("push", &guid(1), &signed(SECRET, b""), long_body(u64::MAX));
    assert_eq!(answer(&router, without_end).await.0, 413);
    // The largest one that is allowed is read, and checked.
    let largest = request("push", &guid(1), &signed(SECRET, b""), long_body(LARGEST));
    assert_eq!(answer(&router, largest).await.0, 401);
    let one_more = request(
        "push",
        &guid(1),
        &signed(SECRET, b""),
        long_body(LARGEST + 1),
    );
    assert_eq!(answer(&router, one_more).await.0, 413);
}

/// On a real connection: a byte now and then keeps it alive, and does not keep it for ever.
#[tokio::test]
async fn a_body_that_trickles_in_is_given_up() {
    let world = World::sqlite().await;
    let hooks = webhooks().limited(Duration::from_millis(300), 1 << 20);
    let server = Server::start(world.state(Some(hooks))).await;
    let start = Instant::now();
    let (mut reading, mut writing) = server.connect().await.into_split();
    let head = head("push", &guid(1), &signed(SECRET, b""), 1_000_000);
    writing.write_all(head.as_bytes()).await.unwrap();
    let trickling = tokio::spawn(async move {
        let mut pause = tokio::time::interval(Duration::from_millis(20));
        while writing.write_all(b" ").await.is_ok() {
            pause.tick().await;
        }
    });
    let mut answer = [0; 12];
    let read = tokio::time::timeout(Duration::from_mins(1), reading.read_exact(&mut answer));
    read.await.expect("it waits for ever").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    assert!(start.elapsed() >= Duration::from_millis(300));
    trickling.abort();
    // Who waits for the first byte only waits as long.
    let mut silent = server.connect().await;
    silent.write_all(head.as_bytes()).await.unwrap();
    assert!(all(&mut silent).await.starts_with("HTTP/1.1 408 "));
}

/// The memory is for what has arrived: a body that stands still holds what it sent, and gives it back.
#[tokio::test]
async fn bodies_that_stand_still_hold_up_nobody_who_finds_room() {
    let world = World::sqlite().await;
    let hooks = webhooks().limited(Duration::from_mins(1), 96 << 10);
    let router = caretaker::web::router(world.state(Some(hooks)));
    let (mut sending, arriving) = tokio::io::duplex(1 << 10);
    let still = request(
        "push",
        &guid(1),
        &signed(SECRET, b""),
        Body::from_stream(ReaderStream::new(arriving)),
    );
    let standing = tokio::spawn({
        let router = router.clone();
        async move { answer(&router, still).await }
    });
    // Room for 64 KiB of 96 is taken once all of this has been read.
    sending.write_all(&vec![b' '; 35 << 10]).await.unwrap();
    let large = || {
        let body = vec![b' '; 40 << 10];
        request("star", &guid(2), &signed(SECRET, &body), body)
    };
    let small = || {
        let body = b"{\"small\": 1}";
        request("star", &guid(3), &signed(SECRET, body), &body[..])
    };
    let (status, document) = answer(&router, large()).await;
    assert_eq!(status, 503, "{document}");
    assert!(document["mend"].as_str().unwrap().contains("polling finds"));
    assert_eq!(answer(&router, small()).await.0, 202);
    drop(sending);
    assert_eq!(standing.await.unwrap().0, 401);
    // Signed and read, although it is no JSON.
    assert_eq!(answer(&router, large()).await.0, 400);
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_largest_bodies_fit_into_the_memory_for_them() {
    let world = World::sqlite().await;
    let router = world.router();
    let before = peak();
    let sending: Vec<_> = (0..100)
        .map(|number| {
            let router = router.clone();
            let sent = request(
                "push",
                &guid(number),
                &signed(SECRET, b""),
                long_body(LARGEST),
            );
            tokio::spawn(async move { answer(&router, sent).await.0 })
        })
        .collect();
    let mut statuses = std::collections::BTreeMap::new();
    for sent in sending {
        *statuses.entry(sent.await.unwrap()).or_insert(0) += 1;
    }
    // All of them together would take 2500 MiB.
    let grown = (peak() - before) / 1024;
    assert!(grown < 200, "{grown} MiB: {statuses:?}");
    let known = statuses.keys().all(|status| matches!(status, 401 | 503));
    assert!(known && statuses[&401] > 0, "{statuses:?}");
}

/// GitHub's own examples, as it sends them: every one is taken.
#[tokio::test]
async fn every_example_of_github_is_taken() {
    let Some(document) = crate::support::corpus("github/webhook-examples.json") else {
        return;
    };
    let world = World::sqlite().await;
    let router = world.router();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let mut taken = 0;
    for event in document["events"].as_array().unwrap() {
        let name = event["name"].as_str().unwrap();
        for example in event["examples"].as_array().unwrap() {
            let body = example.to_string().into_bytes();
            let sent = request(name, &guid(taken), &signed(SECRET, &body), body);
            let (status, document) = answer(&router, sent).await;
            assert_eq!(status, 202, "{name}: {document}");
            taken += 1;
        }
    }
    assert_eq!(taken, 149);
}
