//! The way to the model: what goes on, what does not, and what it adds up to.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use caretaker::agent::client::proxy::{
    Allowance, LARGEST_REQUEST, ModelProxy, Protocol, ProxyError, Route, Tokens, Upstream,
    UsageReader, Used, reaches_beyond,
};
use caretaker::incident::{Currency, MoneyBudget, Prices};
use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::KEY;

/// What the server behind was asked.
#[derive(Debug, Clone)]
struct Asked {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: Bytes,
}

type Answering = Arc<dyn Fn(&Asked) -> Response + Send + Sync>;

#[derive(Clone)]
struct Behind {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Answering,
}

/// A model's server on loopback, and a proxy in front of it.
struct Way {
    folder: TempDir,
    asked: Arc<Mutex<Vec<Asked>>>,
    proxy: ModelProxy,
}

const USAGE: &str = r#"{"usage":{"prompt_tokens":100,"completion_tokens":10}}"#;

fn document() -> Answering {
    Arc::new(|_| ([("content-type", "application/json")], USAGE).into_response())
}

impl Way {
    async fn to(protocol: Protocol, answer: Answering) -> Self {
        Self::allowed(protocol, answer, |_| {}).await
    }

    async fn allowed(
        protocol: Protocol,
        answer: Answering,
        change: impl FnOnce(&mut Allowance),
    ) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let behind = Behind {
            asked: Arc::clone(&asked),
            answer,
        };
        let router = Router::new().fallback(serve).with_state(behind);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let below = if protocol == Protocol::OpenAi {
            "/v1/"
        } else {
            ""
        };
        let upstream = Upstream {
            protocol,
            base: format!("http://127.0.0.1:{port}{below}").parse().unwrap(),
            key: Some(SecretString::from(KEY)),
        };
        let mut allowance = Allowance {
            requests: 100,
            tokens: 1_000_000,
            money: None,
            deadline: Instant::now() + Duration::from_mins(1),
        };
        change(&mut allowance);
        let proxy = ModelProxy::start(&folder.path().join("m.sock"), upstream, allowance).unwrap();
        Self {
            folder,
            asked,
            proxy,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("m.sock")
    }

