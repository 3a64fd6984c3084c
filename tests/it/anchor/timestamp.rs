//! Checkpoints before an authority of OpenSSL's, over HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use caretaker::anchor::timestamp::{
    DEADLINE, Roots, Timestamp, TimestampSetupError, verify_timestamp,
};
use caretaker::anchor::{Anchor as _, AnchorError, AnchorKind, LogReader, Receipt};
use caretaker::change::Sha256Digest;
use caretaker::clock::{Clock as _, Millis, SystemClock};
use caretaker::log::{SignedCheckpoint, TileId, TreeHash};

use super::openssl::OpenSsl;
use super::server::{Reply, Server, answer};
use crate::log::scene::{Stored, policy, witness};

const P_256: &[&str] = &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
const P_384: &[&str] = &["EC", "-pkeyopt", "ec_paramgen_curve:P-384"];
const RSA: &[&str] = &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"];

/// A timestamp needs nothing but the checkpoint.
struct NoLog;

#[async_trait]
impl LogReader for NoLog {
    async fn consistency(&self, _: u64, _: u64) -> Result<Vec<TreeHash>, AnchorError> {
        panic!("nobody asks for proofs")
    }

    async fn file(&self, _: TileId) -> Result<Vec<u8>, AnchorError> {
        panic!("nobody asks for files")
    }
}

fn now() -> Millis {
    SystemClock.now()
}

fn asked(server: &Server, roots: Roots) -> Timestamp {
    Timestamp::new("one".to_owned(), server.url(), roots, DEADLINE).unwrap()
}

async fn shown(
    authority: &Timestamp,
    checkpoint: &SignedCheckpoint,
    now: Millis,
) -> Result<Receipt, AnchorError> {
    authority.anchor(checkpoint, &NoLog, None, now).await
}

async fn of_openssl(authority: &Arc<OpenSsl>) -> Server {
    let authority = Arc::clone(authority);
    Server::start(move |query| answer("200 OK", &authority.reply(query))).await
}

#[tokio::test]
async fn a_checkpoint_is_stamped_and_a_stranger_verifies_it_with_openssl() {
    for key in [P_256, P_384, RSA] {
        let openssl = Arc::new(OpenSsl::new("Authority A", key));
        let server = of_openssl(&openssl).await;
        let authority = asked(&server, openssl.roots());
        assert_eq!(
            (authority.kind(), authority.name()),
            (AnchorKind::Timestamp, "one")
        );
        let mut checkpoint = Stored::of(9).checkpoint(9);
        let before = now();
        let receipt = shown(&authority, &checkpoint, before).await.unwrap();
        assert_eq!(receipt.size, 9);
        authority.confirm(&checkpoint, &receipt).await.unwrap();
        let another = Stored::of(10).checkpoint(10);
        assert!(authority.confirm(&another, &receipt).await.is_err());
        let forged = Receipt {
            size: 9,
            bytes: b"it is fine".to_vec(),
        };
        assert!(authority.confirm(&checkpoint, &forged).await.is_err());
        let (head, query) = server.requests().remove(0);
        assert!(head.starts_with("post /stamp http/1.1\r\n"), "{head}");
        assert!(
            head.contains("\r\ncontent-type: application/timestamp-query\r\n"),
            "{head}"
        );
        let read = openssl.reads(&query);
        assert!(read.contains("Hash Algorithm: sha256"), "{read}");
        assert!(read.contains("Certificate required: yes"), "{read}");
        assert!(read.contains("Nonce: 0x"), "{read}");
        // The note with the log's own line, as it is kept.
        let data = checkpoint.to_string();
        assert!(openssl.verifies(data.as_bytes(), &receipt.bytes));
        assert!(!openssl.verifies(format!("{data}more").as_bytes(), &receipt.bytes));
        // A cosignature that comes later changes nothing.
        let seen = policy(0).verify(&checkpoint).unwrap();
        let cosignature = witness(1).cosign(&seen, before).unwrap();
        checkpoint.add(cosignature).unwrap();
        assert_ne!(checkpoint.to_string(), data);
        assert_eq!(checkpoint.without_cosignatures(), data);
        let imprint = Sha256Digest::of(checkpoint.without_cosignatures().as_bytes());
        let stamped = verify_timestamp(&receipt.bytes, &imprint, &openssl.roots()).unwrap();
        assert_eq!(stamped.authority, "Authority A");
        assert_eq!(stamped.policy, "1.2.3.4.1");
        assert_eq!(stamped.accuracy_millis, Some(1_500));
        assert!(stamped.at.0.abs_diff(before.0) < 60_000, "{}", stamped.at);
    }
}

