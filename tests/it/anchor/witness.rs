//! Witnesses as the log meets them: ours, and such as answer anything else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Response, header};
use caretaker::anchor::witness::{Witness, WitnessSetupError};
use caretaker::anchor::{Anchor as _, AnchorError, AnchorKind, LogReader, Receipt};
use caretaker::attest::SecretKey;
use caretaker::clock::Millis;
use caretaker::log::{
    LogPolicy, NoteSignature, SignatureType, SignedCheckpoint, TileId, TreeHash, VerifierKey,
    WitnessSigner,
};
use caretaker::witness::Limits;
use tokio_util::io::ReaderStream;

use crate::log::scene::{self, NOW, ORIGIN, Stored, log};
use crate::serve::process::bounded;
use crate::witness::scene::{Place, cosigned, forked, served, step};

/// The log behind the checkpoint, and how often it was asked for a proof.
struct Reader<'a> {
    stored: &'a Stored,
    asked: Mutex<Vec<(u64, u64)>>,
    broken: bool,
}

impl<'a> Reader<'a> {
    fn of(stored: &'a Stored) -> Self {
        Self {
            stored,
            asked: Mutex::default(),
            broken: false,
        }
    }
}

#[async_trait]
impl LogReader for Reader<'_> {
    async fn consistency(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, AnchorError> {
        self.asked.lock().unwrap().push((old, new));
        if self.broken || new > self.stored.frontier.size() {
            return Err(AnchorError::Unanswered {
                action: "reading the log".to_owned(),
                reason: "no such hash".to_owned(),
            });
        }
        Ok(self.stored.consistency(old, new))
    }

    async fn file(&self, _: TileId) -> Result<Vec<u8>, AnchorError> {
        panic!("a witness wants no files")
    }
}

fn at(base: &str, key: &str) -> Witness {
    let url = format!("{base}/").parse().unwrap();
    Witness::new("auditor", &url, key, Duration::from_mins(1)).unwrap()
}

/// Shows a checkpoint of so many leaves.
async fn show(
    witness: &Witness,
    stored: &Stored,
    size: u64,
    last: Option<&Receipt>,
) -> Result<Receipt, AnchorError> {
    let checkpoint = stored.checkpoint(size);
    let reader = Reader::of(stored);
    let shown = witness.anchor(&checkpoint, &reader, last, NOW);
    bounded("a witness", shown).await
}

/// What a verifier makes of a checkpoint and a receipt.
fn counts(stored: &Stored, receipt: &Receipt, place: &Place) -> bool {
    let mut checkpoint = stored.checkpoint(receipt.size);
    let text = std::str::from_utf8(&receipt.bytes).unwrap();
    let line = NoteSignature::parse(text.strip_suffix('\n').unwrap()).unwrap();
    checkpoint.add(line).unwrap();
    let policy = LogPolicy::new(vec![log().verifier()], vec![place.key.clone()], 1);
    policy.unwrap().verify(&checkpoint).is_ok()
}

#[tokio::test]
async fn each_checkpoint_is_shown_from_where_the_last_receipt_is() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    assert_eq!(
        (witness.kind(), witness.name()),
        (AnchorKind::Witness, "auditor")
    );
    let stored = Stored::of(30);
    let mut last = None;
    for size in [5, 6, 6, 20, 30] {
        let receipt = show(&witness, &stored, size, last.as_ref()).await.unwrap();
        assert_eq!(receipt.size, size);
        assert!(counts(&stored, &receipt, &place));
        last = Some(receipt);
    }
}

// The line to break is named in `caretaker::worker::anchoring`; here, that each way to confirm refuses.
#[tokio::test]
async fn a_kept_cosignature_is_of_one_checkpoint_and_one_witness() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    let stored = Stored::of(30);
    let receipt = show(&witness, &stored, 20, None).await.unwrap();
    let checkpoint = stored.checkpoint(20);
    witness.confirm(&checkpoint, &receipt).await.unwrap();
    let another = stored.checkpoint(21);
    let refused = witness.confirm(&another, &receipt).await.unwrap_err();
    assert!(matches!(refused, AnchorError::Refused { .. }), "{refused}");
    for bytes in [
        &b""[..],
        b"\n",
        b"it is fine\n",
        b"\xff\n",
        &receipt.bytes[1..],
    ] {
        let forged = Receipt {
            size: 20,
            bytes: bytes.to_vec(),
        };
        assert!(witness.confirm(&checkpoint, &forged).await.is_err());
    }
    let public = SecretKey::from_seed(&[9; 32]).public();
    let other = VerifierKey::new(place.key.name().clone(), SignatureType::Witness, public);
    let other = at(&base, &other.to_string());
    assert!(other.confirm(&checkpoint, &receipt).await.is_err());
}

