//! The writer of a session's receipts, as a gate uses it.

use caretaker::attest::{Label, Text};
use caretaker::change::Sha256Digest;
use caretaker::receipts::{
    Alignment, Decision, Head, InForce, Intent, ReceiptChain, ReceiptHash, TokenId,
};

use super::desk::{NOON, allowed, at, gate_key, intent, json, payload, session};

#[test]
fn a_session_is_a_root_and_one_receipt_a_decision_each_naming_the_one_before() {
    let (mut chain, root) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    assert_eq!(
        chain.head(),
        Head {
            count: 1,
            hash: *root.hash()
        }
    );
    let first = chain.append(&allowed("Edit"), at(NOON + 1)).unwrap();
    let second = chain.append(&allowed("Bash"), at(NOON + 2)).unwrap();
    assert_eq!(
        chain.head(),
        Head {
            count: 3,
            hash: *second.hash()
        }
    );

    let [root_says, first_says, second_says] =
        [&root, &first, &second].map(|line| payload(line.jws()));
    assert_eq!(root_says["operation"], "user_input");
    assert_eq!(root_says["parents"], serde_json::json!([]));
    assert_eq!(
        first_says["parents"],
        serde_json::json!([root.hash().to_string()])
    );
    assert_eq!(
        second_says["parents"],
        serde_json::json!([first.hash().to_string()])
    );
    let seqs = [root_says, first_says, second_says].map(|says| says["x_gate"]["seq"].clone());
    assert_eq!(seqs, [0, 1, 2].map(serde_json::Value::from));
}

#[test]
fn a_receipt_says_all_there_is_to_say() {
    let mut session = session();
    session.advisory = true;
    session.policy = Some(Sha256Digest::of(b"policy"));
    let (mut chain, root) = ReceiptChain::begin(session, gate_key(), at(NOON)).unwrap();
    let mut outcome = allowed("Edit");
    outcome.decision = Decision::Deny;
    outcome.stage = Some(Label::new("intent").unwrap());
    outcome.reason =
        Text::new("intent violated: starts_with: path leads back out by `..`").unwrap();
    outcome.token = Some(TokenId::parse("cap:0123456789abcdef01234567").unwrap());
    outcome.intent = Some(InForce {
        intent: intent(
            r#"{"statement":"Mend the parser","tools":["Edit"],"constraints":{"starts_with":{"path":"src/"}}}"#,
        )
        .into(),
        disclosed: json(r#"{"path":"src/../etc"}"#),
    });
    outcome.alignment = Some(Alignment {
        score_micro: Some(812_345),
        embedder: Label::new("minilm-l6-v2").unwrap(),
        dimensions: 384,
        intent: Sha256Digest::of(b"intent"),
        action: Sha256Digest::of(b"action"),
        threshold_micro: 500_000,
        hard_threshold_micro: 300_000,
        reason: Text::new("score 0.812 above threshold 0.500").unwrap(),
    });
    let line = chain.append(&outcome, at(NOON)).unwrap();
    insta::assert_snapshot!(format!(
        "{}\n{}",
        serde_json::to_string_pretty(&payload(root.jws())).unwrap(),
        serde_json::to_string_pretty(&payload(line.jws())).unwrap()
    ));
}

#[test]
fn a_line_is_the_published_envelope() {
    let (_, root) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let line = root.to_jsonl();
    assert!(line.ends_with("}\n"));
    let envelope: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        envelope,
        serde_json::json!({"receipt_hash": root.hash().to_string(), "jws": root.jws()})
    );
    assert_eq!(ReceiptHash::of(root.jws()), *root.hash());
    assert_eq!(root.hash().to_string().parse(), Ok(*root.hash()));
    assert!(
        root.hash()
            .digest()
            .to_string()
            .parse::<ReceiptHash>()
            .is_err()
    );
}

#[test]
fn a_chain_goes_on_from_the_head_that_was_kept() {
    let (mut chain, _) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let mut resumed = ReceiptChain::resume(session(), gate_key(), chain.head());
    let expected = chain.append(&allowed("Edit"), at(NOON)).unwrap();
    assert_eq!(
        resumed.append(&allowed("Edit"), at(NOON)).unwrap(),
        expected
    );
    assert_eq!(resumed.head(), chain.head());
}

#[test]
fn a_receipt_too_long_to_be_verified_is_not_written_and_the_chain_stays() {
    let (mut chain, _) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let before = chain.head();
    let long = format!("{{\"path\":\"{}\"}}", "x".repeat(40_000));
    let mut outcome = allowed("Edit");
    let disclosed = json(&long);
    outcome.intent = Some(InForce {
        intent: intent(r#"{"statement":"Mend the parser"}"#).into(),
        disclosed: caretaker::receipts::Arguments::new(disclosed)
            .unwrap()
            .among(["path"]),
    });
    assert!(chain.append(&outcome, at(NOON)).is_err());
    assert_eq!(chain.head(), before);
}

#[test]
fn an_intent_is_recorded_as_it_was_approved() {
    let statement = "Check today's calendar — and report\u{a0}conflicts, A\u{30a}";
    let approved: Intent = intent(&format!("{{\"statement\":\"{statement}\"}}"));
    let (mut chain, _) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let mut outcome = allowed("calendar_read");
    outcome.intent = Some(InForce {
        intent: approved.into(),
        disclosed: json("{}"),
    });
    let line = chain.append(&outcome, at(NOON)).unwrap();
    assert_eq!(
        payload(line.jws())["x_gate"]["intent"]["statement"],
        statement
    );
}

#[test]
fn a_tool_of_any_length_is_recorded_as_far_as_a_tools_name_goes() {
    let (mut chain, _) = ReceiptChain::begin(session(), gate_key(), at(NOON)).unwrap();
    let line = chain
        .append(&allowed(&"ä".repeat(5_000)), at(NOON))
        .unwrap();
    let said = payload(line.jws())["x_gate"]["tool"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(said, "ä".repeat(64));
}
