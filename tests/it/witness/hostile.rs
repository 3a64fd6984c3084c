//! Clients that wish the witness ill: bounded time and memory, and others are served.

use std::time::Duration;

use caretaker::witness::{Limits, MAX_BODY};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::io::ReaderStream;

use super::scene::{Place, client, post, served, step};
use crate::log::scene::Stored;
use crate::serve::process::bounded;

/// Sends bytes and reads until the other side ends the connection.
async fn raw(base: &str, bytes: &[u8]) -> String {
    let address = base.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    // It may have seen enough before all of it is sent.
    drop(stream.write_all(bytes).await);
    let mut answer = Vec::new();
    drop(bounded("an answer", stream.read_to_end(&mut answer)).await);
    String::from_utf8_lossy(&answer).into_owned()
}

const BRIEF: Limits = Limits {
    connections: 2,
    patience: Duration::from_millis(300),
};

#[tokio::test]
async fn bodies_without_end_are_given_up() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let (status, _, _) = post(&base, vec![b'x'; MAX_BODY + 1]).await;
    assert_eq!(status, 413);
    let endless = reqwest::Body::wrap_stream(ReaderStream::new(tokio::io::repeat(b'\n')));
    let client = client();
    let sent = client.post(format!("{base}/add-checkpoint")).body(endless);
    // The answer, or the end of the connection while still sending.
    if let Ok(response) = bounded("an answer", sent.send()).await {
        assert_eq!(response.status(), 413);
    }
    let (status, _, _) = post(&base, step(&Stored::of(5), 0, 5)).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn garbage_is_no_http() {
    let place = Place::new();
    let base = served(place.witness(), BRIEF).await;
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        &[0; 10_000],
    ] {
        let answer = raw(&base, bytes).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    let header = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1 << 20));
    let answer = raw(&base, header.as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    let (status, _, _) = post(&base, step(&Stored::of(5), 0, 5)).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn clients_that_say_nothing_do_not_keep_others_away() {
    let place = Place::new();
    let base = served(place.witness(), BRIEF).await;
    let address = base.strip_prefix("http://").unwrap();
    // Twice as many as are served at once: with nothing, with half a request line, with half a body.
    let mut silent = Vec::new();
    for begun in [
        "",
        "POST /add-ch",
        "POST /add-checkpoint HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nold 0\n",
        "",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(begun.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let asked = post(&base, step(&Stored::of(5), 0, 5));
    let (status, _, _) = bounded("an answer", asked).await;
    assert_eq!(status, 200);
    for mut stream in silent {
        let mut rest = Vec::new();
        drop(bounded("the end", stream.read_to_end(&mut rest)).await);
    }
}
