//! Asking an embedder by HTTP: what goes out, and what comes of every kind of answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use caretaker::clock::SystemClock;
use caretaker::embedder::http::{HttpEmbedder, HttpEmbedderError};
use caretaker::embedder::{EmbedError, Embedder as _};
use caretaker::intent::Outage;
use serde_json::json;

use super::server::{Reply, Server, ok, openai, status};

fn good() -> Reply {
    ok(&openai(&[(0, vec![0.6, 0.8])]))
}

async fn failure(
    reply: impl Fn(usize, &[String]) -> Reply + Send + Sync + 'static,
) -> (EmbedError, usize) {
    let server = Server::start(reply).await;
    let error = server.embedder().embed(&["text"]).await.unwrap_err();
    (error, server.requests().len())
}

#[tokio::test]
async fn a_batch_is_one_request_with_key_model_and_texts() {
    let server = Server::start(|_, texts| {
        let vectors = texts.iter().enumerate().rev();
        ok(&openai(
            &vectors
                .map(|(index, text)| (index, vec![if text == "one" { 1.0 } else { 2.0 }]))
                .collect::<Vec<_>>(),
        ))
    })
    .await;
    let embedder = server.embedder();
    assert_eq!(embedder.dimension(), None);
    let vectors = embedder.embed(&["one", "two"]).await.unwrap();
    assert_eq!(vectors, [[1.0], [2.0]]);
    assert_eq!(embedder.dimension(), Some(1));
    let [request] = &server.requests()[..] else {
        panic!("not one request");
    };
    assert!(request.head.starts_with("post /v1/embeddings http/1.1\r\n"));
    assert!(request.head.contains("authorization: bearer sk-key\r\n"));
    assert!(request.head.contains("content-type: application/json\r\n"));
    assert!(!request.head.contains("openai-organization"));
    assert_eq!(
        request.body,
        json!({"model": "text-embedding-3-small", "input": ["one", "two"]})
    );
    assert!(embedder.embed(&[]).await.unwrap().is_empty());
    assert_eq!(server.requests().len(), 1, "for nothing nobody is asked");
}

#[tokio::test]
async fn an_organisation_is_named_and_a_key_is_left_out_as_configured() {
    let server = Server::start(|_, _| good()).await;
    let embedder = server.embedder_with(|settings| {
        settings.organisation = Some("org-7".to_owned());
        settings.key = None;
        settings.base = format!("{}///", server.base()).parse().unwrap();
    });
    embedder.embed(&["text"]).await.unwrap();
    let request = server.requests().remove(0);
    assert!(
        request.head.starts_with("post /v1/embeddings "),
        "{}",
        request.head
    );
    assert!(request.head.contains("openai-organization: org-7\r\n"));
    assert!(!request.head.contains("authorization"));
}

#[tokio::test]
async fn clear_text_is_for_loopback_only() {
    let server = Server::start(|_, _| good()).await;
    for address in ["http://embedder.example/v1", "ftp://127.0.0.1/", "data:x"] {
        let mut found = None;
        server.embedder_with(|settings| {
            let mut settings = settings.clone();
            settings.base = address.parse().unwrap();
            found = HttpEmbedder::new(settings, Arc::new(SystemClock), || 0).err();
        });
        assert!(
            matches!(found, Some(HttpEmbedderError::Address { .. })),
            "{address}: {found:?}"
        );
    }
}

#[tokio::test]
async fn no_key_shows_in_errors_or_debugging() {
    let server = Server::start(|_, _| status("401 Unauthorized", "", "bad key sk-key")).await;
    let embedder = server.embedder();
    let error = embedder.embed(&["my text"]).await.unwrap_err();
    assert_eq!(error.outage, Outage::Refused);
    let shown = format!("{error} {error:?} {embedder:?}");
    assert!(
        !shown.contains("sk-key") && !shown.contains("my text"),
        "{shown}"
    );
    assert_eq!(
        error.to_string(),
        "asking the embedder openai:text-embedding-3-small: it answered with status 401; is the key right?"
    );
}

#[tokio::test]
async fn what_may_pass_is_asked_again_and_nothing_else_is() {
    let server = Server::start(|number, _| match number {
        0 => status("503 Service Unavailable", "", ""),
        1 => status("429 Too Many Requests", "retry-after: 0\r\n", ""),
        _ => good(),
    })
    .await;
    let vectors = server.embedder().embed(&["text"]).await.unwrap();
    assert_eq!((vectors.len(), server.requests().len()), (1, 3));

    let (error, asked) = failure(|_, _| status("500 Internal Server Error", "", "secret")).await;
    assert_eq!((error.outage, asked), (Outage::Failing, 3));
    assert!(!error.to_string().contains("secret"));
    let (error, asked) = failure(|_, _| status("400 Bad Request", "", "")).await;
    assert_eq!((error.outage, asked), (Outage::Refused, 1));
    let (error, asked) = failure(|_, _| {
        status(
            "307 Temporary Redirect",
            "location: http://127.0.0.1:1/\r\n",
            "",
        )
    })
    .await;
    assert_eq!((error.outage, asked), (Outage::Redirected, 1));
    let (error, asked) = failure(|_, _| status("204 No Content", "", "")).await;
    assert_eq!((error.outage, asked), (Outage::Redirected, 1));
}