    /// Says a request as bytes and reads what comes, to the end.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.socket()).await.unwrap();
        // Where the answer comes before all is said, the rest is not taken.
        drop(stream.write_all(request).await);
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn ask(&self, line: &str, headers: &str, body: &str) -> String {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.raw(request.as_bytes()).await
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(State(behind): State<Behind>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let asked = Asked {
        method: parts.method,
        uri: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    let answer = (behind.answer)(&asked);
    behind.asked.lock().unwrap().push(asked);
    answer
}

/// Whatever could be a credential, from inside.
const FOREIGN: &str = "Authorization: Bearer from-inside\r\nX-Api-Key: from-inside\r\nX-Goog-Api-Key: from-inside\r\nApi-Key: from-inside\r\n\
    Cookie: from-inside\r\nProxy-Authorization: from-inside\r\nOpenAI-Organization: from-inside\r\nX-Goog-User-Project: from-inside\r\n\
    Content-Type: application/json\r\nAnthropic-Version: 2023-06-01\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_added_and_foreign_credentials_are_dropped() {
    for (protocol, line, uri, name, value) in [
        (
            Protocol::Anthropic,
            "POST /v1/messages?beta=true&key=from-inside",
            "/v1/messages?beta=true",
            "x-api-key",
            KEY.to_owned(),
        ),
        (
            Protocol::OpenAi,
            "POST /v1/responses",
            "/v1/responses",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            Protocol::Ollama,
            "POST /v1/chat/completions",
            "/v1/chat/completions",
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            Protocol::Gemini,
            "POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?key=from-inside&alt=sse",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            "x-goog-api-key",
            KEY.to_owned(),
        ),
    ] {
        let way = Way::to(protocol, document()).await;
        let answer = way.ask(line, FOREIGN, r#"{"model":"m"}"#).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("prompt_tokens"), "{answer}");
        let asked = way.asked();
        assert_eq!((asked.len(), asked[0].uri.as_str()), (1, uri));
        assert_eq!(asked[0].method, Method::POST);
        assert_eq!(&asked[0].body[..], br#"{"model":"m"}"#);
        assert_eq!(asked[0].headers[name], value);
        let all = format!("{:?}", asked[0].headers);
        assert!(!all.contains("from-inside"), "{all}");
        assert_eq!(asked[0].headers["content-type"], "application/json");
        assert!(!answer.contains(KEY));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_the_key_does_not_say_it_inside() {
    let echo: Answering = Arc::new(|asked: &Asked| {
        let said = format!("invalid key: {:?}", asked.headers["authorization"].to_str());
        (
            StatusCode::UNAUTHORIZED,
            [("retry-after", "7"), ("set-cookie", "a=b")],
            said,
        )
            .into_response()
    });
    let way = Way::to(Protocol::OpenAi, echo).await;
    let answer = way.ask("POST /v1/responses", "", "{}").await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(
        answer.contains("invalid key") && answer.contains("retry-after: 7"),
        "{answer}"
    );
    assert!(
        !answer.contains(KEY) && !answer.contains("set-cookie"),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_are_not_the_protocols_are_refused() {
    for (protocol, lines) in [
        (
            Protocol::OpenAi,
            &[
                "POST /v1/files",
                "GET /v1/files",
                "POST /v1/embeddings",
                "DELETE /v1/responses",
                "GET /v1/responses/resp_1",
                "POST /v1/responses/../files",
                "POST /v1/responses%2f..%2ffiles",
                "POST /v1//responses",
                "POST /responses",
                "GET /v1/models/../files",
                "POST /v1/models",
                "POST http://elsewhere/v1/files",
                "CONNECT elsewhere:443",
            ][..],
        ),
        (
            Protocol::Anthropic,
            &[
                "POST /v1/files",
                "POST /v1/messages/batches",
                "GET /v1/organizations/x",
            ],
        ),
        (
            Protocol::Gemini,
            &[
                "POST /v1beta/cachedContents",
                "POST /v1beta/files",
                "POST /upload/v1beta/files",
                "POST /v1beta/models/x:batchEmbedContents",
                "POST /v1beta/models/a/b:generateContent",
                "POST /v1beta/models/..:generateContent",
                "GET /v1beta/models/x:generateContent",
            ],
        ),
    ] {
        let way = Way::to(protocol, document()).await;
        for line in lines {
            let answer = way.ask(line, "", "{}").await;
            assert!(
                answer.starts_with("HTTP/1.1 404") || answer.starts_with("HTTP/1.1 400"),
                "{line}: {answer}"
            );
        }
        assert!(way.asked().is_empty());
        assert_eq!(way.proxy.used(), Used::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_the_server_would_run_are_refused() {
    let way = Way::to(Protocol::OpenAi, document()).await;
    let asked = json!({"tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]});
    let answer = way.ask("POST /v1/responses", "", &asked.to_string()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert!(answer.contains("web_search"), "{answer}");
    for body in ["", "not json", "\u{1f}\u{8b}"] {
        let answer = way.ask("POST /v1/responses", "", body).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
    let packed = way
        .ask("POST /v1/responses", "Content-Encoding: zstd\r\n", "{}")
        .await;
    assert!(packed.starts_with("HTTP/1.1 415"), "{packed}");
    assert!(way.asked().is_empty());
    let beyond = |value: Value| reaches_beyond(&value);
    for (value, named) in [
        (
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            "web_search_20250305",
        ),
        (
            json!({"mcp_servers": [{"url": "https://elsewhere"}]}),
            "mcp_servers",
        ),
        (
            json!({"tools": [{"type": "mcp", "server_url": "https://elsewhere"}]}),
            "mcp",
        ),
        (
            json!({"tools": [{"functionDeclarations": []}, {"googleSearch": {}}]}),
            "googleSearch",
        ),
        (json!({"tools": [{"url_context": {}}]}), "url_context"),
        (
            json!({"tools": [{"type": "namespace", "tools": [{"type": "code_interpreter"}]}]}),
            "code_interpreter",
        ),
        (
            json!({"web_search_options": {"x": 1}}),
            "web_search_options",
        ),
        (json!({"background": true}), "background"),
    ] {
        assert_eq!(beyond(value.clone()).as_deref(), Some(named), "{value}");
    }
    for value in [
        json!({"tools": [{"name": "Read", "description": "d", "input_schema": {}, "cache_control": {}}]}),
        json!({"tools": [{"type": "custom", "name": "apply_patch", "format": {}}], "background": false, "container": null}),
        json!({"tools": [{"functionDeclarations": [{"name": "read_file"}]}]}),
        json!({"tools": []}),
        json!([]),
        json!("text"),
    ] {
        assert_eq!(beyond(value.clone()), None, "{value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_tokens_are_bounded() {
    let way = Way::allowed(Protocol::OpenAi, document(), |allowed| allowed.requests = 3).await;
    let ask = || way.ask("POST /v1/chat/completions", "", "{}");
    for _ in 0..3 {
        assert!(ask().await.starts_with("HTTP/1.1 200"));
    }
    let refused = ask().await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("used up its 3 requests"), "{refused}");
    assert_eq!(way.asked().len(), 3);
    let used = way.proxy.finish().await;
    assert_eq!(
        used,
        Used {
            requests: 3,
            input: 300,
            output: 30,
            cost: None,
        }
    );

    let way = Way::allowed(Protocol::OpenAi, document(), |allowed| allowed.tokens = 110).await;
    let ask = || way.ask("POST /v1/chat/completions", "", "{}");
    assert!(ask().await.starts_with("HTTP/1.1 200"));
    // The count is there when the answer has passed.
    let counted = async {
        while way.proxy.used().input == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), counted)
        .await
        .unwrap();
    assert!(ask().await.contains("used up its 110 tokens"));
    assert_eq!(way.asked().len(), 1);
}

/// A dollar a token sent, two for one received.
fn costing(most: &str) -> MoneyBudget {
    let amount = |text: &str| text.parse().unwrap();
    MoneyBudget {
        prices: Prices {
            input: amount("1000000"),
            output: amount("2000000"),
            currency: Currency::try_from("USD".to_owned()).unwrap(),
        },
        most: Some(amount(most)),
    }
}

async fn spent(way: &Way) -> String {
    let counted = async {
        loop {
            let cost = way.proxy.used().cost.unwrap();
            if cost.micro > 0 {
                return cost.to_string();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), counted)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn once_the_money_is_spent_nothing_goes_on() {
    let spend = |most: &'static str| {
        Way::allowed(Protocol::OpenAi, document(), move |allowed| {
            allowed.money = Some(costing(most));
        })
    };
    let way = spend("120").await;
    let ask = || way.ask("POST /v1/chat/completions", "", "{}");
    assert!(ask().await.starts_with("HTTP/1.1 200"));
    assert_eq!(spent(&way).await, "120.00 USD");
    let refused = ask().await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("money (120.00 USD)"), "{refused}");
    assert_eq!(way.asked().len(), 1);

    let way = spend("121").await;
    let ask = || way.ask("POST /v1/chat/completions", "", "{}");
    assert!(ask().await.starts_with("HTTP/1.1 200"));
    spent(&way).await;
    assert!(ask().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_counts_nothing_is_estimated_by_bytes() {
    let mute: Answering = Arc::new(|_| {
        ([("content-type", "application/json")], "{\"x\":\"123456\"}").into_response()
    });
    let way = Way::allowed(Protocol::OpenAi, mute, |allowed| {
        allowed.money = Some(costing("1000"));
    })
    .await;
    let asked = way.ask("POST /v1/chat/completions", "", "{\"a\": 1}");
    assert!(asked.await.starts_with("HTTP/1.1 200"));
    // 8 bytes are 2 tokens, 14 are 4 at two dollars.
    assert_eq!(spent(&way).await, "10.00 USD");
    assert_eq!((way.proxy.used().input, way.proxy.used().output), (0, 0));

    let busy: Answering = Arc::new(|_| StatusCode::SERVICE_UNAVAILABLE.into_response());
    let way = Way::allowed(Protocol::OpenAi, busy, |allowed| {
        allowed.money = Some(costing("1000"));
    })
    .await;
    let asked = way.ask("POST /v1/chat/completions", "", "{\"a\": 1}");
    assert!(asked.await.starts_with("HTTP/1.1 503"));
    assert_eq!(spent(&way).await, "2.00 USD");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_requests_count() {
    let busy: Answering = Arc::new(|_| StatusCode::SERVICE_UNAVAILABLE.into_response());
    let way = Way::allowed(Protocol::OpenAi, busy, |allowed| allowed.requests = 2).await;
    for _ in 0..2 {
        let answer = way.ask("POST /v1/responses", "", "{}").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    }
    assert!(
        way.ask("POST /v1/responses", "", "{}")
            .await
            .starts_with("HTTP/1.1 403")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_large_is_refused() {
    let way = Way::to(Protocol::OpenAi, document()).await;
    let body = format!("\"{}\"", "x".repeat(LARGEST_REQUEST));
    let answer = way.ask("POST /v1/responses", "", &body).await;
    // Whoever is still writing may see the connection closed instead.
    assert!(
        answer.is_empty() || answer.starts_with("HTTP/1.1 413"),
        "{answer}"
    );
    assert!(way.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_end_is_cut_off() {
    let endless: Answering = Arc::new(|_| {
        let (mut to, from) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move {
            // Twice what passes, so that the story ends even if nothing is cut off.
            for _ in 0..128 {
                if to.write_all(&vec![b'x'; 1 << 20]).await.is_err() {
                    break;
                }
            }
        });
        Body::from_stream(tokio_util::io::ReaderStream::new(from)).into_response()
    });
    let way = Way::to(Protocol::OpenAi, endless).await;
    let answer = way.ask("POST /v1/responses", "", "{}").await;
    assert!(answer.len() < 70 << 20, "{}", answer.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_breaks_off_ends_the_request_behind() {
    let (gone, heard) = tokio::sync::oneshot::channel();
    let gone = Mutex::new(Some(gone));
    let slow: Answering = Arc::new(move |_| {
        let gone = gone.lock().unwrap().take();
        let (mut to, from) = tokio::io::duplex(16);
        tokio::spawn(async move {
            while to.write_all(&[b'x'; 4096]).await.is_ok() {}
            if let Some(gone) = gone {
                gone.send(()).unwrap();
            }
        });
        Body::from_stream(tokio_util::io::ReaderStream::new(from)).into_response()
    });
    let way = Way::to(Protocol::OpenAi, slow).await;
    let mut stream = UnixStream::connect(way.socket()).await.unwrap();
    let request = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(request).await.unwrap();
    let mut some = [0; 1024];
    assert!(stream.read(&mut some).await.unwrap() > 0);
    drop(stream);
    tokio::time::timeout(Duration::from_secs(20), heard)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(way.proxy.finish().await.requests, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_its_time_nothing_goes_on() {
    let silent: Answering = Arc::new(|_| {
        let (to, from) = tokio::io::duplex(16);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            drop(to);
        });
        Body::from_stream(tokio_util::io::ReaderStream::new(from)).into_response()
    });
    let way = Way::allowed(Protocol::OpenAi, silent, |allowed| {
        allowed.deadline = Instant::now() + Duration::from_millis(300);
    })
    .await;
    let started = Instant::now();
    way.ask("POST /v1/responses", "", "{}").await;
    assert!(started.elapsed() < Duration::from_secs(20));
    let late = way.ask("POST /v1/responses", "", "{}").await;
    assert!(late.starts_with("HTTP/1.1 504"), "{late}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_socket_is_private_and_goes_with_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let way = Way::to(Protocol::OpenAi, document()).await;
    let mode = std::fs::metadata(way.socket())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    let Way { folder, proxy, .. } = way;
    proxy.finish().await;
    let socket = folder.path().join("m.sock");
    let gone = async {
        while UnixStream::connect(&socket).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
    let long = folder.path().join("x".repeat(120));
    let upstream = Upstream {
        protocol: Protocol::OpenAi,
        base: "http://127.0.0.1:1/".parse().unwrap(),
        key: None,
    };
    let allowance = Allowance {
        requests: 1,
        tokens: 1,
        money: None,
        deadline: Instant::now(),
    };
    let refused = ModelProxy::start(&long, upstream.clone(), allowance)
        .err()
        .unwrap();
    assert!(refused.to_string().contains("shorter path"), "{refused}");
    let odd = Upstream {
        key: Some(SecretString::from("two\nlines")),
        ..upstream
    };
    let refused = ModelProxy::start(&socket, odd, allowance).err().unwrap();
    assert!(matches!(refused, ProxyError::Key));
}

/// Only root can become somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn another_user_is_not_heard() {
    if !rustix::process::getuid().is_root() {
        eprintln!("SKIPPED: only root can ask as another user");
        return;
    }
    let way = Way::to(Protocol::OpenAi, document()).await;
    for place in [way.folder.path().to_path_buf(), way.socket()] {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let ask = "import socket,sys\ns=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20)\n\
        try: s.sendall(b'POST /v1/responses HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n{}'); print(len(s.recv(100)))\n\
        except OSError: print(0)";
    let mut command = tokio::process::Command::new("setpriv");
    command
        .args([
            "--reuid=65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            ask,
        ])
        .arg(way.socket());
    let ran = command.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "0\n", "{ran:?}");
    assert!(way.asked().is_empty());
}

#[test]
fn tokens_are_counted_in_every_protocols_answers() {
    let streams = [
        (
            "data: {\"choices\":[]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
            (7, 3),
        ),
        (
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":2}}}\n\n",
            (9, 2),
        ),
        (
            "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":20,\"output_tokens\":1}}}\r\n\r\n\
             data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":8}}\r\n\r\n",
            (25, 8),
        ),
        (
            "data: {\"usageMetadata\":{\"promptTokenCount\":4,\"candidatesTokenCount\":1}}\n\n\
             data: {\"usageMetadata\":{\"promptTokenCount\":4,\"candidatesTokenCount\":6,\"thoughtsTokenCount\":5}}",
            (4, 11),
        ),
        (
            "data: {\"usage\":{\"prompt_tokens\":-1,\"completion_tokens\":\"x\"}}\n",
            (0, 0),
        ),
        ("usage usage {{{\n", (0, 0)),
    ];
    for (stream, (input, output)) in streams {
        for size in [1, 7, 4096] {
            let mut reader = UsageReader::new(true);
            for piece in stream.as_bytes().chunks(size) {
                reader.read(piece);
            }
            assert_eq!(
                reader.tokens(),
                Tokens { input, output },
                "{stream} by {size}"
            );
        }
    }
    let mut reader = UsageReader::new(false);
    reader.read(USAGE.as_bytes());
    assert_eq!(
        reader.tokens(),
        Tokens {
            input: 100,
            output: 10
        }
    );
    // A line that does not end is passed over, and what comes after it is read.
    let mut reader = UsageReader::new(true);
    for _ in 0..20 {
        reader.read(&vec![b'x'; 1 << 20]);
    }
    assert!(format!("{reader:?}").len() < 200, "it is held");
    reader.read(b"\ndata: ");
    reader.read(USAGE.as_bytes());
    assert_eq!(
        reader.tokens(),
        Tokens {
            input: 100,
            output: 10
        }
    );
}

proptest! {
    /// Whatever path is let through names the protocol's own, without a way up.
    #[test]
    fn no_path_leads_elsewhere(path in "/v1(beta)?/(models/|messages|responses|chat/)?[a-z/.:%]{0,30}", post in any::<bool>()) {
        let method = if post { Method::POST } else { Method::GET };
        for protocol in [Protocol::Anthropic, Protocol::OpenAi, Protocol::Gemini, Protocol::Ollama] {
            if let Some(Route { path: out, query }) = protocol.route(&method, &path, Some("x=y")) {
                prop_assert!(!out.contains("..") && !out.contains("//") && !out.contains('%') && query.is_none());
            }
        }
    }

    #[test]
    fn usage_of_anything_is_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400), streams in any::<bool>()) {
        let mut reader = UsageReader::new(streams);
        reader.read(&bytes);
        reader.tokens();
    }
}
