//! An HTTP server that answers a POST with exactly the bytes that a test says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// What a connection gets.
pub(crate) enum Reply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then more of the same until nobody reads.
    Endless(Vec<u8>),
    /// Nothing, and no end either.
    Silence,
}

/// A whole answer.
pub(crate) fn answer(status: &str, body: &[u8]) -> Reply {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/timestamp-reply\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    Reply::Bytes([head.as_bytes(), body].concat())
}

pub(crate) struct Server {
    address: SocketAddr,
    /// Head and body of each request.
    requests: Arc<Mutex<Vec<(String, Vec<u8>)>>>,
}

impl Server {
    /// Answers each request, of which `reply` sees the body.
    pub(crate) async fn start(reply: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (Arc::clone(&requests), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                tokio::spawn(async move {
                    let mut stream = stream;
                    let (head, body) = request(&mut stream).await;
                    let reply = reply(&body);
                    seen.lock().unwrap().push((head, body));
                    serve(stream, reply).await;
                });
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://{}/stamp", self.address).parse().unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<(String, Vec<u8>)> {
        self.requests.lock().unwrap().clone()
    }
}

async fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    (head, body)
}

async fn serve(mut stream: TcpStream, reply: Reply) {
    // Whoever asked may have gone: that is what some of these tests are about.
    match reply {
        Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        Reply::Endless(bytes) => while stream.write_all(&bytes).await.is_ok() {},
        Reply::Silence => drop(stream.read_u8().await),
    }
}
