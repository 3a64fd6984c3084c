//! The second verifier, `tests/verifier.py`, written from `docs/ledger.md` alone: what ours is asked here, it is asked too, and
//! has to say the same. One Python answers all questions of a test (`tests/twin.py`).

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::chain::Verdict;
use caretaker::attest::json::{self, Json, JsonError};
use caretaker::attest::{PublicKey, Statement, StatementError, TrustRoot, TrustRootError};
use caretaker::audit::{BundleError, BundleReport, Failure, Pin, verify_bundle_with};
use caretaker::log::{AuditorPolicy, SignedCheckpoint};
use serde_json::{Value, json};

/// The verifier, to be run by itself.
pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verifier.py");

/// A Python that answers.
pub(crate) struct Twin {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Twin {
    fn start(pure: bool) -> Self {
        let mut command = Command::new("python3");
        command
            .args(["-B", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/twin.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env_remove("VERIFIER_PURE");
        if pure {
            command.env("VERIFIER_PURE", "1");
        }
        let mut child = command.spawn().expect("python3 is needed for the twin");
        Self {
            questions: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    /// One whose signatures are checked by arithmetic on integers, without a library.
    pub(crate) fn pure() -> Self {
        Self::start(true)
    }

    /// One that uses the library `cryptography` for signatures, if it is there.
    pub(crate) fn fast() -> Self {
        Self::start(false)
    }

    fn ask(&mut self, question: &Value) -> Value {
        let mut answer = String::new();
        let sent = writeln!(self.questions, "{question}");
        let read = sent.and_then(|()| self.answers.read_line(&mut answer));
        if read.is_ok_and(|length| length > 0) {
            return serde_json::from_str(&answer).unwrap();
        }
        let mut told = String::new();
        let errors = self.child.stderr.take();
        errors.unwrap().read_to_string(&mut told).unwrap();
        panic!("the twin failed over {question:.300}:\n{told}");
    }

    /// Whether it uses a library.
    pub(crate) fn is_fast(&mut self) -> bool {
        self.ask(&json!(["fast"])) == json!(true)
    }

    pub(crate) fn verifies(&mut self, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let [key, message, signature] = [key, message, signature].map(|it| STANDARD.encode(it));
        self.ask(&json!(["signature", key, message, signature])) == json!(true)
    }
}

static TWIN: LazyLock<Mutex<Twin>> = LazyLock::new(|| Mutex::new(Twin::fast()));

fn ask(question: &Value) -> Value {
    TWIN.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .ask(question)
}

#[track_caller]
fn assert_accepted(what: &str, data: &[u8], more: &[Value], ours: bool) {
    let question = [&[json!(what), json!(STANDARD.encode(data))], more].concat();
    let accepted = ask(&Value::Array(question)) == json!(true);
    let shown = String::from_utf8_lossy(&data[..data.len().min(4_000)]);
    assert_eq!(accepted, ours, "the twin about the {what} {shown}");
}

/// [`json::read`].
#[track_caller]
pub(crate) fn read(data: &[u8], limit: usize) -> Result<Json<'_>, JsonError> {
    let read = json::read(data, limit);
    assert_accepted("json", data, &[json!(limit)], read.is_ok());
    read
}

/// [`Statement::parse`].
#[track_caller]
pub(crate) fn statement(data: &[u8]) -> Result<Statement, StatementError> {
    let parsed = Statement::parse(data);
    assert_accepted("statement", data, &[], parsed.is_ok());
    parsed
}

/// [`TrustRoot::parse_unpinned`].
#[track_caller]
pub(crate) fn trust_root(data: &[u8]) -> Result<TrustRoot, TrustRootError> {
    let parsed = TrustRoot::parse_unpinned(data);
    assert_accepted("trust-root", data, &[], parsed.is_ok());
    parsed
}

/// [`PublicKey::from_bytes`].
#[track_caller]
pub(crate) fn key(bytes: &[u8; 32]) -> Option<PublicKey> {
    let key = PublicKey::from_bytes(bytes).ok();
    assert_accepted("key", bytes, &[], key.is_some());
    key
}

/// [`caretaker::audit::verify_bundle`].
#[track_caller]
pub(crate) fn verify_bundle(
    bundle: &[u8],
    pin: &Pin,
    seen: Option<&SignedCheckpoint>,
) -> Result<BundleReport, BundleError> {
    verify_bundle_under(bundle, pin, seen, None)
}

/// [`verify_bundle_with`], with the policy as it is written.
#[track_caller]
pub(crate) fn verify_bundle_under(
    bundle: &[u8],
    pin: &Pin,
    seen: Option<&SignedCheckpoint>,
    policy: Option<&str>,
) -> Result<BundleReport, BundleError> {
    let parsed = policy.map(|policy| AuditorPolicy::parse(policy.as_bytes()).unwrap());
    let ours = verify_bundle_with(bundle, pin, seen, parsed.as_ref());
    let seen = seen.map(ToString::to_string);
    let twins = twins(bundle, pin, seen.as_deref(), policy);
    let (verdict, said) = match &ours {
        Ok(report) => (report.report.verdict, serde_json::to_value(report).unwrap()),
        Err(error) => (error.verdict(), ended(error)),
    };
    assert_same(verdict, &said, &twins);
    ours
}

/// What the twin says about a bundle, whatever ours says.
pub(crate) fn twins(bundle: &[u8], pin: &Pin, seen: Option<&str>, policy: Option<&str>) -> Value {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let mut words = vec![json!("verify"), json!(file("bundle", bundle))];
    words.push(json!("--trust-root"));
    words.push(match pin {
        Pin::Digest(digest) => json!(digest.to_string()),
        Pin::Root(root) => json!(file("root", &root.to_bytes().unwrap())),
    });
    for (name, text) in [("checkpoint", seen), ("policy", policy)] {
        if let Some(text) = text {
            words.push(json!(format!("--{name}")));
            words.push(json!(file(name, text.as_bytes())));
        }
    }
    ask(&Value::Array(words))
}

/// The document where nothing was judged.
fn ended(error: &BundleError) -> Value {
    let failure = Failure::from(error.clone());
    json!({"verdict": error.verdict(), "events": [], "failures": [failure], "gaps": [], "checkpoint": null})
}

/// Two verifiers' documents are the same but for words that are for people, and for timestamps, which the twin leaves out.
#[track_caller]
pub(crate) fn assert_same(verdict: Verdict, ours: &Value, twins: &Value) {
    let both = format!("ours:\n{ours:#}\nthe twin's:\n{twins:#}");
    let code = match verdict {
        Verdict::Valid => 0,
        Verdict::Invalid => 1,
        Verdict::CannotVerify => 3,
    };
    assert_eq!(twins["code"], code, "{both}");
    // Break it: let `verifier.py` pass over a rule; every test of a bundle that breaks it fails here.
    assert_eq!(failures(ours), failures(twins), "{both}");
    assert_eq!(events(ours), events(twins), "{both}");
    for member in [
        "verdict",
        "gaps",
        "checkpoint",
        "incident",
        "ending",
        "trust_roots",
        "cosignatures",
    ] {
        assert_eq!(ours.get(member), twins.get(member), "{member}: {both}");
    }
}

/// Place and rule. How often one event breaks one rule is not for both to say.
fn failures(document: &Value) -> BTreeSet<(u64, String)> {
    let failures = document["failures"].as_array().unwrap().iter();
    let found = failures.map(|failure| {
        let rule = failure["rule"].as_str().unwrap().to_owned();
        (failure["seq"].as_u64().unwrap(), rule)
    });
    found.collect()
}

fn events(document: &Value) -> Vec<Value> {
    let mut events = document["events"].as_array().unwrap().clone();
    for event in &mut events {
        event["reason"] = json!(!event["reason"].is_null());
    }
    events
}
