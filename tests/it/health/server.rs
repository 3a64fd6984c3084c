//! A server that answers exactly what a test says, byte for byte.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What a connection gets.
pub(super) enum Reply {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then more of the same until nobody reads.
    Endless(Vec<u8>),
    /// These bytes, then nothing, and no end either.
    Silence(Vec<u8>),
}

/// A whole answer.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    );
    Reply::Bytes(text.into_bytes())
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers each request, of which `reply` sees the head.
    pub(super) async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::at(IpAddr::from([127, 0, 0, 1]), reply).await
    }

    pub(super) async fn at(
        host: IpAddr,
        reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((host, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (Arc::clone(&requests), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
                tokio::spawn(async move {
                    let mut stream = stream;
                    let head = head(&mut stream).await;
                    seen.lock().unwrap().push(head.clone());
                    serve(stream, reply(&head)).await;
                });
            }
        });
        Self { address, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The heads of the requests that came.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

async fn serve(mut stream: TcpStream, reply: Reply) {
    // Whoever asked may have gone: that is what some of these tests are about.
    match reply {
        Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        Reply::Endless(bytes) => while stream.write_all(&bytes).await.is_ok() {},
        Reply::Silence(bytes) => {
            drop(stream.write_all(&bytes).await);
            drop(stream.read_u8().await);
        }
    }
}