#[tokio::test]
async fn no_two_requests_are_the_same() {
    let openssl = Arc::new(OpenSsl::new("Authority A", P_256));
    let server = of_openssl(&openssl).await;
    let authority = asked(&server, openssl.roots());
    let checkpoint = Stored::of(9).checkpoint(9);
    for _ in 0..2 {
        shown(&authority, &checkpoint, now()).await.unwrap();
    }
    let requests = server.requests();
    assert_ne!(requests[0].1, requests[1].1);
    // Nor is one made when there are no random bits.
    let authority = authority.with_random(|| Err("none are left".to_owned()));
    let error = shown(&authority, &checkpoint, now()).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("none are left"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 2);
}

/// The refusal, and whether another attempt may succeed.
async fn refused(
    reply: impl Fn(&[u8]) -> Reply + Send + Sync + 'static,
    roots: Roots,
) -> (String, bool) {
    let server = Server::start(reply).await;
    let authority = asked(&server, roots);
    let checkpoint = Stored::of(9).checkpoint(9);
    let error = shown(&authority, &checkpoint, now()).await.unwrap_err();
    let words = error.to_string();
    assert!(
        words.starts_with("asking the timestamp authority one at 127.0.0.1: "),
        "{words}"
    );
    (words, error.is_transient())
}

#[tokio::test]
async fn the_answer_to_another_request_is_refused() {
    let openssl = OpenSsl::new("Authority A", P_256);
    let (roots, first) = (openssl.roots(), Mutex::new(None));
    let server = Server::start(move |query| {
        let mut first = first.lock().unwrap();
        let reply = first.get_or_insert_with(|| openssl.reply(query));
        answer("200 OK", reply)
    })
    .await;
    let authority = asked(&server, roots);
    let checkpoint = Stored::of(9).checkpoint(9);
    shown(&authority, &checkpoint, now()).await.unwrap();
    let error = shown(&authority, &checkpoint, now()).await.unwrap_err();
    assert!(matches!(error, AnchorError::Refused { .. }), "{error}");
    assert!(
        error.to_string().contains("its nonce is not ours"),
        "{error}"
    );
}