#[tokio::test]
async fn who_is_told_to_come_back_after_the_deadline_gives_up_at_once() {
    let begin = Instant::now();
    let (error, asked) =
        failure(|_, _| status("429 Too Many Requests", "retry-after: 3600\r\n", "")).await;
    assert_eq!((error.outage, asked), (Outage::RateLimited, 1));
    assert!(begin.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_embedder_that_hangs_is_given_up() {
    let server = Server::start(|_, _| Reply::Silence).await;
    let embedder = server.embedder_with(|settings| {
        settings.patience.deadline = Duration::from_millis(60);
        settings.patience.attempt = Duration::from_millis(25);
    });
    let begin = Instant::now();
    let error = embedder.embed(&["text"]).await.unwrap_err();
    assert_eq!(error.outage, Outage::Deadline);
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(
        server.requests().len() >= 2,
        "an attempt is shorter than all of it"
    );
}

#[tokio::test]
async fn an_embedder_that_is_not_there_is_unreachable() {
    let server = Server::start(|_, _| good()).await;
    let embedder = server.embedder_with(|settings| {
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        settings.base = format!("http://{address}/v1").parse().unwrap();
    });
    let error = embedder.embed(&["text"]).await.unwrap_err();
    assert_eq!(error.outage, Outage::Unreachable);
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
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8589934592\r\n\r\n{\"data\":[";
    let (error, asked) = failure(move |_, _| Reply::Flood(head.as_bytes().to_vec())).await;
    assert_eq!((error.outage, asked), (Outage::Oversized, 1));
    // Without a length, in pieces.
    let chunked = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    let (error, _) = failure(move |_, _| Reply::Flood(chunked.as_bytes().to_vec())).await;
    assert_eq!(error.outage, Outage::Oversized);
    assert!(
        peak() - before < 100_000,
        "{before} kB before, {} after",
        peak()
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_garbage_is_none() {
    let (error, asked) = failure(|_, _| {
        Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\"".to_vec())
    })
    .await;
    assert_eq!((error.outage, asked), (Outage::Unreachable, 3));
    let (error, _) = failure(|_, _| Reply::Bytes(b"\0\0garbage".to_vec())).await;
    assert_eq!(error.outage, Outage::Unreachable);
    let (error, asked) = failure(|_, _| status("200 OK", "", "<html>")).await;
    assert_eq!((error.outage, asked), (Outage::Malformed, 1));
    let (error, _) = failure(|_, _| ok(&openai(&[]))).await;
    assert_eq!(error.outage, Outage::Count);
    let (error, _) = failure(|_, _| ok(&json!({"data": [{"embedding": [null, 1]}]}))).await;
    assert_eq!(error.outage, Outage::NonFinite);
}

#[tokio::test]
async fn the_first_dimension_stays_the_dimension() {
    let server = Server::start(|number, _| ok(&openai(&[(0, vec![1.0; number + 2])]))).await;
    let embedder = server.embedder();
    embedder.embed(&["text"]).await.unwrap();
    let error = embedder.embed(&["text"]).await.unwrap_err();
    assert_eq!(error.outage, Outage::Dimension);
    assert_eq!(embedder.dimension(), Some(2));
}

#[tokio::test]
async fn ollama_is_asked_in_the_same_form() {
    // As Ollama answers at /v1/embeddings: integers, no usage of its own words.
    let server = Server::start(|_, texts| {
        let data: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(index, _)| json!({"object": "embedding", "embedding": [1, 0, -0.25], "index": index}))
            .collect();
        ok(&json!({"object": "list", "data": data, "model": "nomic-embed-text"}))
    })
    .await;
    let embedder = server.embedder_with(|settings| {
        settings.id = "ollama:nomic-embed-text".parse().unwrap();
        settings.model = "nomic-embed-text".to_owned();
    });
    let vectors = embedder.embed(&["a", "b"]).await.unwrap();
    assert_eq!(vectors, [[1.0, 0.0, -0.25], [1.0, 0.0, -0.25]]);
    assert_eq!(server.requests()[0].body["model"], "nomic-embed-text");
}
