//! Receipts that a key signed and that nevertheless say what must not be: of a broken gate, or of whoever has its key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use caretaker::receipts::Token;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

use super::desk::{
    GATE, ISSUER, NOON, STRANGER, forged, forged_with, gate, key, last_payload, receipted,
    rewritten, token, trusting, verdict, verified, verified_with,
};

const PURPOSE: &str = r#"{"statement":"Mend the parser","tools":["Edit"],"constraints":{"starts_with":{"path":"src/"}}}"#;

/// A token as a program mints it that does not look at the intent's tools.
pub(super) fn unchecked_token(tool: &str, purpose: &str) -> Token {
    let ours = token(
        "Edit",
        "{}",
        Some(&purpose.replace("calendar_read", "Edit")),
    );
    let mut body: Value = serde_json::from_slice(ours.body()).unwrap();
    body["tool"] = tool.into();
    body["intent"] = serde_json::from_str(purpose).unwrap();
    signed_token(body, ISSUER)
}

/// A token with this body, signed by this key.
pub(super) fn signed_token(mut body: Value, number: u8) -> Token {
    // The members of serde_json's objects are sorted.
    let bytes = body.to_string();
    let digest = caretaker::change::Sha256Digest::of(bytes.as_bytes()).to_string();
    let signature = SigningKey::from_bytes(&[number; 32]).sign(bytes.as_bytes());
    body["token_id"] = format!("cap:{}", &digest[..24]).into();
    body["signature"] = URL_SAFE_NO_PAD.encode(signature.to_bytes()).into();
    Token::parse(body.to_string().as_bytes()).unwrap()
}

fn good() -> String {
    let token = token("Edit", "{}", Some(PURPOSE));
    receipted(
        &gate(),
        &token,
        "Edit",
        r#"{"path":"src/lib.rs","text":"x"}"#,
    )
}