#[tokio::test]
async fn a_clock_that_is_far_from_ours_is_refused() {
    let openssl = Arc::new(OpenSsl::new("Authority A", P_256));
    let server = of_openssl(&openssl).await;
    let authority = asked(&server, openssl.roots());
    let checkpoint = Stored::of(9).checkpoint(9);
    for near in [-240, 240] {
        let now = now().plus_seconds(near);
        shown(&authority, &checkpoint, now).await.unwrap();
    }
    for far in [-400, 400] {
        let now = now().plus_seconds(far);
        let error = shown(&authority, &checkpoint, now).await.unwrap_err();
        assert!(matches!(error, AnchorError::Refused { .. }), "{error}");
        assert!(
            error.to_string().contains("which of the clocks is wrong"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_authority_of_other_roots_is_refused() {
    let (a, b) = (
        OpenSsl::new("Authority A", P_256),
        OpenSsl::new("Authority B", P_256),
    );
    let roots = b.roots();
    let (words, transient) = refused(move |query| answer("200 OK", &a.reply(query)), roots).await;
    assert!(!transient);
    assert!(
        words.contains("anchor.timestamps names as roots"),
        "{words}"
    );
}

#[tokio::test]
async fn what_an_authority_does_not_stamp_it_refuses_in_words() {
    let openssl = OpenSsl::with_digests("Authority A", P_256, "sha512");
    let roots = openssl.roots();
    let (words, transient) =
        refused(move |query| answer("200 OK", &openssl.reply(query)), roots).await;
    assert!(!transient);
    assert!(
        words.contains("it does not know the hash algorithm"),
        "{words}"
    );
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_it() {
    let roots = OpenSsl::new("Authority A", P_256).roots();
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let begun = [head, vec![b'x'; 100_000]].concat();
    let (words, transient) = refused(move |_| Reply::Endless(begun.clone()), roots.clone()).await;
    assert!(
        !transient && words.contains("more than 65536 bytes"),
        "{words}"
    );
    let (words, transient) = refused(|_| answer("200 OK", &vec![0x30; 10_000_000]), roots).await;
    assert!(
        !transient && words.contains("more than 65536 bytes"),
        "{words}"
    );
}

#[tokio::test]
async fn an_authority_that_is_silent_costs_no_more_than_the_deadline() {
    let roots = OpenSsl::new("Authority A", P_256).roots();
    let server = Server::start(|_| Reply::Silence).await;
    let short = Duration::from_millis(200);
    let zero = Timestamp::new(
        "one".to_owned(),
        server.url(),
        roots.clone(),
        Duration::ZERO,
    );
    assert_eq!(zero.err(), Some(TimestampSetupError::Deadline));
    let authority = Timestamp::new("one".to_owned(), server.url(), roots, short).unwrap();
    let checkpoint = Stored::of(9).checkpoint(9);
    let error = shown(&authority, &checkpoint, now()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(
        error.to_string().contains("no whole answer within 200 ms"),
        "{error}"
    );
}

#[tokio::test]
async fn other_answers_say_whether_to_ask_again() {
    let openssl = OpenSsl::new("Authority A", P_256);
    let roots = openssl.roots();
    for (status, passes) in [
        ("500 Internal Server Error", true),
        ("503 Service Unavailable", true),
        ("429 Too Many Requests", true),
        ("404 Not Found", false),
        ("302 Found", false),
        ("204 No Content", false),
    ] {
        let (words, transient) = refused(move |_| answer(status, b""), roots.clone()).await;
        assert_eq!(transient, passes, "{words}");
    }
    // A page of somebody else's, and nothing.
    for body in [&b"<html>log in first</html>"[..], b""] {
        let (words, transient) = refused(move |_| answer("200 OK", body), roots.clone()).await;
        assert!(
            !transient && words.contains("that of a timestamp authority"),
            "{words}"
        );
    }
    // Cut off.
    let (words, transient) = refused(
        move |query| {
            let Reply::Bytes(mut bytes) = answer("200 OK", &openssl.reply(query)) else {
                panic!("an answer is bytes")
            };
            bytes.truncate(bytes.len() - 100);
            Reply::Bytes(bytes)
        },
        roots.clone(),
    )
    .await;
    assert!(transient, "{words}");
    // Nobody there.
    let server = Server::start(|_| Reply::Silence).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gone.local_addr().unwrap().port();
    drop(gone);
    let mut url = server.url();
    url.set_port(Some(port)).unwrap();
    let authority = Timestamp::new("one".to_owned(), url, roots, DEADLINE).unwrap();
    let error = shown(&authority, &Stored::of(9).checkpoint(9), now()).await;
    assert!(error.unwrap_err().is_transient());
}

#[test]
fn roots_are_certificates_in_a_file() {
    let openssl = OpenSsl::new("Authority A", P_256);
    let pem = std::fs::read(openssl.path("root.pem")).unwrap();
    Roots::parse(&[b"words\n".to_vec(), pem.clone()].concat()).unwrap();
    Roots::parse(&pem.repeat(64)).unwrap();
    for (wrong, why) in [
        (Vec::new(), "holds no certificate"),
        (b"words".to_vec(), "holds no certificate"),
        (pem.repeat(65), "more than 64"),
        (pem[..pem.len() - 40].to_vec(), ""),
        (
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec(),
            "a certificate in it",
        ),
    ] {
        let error = Roots::parse(&wrong).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let error = Roots::read(&openssl.path("nowhere")).unwrap_err();
    assert!(error.to_string().contains("give a PEM file"), "{error}");
    assert!(Roots::read(openssl.path("nowhere").parent().unwrap()).is_err());
}
