//! What the stories need: keys, a moment, tokens, a gate, and whoever forges receipts.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::attest::json::{Json, read};
use caretaker::attest::{Label, SecretKey, Text};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
pub(super) use caretaker::receipts::Expectation;
use caretaker::receipts::verify::Reader;
use caretaker::receipts::{
    AgentId, Arguments, Call, ChainReport, Checked, Constraints, Decision, Door, Gate,
    GivenArguments, Grant, Intent, Issuer, Outcome, PemKey, PemKeyId, ReceiptChain, ReceiptHash,
    Revocations, Session, Token, ToolName, TrustedKeys, Walk,
};
use ed25519_dalek::{Signer as _, SigningKey};

/// 15 January 2027, 08:00 UTC, in seconds.
pub(super) const NOON: i64 = 1_800_000_000;
/// The key that signs tokens, the gate's, and somebody's.
pub(super) const ISSUER: u8 = 1;
pub(super) const GATE: u8 = 2;
pub(super) const STRANGER: u8 = 3;

pub(super) fn at(seconds: i64) -> Millis {
    Millis(seconds * 1_000)
}

pub(super) fn key(number: u8) -> PemKey {
    PemKey::new(SecretKey::from_seed(&[number; 32]))
}

pub(super) fn gate_key() -> Arc<PemKey> {
    Arc::new(key(GATE))
}

pub(super) fn trusting(numbers: &[u8]) -> TrustedKeys {
    TrustedKeys::new(numbers.iter().map(|number| key(*number).public()))
}

pub(super) fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

pub(super) fn json(text: &str) -> Json<'_> {
    read(text.as_bytes(), usize::MAX).unwrap()
}

pub(super) fn intent(text: &str) -> Intent {
    Intent::from_json(&json(text)).unwrap()
}

pub(super) fn constraints(text: &str) -> Constraints {
    Constraints::from_json(&json(text)).unwrap()
}

pub(super) fn issuer(number: u8) -> Issuer {
    Issuer::new("desk.example", Arc::new(key(number))).unwrap()
}

/// For an hour from noon on.
pub(super) fn grant(tool: &str, limits: &str, purpose: Option<&str>) -> Grant {
    Grant {
        agent: agent("agent:fixer"),
        tool: ToolName::parse(tool).unwrap(),
        constraints: constraints(limits),
        intent: purpose.map(intent),
        ttl_seconds: 3_600,
    }
}

pub(super) fn token(tool: &str, limits: &str, purpose: Option<&str>) -> Token {
    issuer(ISSUER)
        .mint(&grant(tool, limits, purpose), at(NOON))
        .unwrap()
}

pub(super) fn gate() -> Gate {
    Gate::new(trusting(&[ISSUER]), Revocations::default())
}

/// What the gate says about a call a minute after noon.
pub(super) fn asked(
    gate: &Gate,
    token: &Token,
    chain: &[Token],
    tool: &str,
    arguments: &str,
) -> Checked {
    asked_by(gate, token, chain, (None, tool, arguments), NOON + 60)
}

pub(super) fn asked_by(
    gate: &Gate,
    token: &Token,
    chain: &[Token],
    (agent, tool, arguments): (Option<&str>, &str, &str),
    now: i64,
) -> Checked {
    let given = GivenArguments::read(arguments.as_bytes());
    let call = Call {
        tool,
        agent,
        arguments: &given.judged,
        now: at(now),
    };
    gate.check(token, chain, &call)
}

/// Where and why a call was denied, or "ALLOW".
pub(super) fn said(checked: &Checked) -> String {
    match &checked.denial {
        None => "ALLOW".to_owned(),
        Some(denial) => format!("{}: {}", denial.stage, denial.reason),
    }
}

/// The receipt of a call, after the root of its session.
pub(super) fn receipted(gate: &Gate, token: &Token, tool: &str, arguments: &str) -> String {
    let given = GivenArguments::read(arguments.as_bytes());
    let call = Call {
        tool,
        agent: None,
        arguments: &given.judged,
        now: at(NOON + 60),
    };
    let outcome = gate.check(token, &[], &call).outcome(&call, given.digest);
    let (mut chain, root) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let line = chain.append(&outcome, at(NOON + 60)).unwrap();
    root.to_jsonl() + &line.to_jsonl()
}