#[tokio::test]
async fn a_receipt_that_was_lost_costs_one_more_question() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    let stored = Stored::of(30);
    let first = show(&witness, &stored, 5, None).await.unwrap();
    // Answers that never arrived, up to the very size that is shown now.
    show(&witness, &stored, 9, Some(&first)).await.unwrap();
    for (size, last) in [(9, Some(&first)), (12, Some(&first)), (20, None)] {
        let receipt = show(&witness, &stored, size, last).await.unwrap();
        assert!(counts(&stored, &receipt, &place));
    }
    let reader = Reader::of(&stored);
    let checkpoint = stored.checkpoint(25);
    witness
        .anchor(&checkpoint, &reader, Some(&first), NOW)
        .await
        .unwrap();
    assert_eq!(*reader.asked.lock().unwrap(), [(5, 25), (20, 25)]);
}

#[track_caller]
fn contradicts(shown: Result<Receipt, AnchorError>, words: &str) {
    match shown {
        Err(error @ AnchorError::Contradiction { .. }) => {
            assert!(error.to_string().contains(words), "{error}");
            assert!(!error.is_transient());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_log_that_forks_contradicts_its_witness() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    let last = show(&witness, &Stored::of(9), 9, None).await.unwrap();
    let second = forked(7, 12);
    // The witness's tree and the log's exclude each other, whatever the log believes to have shown.
    let shown = show(&witness, &second, 12, Some(&last)).await;
    contradicts(shown, "the witness holds another history");
    contradicts(
        show(&witness, &second, 12, None).await,
        "the witness holds another history",
    );
    for last in [None, Some(&last)] {
        let shown = show(&witness, &second, 9, last).await;
        contradicts(shown, "the witness has cosigned another tree of 9 leaves");
    }
}

#[tokio::test]
async fn a_log_that_was_rolled_back_contradicts_its_witness() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    let last = show(&witness, &Stored::of(20), 20, None).await.unwrap();
    let cut = Stored::of(10);
    for last in [None, Some(&last)] {
        let shown = show(&witness, &cut, 10, last).await;
        contradicts(
            shown,
            "the witness has cosigned 20 leaves, and this checkpoint has 10",
        );
    }
    // Cut, and grown anew beyond what the witness has seen.
    let anew = forked(10, 30);
    let shown = show(&witness, &anew, 30, Some(&last)).await;
    contradicts(shown, "the witness holds another history");
}

#[tokio::test]
async fn a_later_checkpoint_that_was_shown_meanwhile_is_no_contradiction() {
    let place = Place::new();
    let base = served(place.witness(), Limits::default()).await;
    let witness = at(&base, &place.key.to_string());
    let stored = Stored::of(30);
    let last = show(&witness, &stored, 20, None).await.unwrap();
    for last in [None, Some(&last)] {
        let error = show(&witness, &stored, 10, last).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("shown meanwhile"), "{error}");
    }
    // A log that cannot be read proves nothing against itself.
    let (checkpoint, cut) = (stored.checkpoint(10), Stored::of(10));
    let reader = Reader {
        broken: true,
        ..Reader::of(&cut)
    };
    let error = witness.anchor(&checkpoint, &reader, None, NOW).await;
    assert!(error.unwrap_err().is_transient());
}

