//! A provider that answers as a test says, byte by byte where it must, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use caretaker::clock::{FixedClock, Millis};
use caretaker::connector::github::credential::{PersonalToken, TokenSource};
use caretaker::connector::github::{GithubClient, GithubConnector, GithubOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const TOKEN: &str = "ghs_not-a-real-token";
pub(crate) const NOW: Millis = Millis(1_800_000_000_000);

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query as sent.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    /// The path below the repository, by name or by number, without its query.
    pub(crate) fn tail(&self) -> &str {
        let path = self.target.split('?').next().unwrap_or_default();
        path.strip_prefix("/api/v3/repos/octo/widget")
            .or_else(|| path.strip_prefix("/api/v3/repositories/42"))
            .unwrap_or(path)
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    pub(crate) fn query(&self, name: &str) -> Option<String> {
        let url = url::Url::parse(&format!("http://x{}", self.target)).ok()?;
        let found = url.query_pairs().find(|(key, _)| key == name)?;
        Some(found.1.into_owned())
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, further headers, body.
    Plain(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// Nothing, for ever.
    Silence,
    /// A body without end.
    Endless,
}

pub(crate) fn json(status: u16, body: &Value) -> Reply {
    Reply::Plain(status, Vec::new(), body.to_string().into_bytes())
}

pub(crate) fn with_headers(status: u16, headers: &[(&'static str, &str)], body: &Value) -> Reply {
    let headers = headers
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    Reply::Plain(status, headers, body.to_string().into_bytes())
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server on loopback for as long as the test's runtime lives.
pub(crate) struct Provider {
    pub(crate) origin: String,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) client: GithubClient,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Provider {
    pub(crate) async fn start(answers: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Arc<Answers> = Arc::new(answers);
        let record = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&answers), Arc::clone(&record)));
            }
        });
        let clock = Arc::new(FixedClock::at(NOW));
        Self {
            origin,
            // Without randomness nothing pauses before it is repeated.
            client: GithubClient::new(clock.clone(), || 0),
            clock,
            asked,
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often something was asked with a method.
    pub(crate) fn count(&self, method: &str) -> usize {
        let asked = self.asked();
        asked.iter().filter(|asked| asked.method == method).count()
    }

    pub(crate) fn options(&self) -> GithubOptions {
        GithubOptions {
            api_url: format!("{}/api/v3", self.origin),
            web_url: self.origin.clone(),
            git_url: self.origin.clone(),
            owner: "octo".to_owned(),
            name: "widget".to_owned(),
            credential: Arc::new(PersonalToken::new(TOKEN.into())),
            expected_repository_id: Some("42".to_owned()),
            deadline: Duration::from_secs(20),
        }
    }

    pub(crate) fn connector(&self) -> GithubConnector {
        self.made(self.options())
    }

    /// A connector that shares what all of this provider's share.
    pub(crate) fn made(&self, options: GithubOptions) -> GithubConnector {
        GithubConnector::new(&self.client, options).unwrap()
    }

    /// For a repository that was registered under this number, or under none.
    pub(crate) fn connector_of(&self, number: Option<&str>) -> GithubConnector {
        self.made(GithubOptions {
            expected_repository_id: number.map(str::to_owned),
            ..self.options()
        })
    }

    pub(crate) fn connector_with(&self, credential: Arc<dyn TokenSource>) -> GithubConnector {
        self.made(GithubOptions {
            credential,
            ..self.options()
        })
    }

    pub(crate) fn impatient_connector(&self) -> GithubConnector {
        self.made(GithubOptions {
            deadline: Duration::from_millis(150),
            ..self.options()
        })
    }
}

/// One request a connection: what a test counts is then what was sent.
async fn serve(mut stream: TcpStream, answers: Arc<Answers>, record: Arc<Mutex<Vec<Asked>>>) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    let reply = answers(&asked);
    record.lock().unwrap().push(asked);
    // Whoever asked may have left already.
    drop(write(&mut stream, reply).await);
}

async fn write(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Plain(status, headers, body) => {
            let mut head = format!(
                "HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.extend([name, ": ", &value, "\r\n"]);
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            stream.write_all(&body).await?;
        }
        Reply::Raw(bytes) => {
            stream.write_all(&bytes).await?;
        }
        Reply::Silence => std::future::pending().await,
        Reply::Endless => {
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[";
            stream.write_all(head.as_bytes()).await?;
            let filling = vec![b' '; 65_536];
            loop {
                stream.write_all(&filling).await?;
            }
        }
    }
    stream.shutdown().await
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        body.extend_from_slice(&chunk[..count]);
    }
    Some(Asked {
        method,
        target,
        headers,
        body: String::from_utf8(body).ok()?,
    })
}