#[test]
fn an_allowance_must_show_that_it_was_within_the_intent() {
    let good = good();
    assert_eq!(verdict(&verified(&good)), "valid");
    let changes: [(&str, fn(&mut Value)); 12] = [
        ("no intent_check", |gate| {
            gate.as_object_mut().unwrap().remove("intent_check");
        }),
        ("a field missing", |gate| {
            gate["intent_check"]["satisfied_fields"] = json!({});
        }),
        ("a field too many", |gate| {
            gate["intent_check"]["satisfied_fields"]["text"] = "x".into();
        }),
        ("tools that do not agree", |gate| {
            gate["intent_check"]["tool"] = "Bash".into();
        }),
        ("no recorded tool", |gate| {
            gate.as_object_mut().unwrap().remove("tool");
        }),
        ("another tool", |gate| {
            gate["tool"] = "Bash".into();
            gate["intent_check"]["tool"] = "Bash".into();
        }),
        ("a path that leads out", |gate| {
            gate["intent_check"]["satisfied_fields"]["path"] = "src/../etc".into();
        }),
        ("a decision that is no word for it", |gate| {
            gate["decision"] = "allow".into();
            gate["intent_check"]["tool"] = "Bash".into();
        }),
        ("an intent with a member more", |gate| {
            gate["intent"]["note"] = "x".into();
        }),
        ("an intent that is not in order", |gate| {
            gate["intent"]["tools"] = json!(["b", "a"]);
        }),
        ("an intent without what it says", |gate| {
            gate["intent"] = json!({"statement": ""});
        }),
        ("an intent_check without an intent", |gate| {
            gate.as_object_mut().unwrap().remove("intent");
        }),
    ];
    let told: Vec<String> = changes
        .into_iter()
        .map(|(what, change)| {
            let forged = rewritten(&good, |payload| change(&mut payload["x_gate"]));
            let verdict = verdict(&verified(&forged));
            assert_ne!(verdict, "valid", "{what}");
            format!("{what}: {verdict}")
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_denial_is_exempt() {
    let forged = rewritten(&good(), |payload| {
        payload["x_gate"]["decision"] = "DENY".into();
        payload["guardrail_verdict"] = "MALICIOUS".into();
        payload["x_gate"]["intent_check"]["tool"] = "Bash".into();
    });
    assert_eq!(verdict(&verified(&forged)), "valid");
}

#[test]
fn a_denial_that_is_clean_is_none() {
    for (decision, word) in [
        ("DENY", "CLEAN"),
        ("ALLOW", "MALICIOUS"),
        ("ALLOW", "SUSPICIOUS"),
    ] {
        let forged = rewritten(&good(), |payload| {
            payload["x_gate"]["decision"] = decision.into();
            payload["guardrail_verdict"] = word.into();
        });
        assert_eq!(
            verdict(&verified(&forged)),
            "line 2: the payload's guardrail_verdict says the opposite of x_gate.decision"
        );
    }
}

#[test]
fn the_recorded_intent_is_the_tokens() {
    let token = token("Edit", "{}", Some(PURPOSE));
    let tokens = [token.clone()];
    let judged = |file: &str| {
        verdict(&verified_with(
            file,
            &trusting(&[GATE]),
            &tokens,
            &super::desk::Expectation::default(),
        ))
    };
    let good = receipted(&gate(), &token, "Edit", r#"{"path":"src/lib.rs"}"#);
    assert_eq!(judged(&good), "valid");
    // A broken gate that recorded a wider intent than was approved, and one that recorded none.
    let wider = rewritten(&good, |payload| {
        payload["x_gate"]["intent"]["constraints"]["starts_with"]["path"] = "".into();
    });
    let none = rewritten(&good, |payload| {
        let gate = payload["x_gate"].as_object_mut().unwrap();
        gate.remove("intent");
        gate.remove("intent_check");
    });
    for forged in [wider, none] {
        assert_eq!(
            verdict(&verified(&forged)),
            "valid",
            "without the token nobody can tell"
        );
        assert!(judged(&forged).contains("the recorded intent is not that of the token"));
    }
}

#[test]
fn the_header_and_the_payload_name_the_same_key() {
    let mut payload = last_payload(&good());
    payload["agent_key_id"] = key(STRANGER).id().to_string().into();
    let told = verdict(&verified(&forged(GATE, &payload)));
    assert!(
        told.contains("agent_key_id is not the key of the header"),
        "{told}"
    );
}

#[test]
fn a_strangers_key_counts_for_nothing() {
    let mut payload = last_payload(&good());
    payload["agent_key_id"] = key(STRANGER).id().to_string().into();
    let told = verdict(&verified(&forged(STRANGER, &payload)));
    assert_eq!(
        told,
        format!("line 1: the key {} is not trusted", key(STRANGER).id())
    );
    // Nor does the gate's name over a stranger's signature.
    let header = format!(
        r#"{{"alg":"EdDSA","crit":["raucle/v1"],"kid":"{}","raucle/v1":"provenance","typ":"provenance-receipt/v1"}}"#,
        key(GATE).id()
    );
    let told = verdict(&verified(&forged_with(
        STRANGER,
        &header,
        &payload.to_string(),
    )));
    assert_eq!(
        told,
        "line 1: the signature is not that of the key over this receipt"
    );
}

#[test]
fn a_header_has_one_form() {
    let payload = last_payload(&good()).to_string();
    let kid = key(GATE).id().to_string();
    let sound = format!(
        r#"{{"alg":"EdDSA","crit":["raucle/v1"],"kid":"{kid}","raucle/v1":"provenance","typ":"provenance-receipt/v1"}}"#
    );
    for (from, to) in [
        ("EdDSA", "none"),
        ("EdDSA", "HS256"),
        (r#"["raucle/v1"]"#, r#"["raucle/v1","b64"]"#),
        (r#"["raucle/v1"]"#, "[]"),
        (r#""crit":["raucle/v1"],"#, ""),
        ("provenance-receipt/v1", "JWT"),
        (r#""provenance""#, r#""other""#),
        ("}", r#","x5u":"https://evil.example"}"#),
        (r#"{"alg""#, r#"{ "alg""#),
    ] {
        let header = sound.replace(from, to);
        let told = verdict(&verified(&forged_with(GATE, &header, &payload)));
        assert!(
            told.contains("the header is not that of a receipt"),
            "{header}: {told}"
        );
    }
}

#[test]
fn a_payload_keeps_to_the_published_format() {
    let root = || {
        json!({"agent_id": "agent:x", "agent_key_id": key(GATE).id().to_string(), "iat": NOON, "input_hash": "sha256:0",
               "iss": "x", "operation": "user_input", "parents": [], "taint": [], "typ": "provenance-receipt/v1"})
    };
    assert_eq!(verdict(&verified(&forged(GATE, &root()))), "valid");
    let parent = format!("sha256:{}", "0".repeat(64));
    let changes = [
        ("typ", json!("other")),
        ("iss", json!("")),
        ("iat", json!("now")),
        ("agent_id", json!(null)),
        ("operation", json!("dance")),
        ("operation", json!("tool_call")),
        ("operation", json!("merge")),
        ("input_hash", json!("")),
        ("parents", json!([parent])),
        ("parents", json!("x")),
        ("taint", json!(["b", "a"])),
        ("taint", json!(["a", "a"])),
        ("taint", json!([1])),
        ("note", json!("an extension without x_")),
        ("x_gate", json!("no object")),
        ("x_gate", json!({"seq": 1, "session": "s"})),
        ("x_gate", json!({"seq": -1, "session": "s"})),
        ("x_gate", json!({"seq": 0})),
    ];
    let told: Vec<String> = changes
        .into_iter()
        .map(|(member, value)| {
            let mut payload = root();
            payload[member] = value;
            verdict(&verified(&forged(GATE, &payload)))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_payload_that_is_spelt_otherwise_is_refused() {
    let payload = last_payload(&good()).to_string();
    let header = format!(
        r#"{{"alg":"EdDSA","crit":["raucle/v1"],"kid":"{}","raucle/v1":"provenance","typ":"provenance-receipt/v1"}}"#,
        key(GATE).id()
    );
    for other in [
        format!("{payload}\n"),
        payload.replacen(':', ": ", 1),
        payload.replacen("\"iat\":1800000060", "\"iat\":1.8e9", 1),
        payload.replacen("\"iat\"", "\"\\u0069at\"", 1),
        payload.replacen("{\"agent_id\"", "{\"iat\":1,\"agent_id\"", 1),
    ] {
        let told = verdict(&verified(&forged_with(GATE, &header, &other)));
        assert!(told.starts_with("line 1: the payload: "), "{told}");
    }
}

/// Files of other programs are no linear chains; what holds there is that parents are there and marks are kept.
#[test]
fn a_mark_is_not_lost() {
    let step = |operation: &str, parents: &[&str], taint: &[&str], corpus: &str| {
        let payload = json!({"agent_id": "agent:x", "agent_key_id": key(GATE).id().to_string(), "iat": NOON,
            "input_hash": "sha256:0", "output_hash": "sha256:0", "tool": "t", "corpus": corpus, "iss": "x",
            "operation": operation, "parents": parents, "taint": taint, "typ": "provenance-receipt/v1"});
        let line = forged(GATE, &payload);
        let envelope: Value = serde_json::from_str(&line).unwrap();
        (line, envelope["receipt_hash"].as_str().unwrap().to_owned())
    };
    let (root, first) = step("user_input", &[], &["external"], "");
    let (kept, second) = step("tool_call", &[&first], &["external", "more"], "");
    let (lost, _) = step("tool_call", &[&second], &["external"], "");
    let (cleaned, _) = step("sanitisation", &[&second], &["external"], "removed:more");
    let (laundered, _) = step(
        "sanitisation",
        &[&second],
        &["external", "new"],
        "removed:more",
    );
    let judged = |last: &str| verdict(&verified(&format!("{root}{kept}{last}")));
    assert_eq!(judged(""), "valid");
    assert_eq!(judged(&cleaned), "valid");
    assert_eq!(
        judged(&lost),
        "line 3: the taint more was lost without a sanitising step"
    );
    assert!(judged(&laundered).contains("another taint than it inherited"));
    // The order of lines is free, the parents are not.
    assert_eq!(verdict(&verified(&format!("{kept}{root}"))), "valid");
    assert!(verdict(&verified(&kept)).contains("is not in the file"));
    assert!(judged(&kept).contains("the receipt was there before"));
}