/// A witness that answers what a test says; to each request in turn, the last answer to all that follow.
async fn answering(
    answers: impl IntoIterator<Item = (u16, &'static str, String)>,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let mut answers = answers
        .into_iter()
        .collect::<Vec<_>>()
        .into_iter()
        .peekable();
    let mut last = None;
    let next = move || {
        last = answers.next().or_else(|| last.clone());
        last.clone().unwrap()
    };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let next = Arc::new(Mutex::new(next));
    let router = Router::new().fallback(move |body: String| {
        let answer = (next.lock().unwrap())();
        seen.lock().unwrap().push(body);
        async move {
            let (status, kind, body) = answer;
            let response = Response::builder()
                .status(status)
                .header(header::CONTENT_TYPE, kind);
            response
                .header(header::LOCATION, "/elsewhere")
                .body(Body::from(body))
                .unwrap()
        }
    });
    (listening(router).await, asked)
}

async fn listening(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

fn signer() -> WitnessSigner {
    scene::witness(1)
}

/// The witness's line for a checkpoint.
fn line(checkpoint: &SignedCheckpoint, signer: &WitnessSigner, at: Millis) -> String {
    let policy = LogPolicy::new(vec![log().verifier()], vec![], 0).unwrap();
    let trusted = policy.verify(checkpoint).unwrap();
    format!("{}\n", signer.cosign(&trusted, at).unwrap())
}

#[tokio::test]
async fn only_the_witness_s_own_word_for_this_checkpoint_counts() {
    let stored = Stored::of(30);
    let checkpoint = stored.checkpoint(9);
    let good = line(&checkpoint, &signer(), NOW);
    let other = line(&checkpoint, &scene::witness(2), NOW);
    let elsewhere = line(&stored.checkpoint(8), &signer(), NOW);
    // The same name, another key.
    let secret = SecretKey::from_seed(&[99; 32]);
    let usurper = WitnessSigner::new(signer().verifier().name().clone(), secret);
    let usurped = line(&checkpoint, &usurper, NOW);
    let log_line = format!("{}\n", checkpoint.note().signatures()[0]);
    let text = |at: usize, to: &str| {
        let mut text = good.clone();
        text.replace_range(at..=at, to);
        text
    };
    let key = signer().verifier().to_string();
    for (said, taken) in [
        (good.clone(), true),
        (format!("{other}{good}"), true),
        (format!("{good}{other}{usurped}{log_line}"), true),
        (format!("{good}{good}"), true),
        (String::new(), false),
        ("\n".to_owned(), false),
        (good.trim_end().to_owned(), false),
        (format!("{good}\n"), false),
        (good.replace('\n', "\r\n"), false),
        (other.clone(), false),
        (usurped.clone(), false),
        (log_line.clone(), false),
        (elsewhere.clone(), false),
        // One line that is, and one that is not.
        (format!("{good}{elsewhere}"), false),
        (format!("{elsewhere}{good}"), false),
        (format!("{checkpoint}{good}"), false),
        (format!("{good}garbage\n"), false),
        (text(good.len() - 10, "_"), false),
        (text(good.len() - 10, "A").replace(&good, ""), false),
    ] {
        let (base, _) = answering([(200, "text/plain", said.clone())]).await;
        let shown = show(&at(&base, &key), &stored, 9, None).await;
        match shown {
            Ok(receipt) => {
                assert!(taken, "{said}");
                // What others said is not kept.
                assert_eq!(
                    receipt,
                    Receipt {
                        size: 9,
                        bytes: good.clone().into_bytes()
                    }
                );
            }
            Err(error) => {
                assert!(!taken, "{said} {error}");
                assert!(
                    matches!(error, AnchorError::Refused { .. }),
                    "{said} {error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_cosignature_far_from_now_is_refused() {
    let stored = Stored::of(30);
    let key = signer().verifier().to_string();
    let said = |at: Millis| {
        let line = line(&stored.checkpoint(9), &signer(), at);
        async { answering([(200, "text/plain", line)]).await.0 }
    };
    for seconds in [-600, -1, 0, 600] {
        let base = said(NOW.plus_seconds(seconds)).await;
        show(&at(&base, &key), &stored, 9, None).await.unwrap();
    }
    for moment in [
        NOW.plus_seconds(-601),
        NOW.plus_seconds(601),
        NOW.plus_seconds(365 * 86_400),
        Millis(0),
        Millis(i64::MAX),
    ] {
        let refused = show(&at(&said(moment).await, &key), &stored, 9, None)
            .await
            .unwrap_err();
        assert!(matches!(refused, AnchorError::Refused { .. }), "{refused}");
        assert!(refused.to_string().contains("set the clocks"), "{refused}");
    }
}

#[tokio::test]
async fn a_witness_that_answers_anything_else_is_not_believed() {
    let stored = Stored::of(30);
    let good = line(&stored.checkpoint(9), &signer(), NOW);
    let size = "text/x.tlog.size";
    let mut seen = Vec::new();
    for (status, kind, said) in [
        (200, "text/plain", "garbage".to_owned()),
        (200, "text/plain", good.repeat(200)),
        (200, "text/html", "<html>\u{1b}[31m</html>".to_owned()),
        (201, "text/plain", good.clone()),
        (204, "text/plain", String::new()),
        (301, "text/plain", good.clone()),
        (400, "text/plain", "malformed".to_owned()),
        (401, "text/plain", String::new()),
        (403, "text/plain", "who are you?".to_owned()),
        (404, "text/plain", "no page".to_owned()),
        (409, "text/plain", "5\n".to_owned()),
        (409, size, "5".to_owned()),
        (409, size, "05\n".to_owned()),
        (409, size, "-1\n".to_owned()),
        (409, size, "18446744073709551616\n".to_owned()),
        (409, size, "0\n".to_owned()),
        (413, "text/plain", String::new()),
        (408, "text/plain", String::new()),
        (429, "text/plain", String::new()),
        (500, "text/plain", good.clone()),
        (503, "text/plain", String::new()),
        (422, "text/plain", "no".to_owned()),
        (409, size, "10\n".to_owned()),
        (409, size, "9223372036854775807\n".to_owned()),
    ] {
        let (base, _) = answering([(status, kind, said)]).await;
        let witness = at(&base, &signer().verifier().to_string());
        let error = show(&witness, &stored, 9, None).await.unwrap_err();
        let kind = match error {
            AnchorError::Unanswered { .. } => "unanswered",
            AnchorError::Refused { .. } => "refused",
            AnchorError::Contradiction { .. } => "contradiction",
        };
        seen.push(format!("{status} {kind}: {error}").replace(&base, "http://WITNESS"));
    }
    insta::assert_snapshot!(seen.join("\n"), @r"
    200 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: a last line without its end; check the address; `/add-checkpoint` follows it
    200 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: more than 16384 bytes; check the address; `/add-checkpoint` follows it
    200 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: a last line without its end; check the address; `/add-checkpoint` follows it
    201 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 201 Created, — witness.example/w1 2SQntAAAAABrSdIAo2xjsBJ95ZRrWPmenhqGvAhz0M0cHfzP4qlf7lEDudxjrB3LbfBFc8svzBu+n0kBCk/qsJ9YOR6aF8TTFrw2AQ==; check the address; `/add-checkpoint` follows it
    204 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 204 No Content, and nothing else; check the address; `/add-checkpoint` follows it
    301 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 301 Moved Permanently, — witness.example/w1 2SQntAAAAABrSdIAo2xjsBJ95ZRrWPmenhqGvAhz0M0cHfzP4qlf7lEDudxjrB3LbfBFc8svzBu+n0kBCk/qsJ9YOR6aF8TTFrw2AQ==; check the address; `/add-checkpoint` follows it
    400 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 400 Bad Request, malformed; check the address; `/add-checkpoint` follows it
    401 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 401 Unauthorized, and nothing else; check the address; `/add-checkpoint` follows it
    403 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: it does not trust the log's key (who are you?); give it the log's present key as `caretaker log keys` prints it
    404 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: it does not know the log, or it is none (no page); give it the log's key (`caretaker log keys`), and the configuration its right address
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 409 without a size, 5; check the address; `/add-checkpoint` follows it
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 409 without a size, 5; check the address; `/add-checkpoint` follows it
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 409 without a size, 05; check the address; `/add-checkpoint` follows it
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 409 without a size, -1; check the address; `/add-checkpoint` follows it
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 409 without a size, 18446744073709551616; check the address; `/add-checkpoint` follows it
    409 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: a conflict over the size 0 that it was given; check the address; `/add-checkpoint` follows it
    413 refused: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: no witness answers this: status 413 Payload Too Large, and nothing else; check the address; `/add-checkpoint` follows it
    408 unanswered: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: status 408 Request Timeout
    429 unanswered: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: status 429 Too Many Requests
    500 unanswered: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: status 500 Internal Server Error
    503 unanswered: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: status 503 Service Unavailable
    422 contradiction: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: the witness holds another history, since the proof does not lead from there to here (no); the log or the anchor was changed, look before anything else is merged
    409 unanswered: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: the witness has cosigned 10 leaves, which the log has by now: a later checkpoint was shown meanwhile
    409 contradiction: showing the checkpoint of 9 leaves to the witness auditor at http://WITNESS: the witness has cosigned 9223372036854775807 leaves, and this checkpoint has 9; the log or the anchor was changed, look before anything else is merged
    ");
    // A body without end is left.
    let endless = Router::new()
        .fallback(|| async { Body::from_stream(ReaderStream::new(tokio::io::repeat(b'x'))) });
    let witness = at(&listening(endless).await, &signer().verifier().to_string());
    let error = show(&witness, &stored, 9, None).await.unwrap_err();
    assert!(
        error.to_string().contains("more than 16384 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn a_size_that_keeps_changing_ends_after_the_second_question() {
    let stored = Stored::of(30);
    let size = "text/x.tlog.size";
    let key = signer().verifier().to_string();
    let held = |text: &str| (409, size, text.to_owned());
    let (base, asked) = answering([held("5\n"), held("7\n")]).await;
    let error = show(&at(&base, &key), &stored, 9, None).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(asked.lock().unwrap().len(), 2);
    let (base, asked) = answering([held("5\n"), held("12\n")]).await;
    let shown = show(&at(&base, &key), &Stored::of(9), 9, None).await;
    contradicts(shown, "12 leaves");
    let bodies = asked.lock().unwrap().clone();
    assert!(
        bodies[0].starts_with(&format!("old 0\n\n{ORIGIN}\n9\n")),
        "{}",
        bodies[0]
    );
    assert!(bodies[1].starts_with("old 5\n"), "{}", bodies[1]);
    assert_eq!(bodies.len(), 2);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let stored = Stored::of(30);
    let good = line(&stored.checkpoint(9), &signer(), NOW);
    for status in [301, 302, 303, 307, 308] {
        let answers = [
            (status, "text/plain", String::new()),
            (200, "text/plain", good.clone()),
        ];
        let (base, asked) = answering(answers).await;
        let witness = at(&base, &signer().verifier().to_string());
        let error = show(&witness, &stored, 9, None).await.unwrap_err();
        assert!(matches!(error, AnchorError::Refused { .. }), "{error}");
        assert_eq!(asked.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_witness_that_hangs_is_given_up_at_the_deadline() {
    let stored = Stored::of(30);
    let router = Router::new().fallback(std::future::pending::<()>);
    let url = listening(router).await.parse().unwrap();
    let key = signer().verifier().to_string();
    let witness = Witness::new("auditor", &url, &key, Duration::from_millis(200)).unwrap();
    let error = show(&witness, &stored, 9, None).await.unwrap_err();
    assert!(
        error.is_transient() && error.to_string().contains("200 ms"),
        "{error}"
    );
    // Nor is anybody there at all.
    let witness = at("http://127.0.0.1:1", &key);
    let error = show(&witness, &stored, 9, None).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[tokio::test]
async fn one_witness_counts_once_however_often_it_signs() {
    let place = Place::new();
    let witness = place.witness();
    let stored = Stored::of(9);
    let mut checkpoint = stored.checkpoint(9);
    for seconds in 0..3 {
        let moment = NOW.plus_seconds(seconds);
        let old = if seconds == 0 { 0 } else { 9 };
        let signature = cosigned(witness.add_checkpoint(&step(&stored, old, 9), moment));
        // As somebody would write it who wants it to look like many.
        let text = format!("{checkpoint}{signature}\n");
        checkpoint = SignedCheckpoint::parse(text.as_bytes()).unwrap();
    }
    assert_eq!(checkpoint.note().signatures().len(), 4);
    let keys = vec![place.key.clone(), scene::witness(1).verifier()];
    let policy = |quorum| LogPolicy::new(vec![log().verifier()], keys.clone(), quorum).unwrap();
    let trusted = policy(1).verify(&checkpoint).unwrap();
    assert_eq!(trusted.cosignatures().len(), 1);
    assert_eq!(trusted.cosignatures()[0].seconds, 1_800_000_002);
    policy(2).verify(&checkpoint).unwrap_err();
}

#[test]
fn another_key_than_a_witness_s_is_refused() {
    let url = "http://127.0.0.1:1".parse().unwrap();
    for key in [log().verifier().to_string(), "no key".to_owned()] {
        let refused = Witness::new("auditor", &url, &key, Duration::from_secs(1))
            .err()
            .unwrap();
        assert!(
            matches!(refused, WitnessSetupError::Key { .. }),
            "{refused}"
        );
    }
}
