//! Asking real servers on this machine, honest ones and others.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use caretaker::probe::{AddressRules, Answer, HttpProbe, Lookup, Probe as _, ProbeError, Question};
use http::{HeaderMap, Method};
use url::Url;

use super::server::{Reply, Server, answer};

const LOCAL: AddressRules = AddressRules {
    private: false,
    loopback: true,
};
const NOTHING_MORE: AddressRules = AddressRules {
    private: false,
    loopback: false,
};

/// Answers what a test says, another thing each time.
pub(super) struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Names {
    pub(super) fn of(answers: Vec<Vec<IpAddr>>) -> Arc<Self> {
        Arc::new(Self {
            answers,
            asked: AtomicUsize::new(0),
        })
    }

    /// No name is known.
    pub(super) fn none() -> Arc<Self> {
        Self::of(Vec::new())
    }
}

#[async_trait]
impl Lookup for Names {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let count = self.asked.fetch_add(1, Ordering::SeqCst);
        let known = self.answers.get(count).or(self.answers.last());
        known
            .cloned()
            .ok_or_else(|| io::Error::other(format!("no {name} here")))
    }
}

fn probe(rules: AddressRules, names: Arc<Names>) -> HttpProbe {
    HttpProbe::new(rules, names, &[]).unwrap()
}

/// What a test asks, with a redirect or five and a small body.
async fn ask_with(
    probe: &HttpProbe,
    url: &str,
    headers: &HeaderMap,
    deadline: Duration,
) -> Result<Answer, ProbeError> {
    let question = Question {
        method: &Method::GET,
        url: &Url::parse(url).unwrap(),
        headers,
        deadline,
        redirects: 5,
        body: Some(64 * 1024),
    };
    probe.ask(&question).await
}

async fn ask(probe: &HttpProbe, url: &str) -> Result<Answer, ProbeError> {
    ask_with(probe, url, &HeaderMap::new(), Duration::from_secs(10)).await
}

