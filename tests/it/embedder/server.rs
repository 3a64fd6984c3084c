//! An embedder on loopback that answers as a test says, in the form of `OpenAI`'s and Ollama's interface.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caretaker::clock::{FixedClock, Millis};
use caretaker::embedder::http::{HttpEmbedder, HttpEmbedderSettings, Patience};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What a request gets.
pub(crate) enum Reply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then zeros until nobody reads any more, or so many gigabytes.
    Flood(Vec<u8>),
    /// Nothing, and no end either.
    Silence,
}

/// An answer with a status, headers and a body.
pub(crate) fn status(line: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::Bytes(
        format!("HTTP/1.1 {line}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .into_bytes(),
    )
}

/// An answer that is as it should be but for its body.
pub(crate) fn ok(body: &Value) -> Reply {
    status(
        "200 OK",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// `OpenAI`'s form.
pub(crate) fn openai(vectors: &[(usize, Vec<f64>)]) -> Value {
    let data: Vec<Value> = vectors
        .iter()
        .map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    json!({"object": "list", "data": data, "model": "text-embedding-3-small", "usage": {"prompt_tokens": 8, "total_tokens": 8}})
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Its first line and headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: Value,
}

pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request; `reply` gets its number from 0 and its texts.
    pub(crate) async fn start(
        reply: impl Fn(usize, &[String]) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::answering(move |number, request| {
            let texts: Vec<String> = serde_json::from_value(request.body["input"].clone()).unwrap();
            reply(number, &texts)
        })
        .await
    }

    /// Answers each request; `reply` gets its number from 0 and all of it.
    pub(crate) async fn answering(
        reply: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (Arc::clone(&requests), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                tokio::spawn(async move {
                    let mut stream = stream;
                    let Some(request) = read(&mut stream).await else {
                        return;
                    };
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    serve(stream, reply(number, &request)).await;
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// A client of this server with little patience, whose pauses are always the shortest.
    pub(crate) fn embedder(&self) -> HttpEmbedder {
        self.embedder_with(|_| {})
    }

    pub(crate) fn embedder_with(
        &self,
        change: impl FnOnce(&mut HttpEmbedderSettings),
    ) -> HttpEmbedder {
        let mut settings = HttpEmbedderSettings {
            id: "openai:text-embedding-3-small".parse().unwrap(),
            model: "text-embedding-3-small".to_owned(),
            base: Url::parse(&self.base()).unwrap(),
            key: Some(SecretString::from("sk-key")),
            organisation: None,
            patience: Patience {
                deadline: Duration::from_secs(20),
                attempt: Duration::from_secs(10),
                attempts: 3,
                first_pause: Duration::from_millis(2),
                longest_pause: Duration::from_millis(5),
            },
        };
        change(&mut settings);
        let clock = Arc::new(FixedClock::at(Millis(1_800_000_000_000)));
        HttpEmbedder::new(settings, clock, || 0).unwrap()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_lowercase();
    let length = lower
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length?.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Request { head: lower, body })
}

async fn serve(mut stream: TcpStream, reply: Reply) {
    // Whoever asked may have gone: that is what some of these tests are about.
    match reply {
        Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        Reply::Flood(bytes) => {
            let mut left = 8_u64 << 30;
            let zeros = vec![b'0'; 64 * 1024];
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
            while left > 0 && stream.write_all(&zeros).await.is_ok() {
                left -= zeros.len() as u64;
            }
        }
        Reply::Silence => drop(stream.read_u8().await),
    }
}
