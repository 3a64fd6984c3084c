//! What the stories need: keys, a moment, JSON in short.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::attest::json::{Json, read};
use caretaker::attest::{Label, SecretKey, Text};
use caretaker::change::Sha256Digest;
use caretaker::clock::Millis;
use caretaker::receipts::{AgentId, Decision, Door, Intent, Outcome, PemKey, Session, TrustedKeys};

/// 15 January 2027, 08:00 UTC, in seconds.
pub(super) const NOON: i64 = 1_800_000_000;

pub(super) fn at(seconds: i64) -> Millis {
    Millis(seconds * 1_000)
}

/// The key of the issuer of tokens, and of the gate, and of somebody else.
pub(super) fn key(number: u8) -> PemKey {
    PemKey::new(SecretKey::from_seed(&[number; 32]))
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

/// An allowed call of `tool`.
pub(super) fn allowed(tool: &str) -> Outcome {
    Outcome {
        decision: Decision::Allow,
        stage: None,
        reason: Text::new("ok").unwrap(),
        tool: tool.to_owned(),
        agent: agent("agent:fixer"),
        input: Sha256Digest::of(b"{}"),
        ruleset: Sha256Digest::of(b"rules"),
        token: None,
        intent: None,
        alignment: None,
    }
}

pub(super) fn gate_key() -> Arc<PemKey> {
    Arc::new(key(2))
}

/// The payload of a receipt, read by another reader than ours.
pub(super) fn payload(jws: &str) -> serde_json::Value {
    let encoded = jws.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).unwrap()).unwrap()
}