pub(super) fn session() -> Session {
    Session {
        id: Label::new("incident-17").unwrap(),
        gate: agent("agent:caretaker.gate"),
        input: Sha256Digest::of(b"make the tests pass"),
        door: Door::HookGate,
        advisory: false,
        policy: None,
    }
}

/// An allowed call of `tool`, by no token.
pub(super) fn allowed(tool: &str) -> Outcome {
    Outcome {
        decision: Decision::Allow,
        stage: None,
        reason: Text::new("ok").unwrap(),
        tool: tool.to_owned(),
        agent: "agent:fixer".to_owned(),
        input: Sha256Digest::of(b"{}"),
        ruleset: Sha256Digest::of(b"rules"),
        token: None,
        intent: None,
        alignment: None,
    }
}

/// A session's file with a root and this many decisions.
pub(super) fn chain_of(decisions: usize) -> (Vec<String>, ReceiptChain) {
    let (mut chain, root) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let mut lines = vec![root.to_jsonl()];
    for number in 0..decisions {
        let outcome = allowed(["Edit", "Bash", "Read"][number % 3]);
        lines.push(chain.append(&outcome, at(NOON)).unwrap().to_jsonl());
    }
    (lines, chain)
}

/// The payload of a receipt, read by another reader than ours.
pub(super) fn payload(jws: &str) -> serde_json::Value {
    let encoded = jws.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap()
}

/// The last payload of a file.
pub(super) fn last_payload(file: &str) -> serde_json::Value {
    let line: serde_json::Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    payload(line["jws"].as_str().unwrap())
}

/// What somebody with this key signs, whatever it says: a line of a chain file. Without our code, since a broken gate would not use it.
pub(super) fn forged(number: u8, payload: &serde_json::Value) -> String {
    let id = PemKeyId::of(&key(number).public());
    let header = format!(
        r#"{{"alg":"EdDSA","crit":["raucle/v1"],"kid":"{id}","raucle/v1":"provenance","typ":"provenance-receipt/v1"}}"#
    );
    forged_with(number, &header, &payload.to_string())
}

pub(super) fn forged_with(number: u8, header: &str, payload: &str) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let signature = SigningKey::from_bytes(&[number; 32]).sign(signed.as_bytes());
    let jws = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()));
    let hash = ReceiptHash::of(&jws);
    format!("{{\"receipt_hash\":\"{hash}\",\"jws\":\"{jws}\"}}\n")
}

/// A receipt with `change` made to it and signed by the gate's own key, after the root of its session.
pub(super) fn rewritten(file: &str, change: impl FnOnce(&mut serde_json::Value)) -> String {
    let (root, _) = file.split_once('\n').unwrap();
    let mut payload = last_payload(file);
    change(&mut payload);
    format!("{root}\n{}", forged(GATE, &payload))
}

pub(super) fn verified(file: &str) -> ChainReport {
    verified_with(file, &trusting(&[GATE]), &[], &Expectation::default())
}

pub(super) fn verified_with(
    file: &str,
    keys: &TrustedKeys,
    tokens: &[Token],
    expected: &Expectation,
) -> ChainReport {
    let reader = Reader::new(keys, tokens);
    let mut walk = Walk::default();
    for line in file.lines() {
        let line = Some(line).filter(|line| !line.is_empty());
        walk.next(line.map(|line| reader.read(line.as_bytes())));
    }
    walk.finish(expected)
}

/// The reasons of a report, a line each, or "valid".
pub(super) fn verdict(report: &ChainReport) -> String {
    if report.valid() {
        return "valid".to_owned();
    }
    let failures = report.failures.iter();
    let lines: Vec<String> = failures
        .map(|failure| format!("line {}: {}", failure.line, failure.reason))
        .collect();
    lines.join("\n")
}

/// Whether constraints hold of arguments.
pub(super) fn holds(limits: &str, arguments: &str) -> Result<(), String> {
    let arguments = Arguments::new(json(arguments)).unwrap();
    constraints(limits)
        .check(&arguments)
        .map_err(|violation| violation.to_string())
}