async fn words(probe: &HttpProbe, url: &str) -> String {
    ask(probe, url).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_answer_comes_with_status_headers_body_and_how_long_it_took() {
    let server =
        Server::start(|_| answer("418 Teapot", "x-commit: abc\r\n", "short and stout")).await;
    let asked = ask(&probe(LOCAL, Names::none()), &server.url("/health?x=1"))
        .await
        .unwrap();
    assert_eq!(
        (asked.status, asked.body.as_slice()),
        (418, &b"short and stout"[..])
    );
    assert_eq!(asked.headers["x-commit"], "abc");
    assert!(asked.latency > Duration::ZERO && asked.latency < Duration::from_secs(10));
    assert_eq!((asked.certificate_ends, asked.authentic), (None, false));
    let request = server.requests().remove(0);
    assert!(
        request.starts_with("GET /health?x=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("user-agent: caretaker/"), "{request}");
}

#[tokio::test]
async fn this_machine_is_not_asked_by_any_of_its_names() {
    let server = Server::start(|_| answer("200 OK", "", "secret")).await;
    let port = server.address.port();
    let names = Names::of(vec![vec![Ipv4Addr::LOCALHOST.into()]]);
    let careful = probe(NOTHING_MORE, names);
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0",
        "[::]",
        "inside.example",
        "localhost.",
        "LOCALHOST",
        "[::127.0.0.1]",
    ] {
        let url = format!("http://{host}:{port}/");
        let refused = ask(&careful, &url).await;
        assert!(
            matches!(refused, Err(ProbeError::Refused { .. })),
            "{host}: {refused:?}"
        );
    }
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_with_one_forbidden_address_among_good_ones_is_refused_whole() {
    let good: IpAddr = "127.0.0.1".parse().unwrap();
    for bad in [
        "169.254.169.254",
        "10.0.0.1",
        "::ffff:169.254.169.254",
        "fe80::1",
        "64:ff9b::1",
    ] {
        let names = Names::of(vec![vec![good, bad.parse().unwrap()]]);
        let refused = words(&probe(LOCAL, names), "http://mixed.example:1/").await;
        assert!(
            refused.starts_with("mixed.example (") && refused.ends_with("so it is not asked"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn a_name_that_means_something_else_the_next_time_finds_nothing() {
    // First this machine, which is allowed here, then metadata: whoever checks and then resolves again connects to it.
    let server = Server::start(|_| answer("200 OK", "", "fine")).await;
    let metadata: IpAddr = "169.254.169.254".parse().unwrap();
    let names = Names::of(vec![vec![Ipv4Addr::LOCALHOST.into()], vec![metadata]]);
    let probe = probe(LOCAL, Arc::clone(&names));
    let url = format!("http://rebound.example:{}/", server.address.port());
    // The one answer that was checked is the one that is connected to.
    assert_eq!(ask(&probe, &url).await.unwrap().body, b"fine");
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    let refused = words(&probe, &url).await;
    assert!(
        refused.contains("(169.254.169.254) is a link-local address"),
        "{refused}"
    );
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_looked_at_again() {
    for (location, said) in [
        ("http://169.254.169.254/latest/meta-data/", "link-local"),
        ("http://[::ffff:a9fe:a9fe]/", "link-local"),
        ("//2852039166/", "link-local"),
        (
            "http://metadata.example/",
            "metadata.example (10.0.0.1) is a private address",
        ),
        (
            "http://user:hunter2@127.0.0.1/",
            "an address with a user name or password",
        ),
        ("file:///etc/passwd", "no web page"),
        ("gopher://127.0.0.1:70/", "no web page"),
        ("http://", "no address"),
        ("http://[::1", "no address"),
        ("http://a b/", "no address"),
    ] {
        let head = format!("location: {location}\r\n");
        let server = Server::start(move |_| answer("302 Found", &head, "")).await;
        let names = Names::of(vec![vec!["10.0.0.1".parse().unwrap()]]);
        let refused = words(&probe(LOCAL, names), &server.url("/")).await;
        assert!(refused.contains(said), "{location}: {refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_leads_on_with_our_headers_only_at_home() {
    let elsewhere = Server::start(|_| answer("200 OK", "", "there")).await;
    let target = elsewhere.url("/end");
    let home = Server::start(move |head| {
        let to = if head.starts_with("GET /a ") {
            "/b".to_owned()
        } else {
            target.clone()
        };
        answer("307 Temporary Redirect", &format!("location: {to}\r\n"), "")
    })
    .await;
    let mut headers = HeaderMap::new();
    headers.insert("x-key", "hunter2".parse().unwrap());
    let probe = probe(LOCAL, Names::none());
    let asked = ask_with(&probe, &home.url("/a"), &headers, Duration::from_secs(10)).await;
    assert_eq!(asked.unwrap().body, b"there");
    let at_home = home.requests();
    assert_eq!(at_home.len(), 2);
    assert!(
        at_home
            .iter()
            .all(|request| request.contains("x-key: hunter2"))
    );
    // Break it: send the headers with every hop.
    let request = elsewhere.requests().remove(0);
    assert!(
        !request.contains("hunter2") && !request.contains("referer"),
        "{request}"
    );
}

#[tokio::test]
async fn redirects_end() {
    let server = Server::start(|_| answer("302 Found", "location: /again\r\n", "")).await;
    let probe = probe(LOCAL, Names::none());
    assert_eq!(
        words(&probe, &server.url("/")).await,
        "more than 5 redirects"
    );
    assert_eq!(server.requests().len(), 6);
    // Not followed at all, a redirect is an answer.
    let question = Question {
        method: &Method::GET,
        url: &Url::parse(&server.url("/")).unwrap(),
        headers: &HeaderMap::new(),
        deadline: Duration::from_secs(10),
        redirects: 0,
        body: None,
    };
    let asked = caretaker::probe::Probe::ask(&probe, &question)
        .await
        .unwrap();
    assert_eq!((asked.status, asked.body.len()), (302, 0));
}

/// A name, a way to send, and what is sent.
type Odd = (&'static str, fn(Vec<u8>) -> Reply, Vec<u8>);

/// What servers write that are no honest servers.
fn odd_replies() -> Vec<Odd> {
    let ok = b"HTTP/1.1 200 OK\r\n".to_vec();
    let chunk = |text: &str| [&ok[..], text.as_bytes()].concat();
    vec![
        (
            "garbage",
            Reply::Bytes,
            b"\x00\xff\x16\x03 not http at all".to_vec(),
        ),
        ("nothing", Reply::Bytes, Vec::new()),
        ("half a head", Reply::Bytes, ok.clone()),
        ("silence", Reply::Silence, Vec::new()),
        ("silence in the head", Reply::Silence, ok.clone()),
        (
            "silence in the body",
            Reply::Silence,
            chunk("content-length: 10\r\n\r\nabc"),
        ),
        (
            "half a body",
            Reply::Bytes,
            chunk("content-length: 10\r\n\r\nabc"),
        ),
        (
            "endless body",
            Reply::Endless,
            chunk("\r\nxxxxxxxxxxxxxxxx"),
        ),
        ("endless head", Reply::Endless, chunk("a: b\r\nc: ")),
        ("endless headers", Reply::Endless, chunk("a: b\r\n")),
        ("endless garbage", Reply::Endless, vec![0xff; 4_096]),
        (
            "huge length",
            Reply::Silence,
            chunk("content-length: 18446744073709551615\r\n\r\n"),
        ),
        (
            "two lengths",
            Reply::Bytes,
            chunk("content-length: 1\r\ncontent-length: 2\r\n\r\nab"),
        ),
        (
            "bad chunks",
            Reply::Bytes,
            chunk("transfer-encoding: chunked\r\n\r\nzz\r\n"),
        ),
        (
            "huge chunk",
            Reply::Silence,
            chunk("transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nx"),
        ),
        (
            "informational for ever",
            Reply::Endless,
            b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(),
        ),
        (
            "status 99",
            Reply::Bytes,
            b"HTTP/1.1 99 Odd\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
        (
            "HTTP/2 preface",
            Reply::Bytes,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        ),
    ]
}

#[tokio::test]
async fn whatever_a_server_writes_ends_in_bounded_time_and_memory() {
    let probe = probe(LOCAL, Names::none());
    let patience = Duration::from_millis(500);
    for (what, how, bytes) in odd_replies() {
        let server = Server::start(move |_| how(bytes.clone())).await;
        let begun = Instant::now();
        let asked = ask_with(
            &probe,
            &server.url("/?token=hunter2"),
            &HeaderMap::new(),
            patience,
        )
        .await;
        let error = asked.expect_err(what);
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
        let text = error.to_string();
        assert!(
            text.len() < 400 && !text.contains("hunter2") && !text.chars().any(char::is_control),
            "{what}: {text}"
        );
    }
    // Nothing listens there.
    let gone = Server::start(|_| answer("200 OK", "", "")).await.address;
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    assert_ne!(gone, free);
    let refused = words(&probe, &format!("http://{free}/?token=hunter2")).await;
    assert!(
        refused.starts_with(&format!("{free}: ")) && !refused.contains("hunter2"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_body_is_read_up_to_its_bound_and_only_when_asked_for() {
    let server = Server::start(|head| {
        let length = if head.contains("/exact") {
            65_536
        } else {
            65_537
        };
        answer("200 OK", "", &"x".repeat(length))
    })
    .await;
    let probe = probe(LOCAL, Names::none());
    assert_eq!(
        ask(&probe, &server.url("/exact")).await.unwrap().body.len(),
        65_536
    );
    assert_eq!(
        words(&probe, &server.url("/more")).await,
        "the answer is longer than 65536 bytes"
    );
    let endless =
        Server::start(|_| Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\nxxxxxxxx".to_vec())).await;
    let question = Question {
        method: &Method::GET,
        url: &Url::parse(&endless.url("/")).unwrap(),
        headers: &HeaderMap::new(),
        deadline: Duration::from_secs(10),
        redirects: 5,
        body: None,
    };
    assert_eq!(probe.ask(&question).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_name_that_nobody_knows_says_so() {
    let unknown = words(&probe(LOCAL, Names::none()), "http://gone.example/").await;
    assert_eq!(
        unknown,
        "the name gone.example cannot be resolved: no gone.example here"
    );
    let empty = words(
        &probe(LOCAL, Names::of(vec![vec![]])),
        "http://empty.example/",
    )
    .await;
    assert_eq!(
        empty,
        "the name empty.example cannot be resolved: it has no address"
    );
}

#[tokio::test]
async fn a_target_of_the_self_check_is_reached_when_anything_answers_by_http() {
    let probe = probe(NOTHING_MORE, Names::none());
    let deadline = Duration::from_millis(500);
    let reached = async |server: &Server| {
        let target = Url::parse(&server.url("/")).unwrap();
        probe.reaches(&target, deadline).await
    };
    let broken = Server::start(|_| answer("500 Internal Server Error", "", "")).await;
    assert!(reached(&broken).await);
    let garbage = Server::start(|_| Reply::Bytes(b"SSH-2.0-x\r\n".to_vec())).await;
    let silent = Server::start(|_| Reply::Silence(Vec::new())).await;
    assert!(!reached(&garbage).await && !reached(&silent).await);
}
