//! Without an intent there is nothing new: the bytes are those of the published format.

use caretaker::change::Sha256Digest;

use super::desk::{ISSUER, NOON, at, chain_of, grant, issuer, key, payload, token};

#[test]
fn a_token_without_an_intent_has_no_other_bytes_than_v1() {
    let token = token(
        "transfer_funds",
        r#"{"max_value":{"amount":100},"forbidden_values":{"to":["eve","bob"]}}"#,
        None,
    );
    let kid = key(ISSUER).id().to_string();
    let end = NOON + 3_600;
    // Written out by hand from the published description: all members, sorted, null where there is nothing.
    let body = format!(
        r#"{{"agent_id":"agent:fixer","constraints":{{"forbidden_values":{{"to":["bob","eve"]}},"max_value":{{"amount":100}}}},"expires_at":{end},"grammar_hash":null,"issued_at":{NOON},"issuer":"desk.example","key_id":"{kid}","not_before":{NOON},"parent_id":null,"policy_hash":null,"policy_proof_hash":null,"tool":"transfer_funds"}}"#
    );
    assert_eq!(String::from_utf8(token.body().to_vec()).unwrap(), body);
    let digest = Sha256Digest::of(body.as_bytes()).to_string();
    assert_eq!(token.id().as_str(), format!("cap:{}", &digest[..24]));
    // The file has the two members more that the format keeps outside of what is signed.
    let file: serde_json::Value = serde_json::from_str(&token.to_text()).unwrap();
    let mut members: Vec<&String> = file.as_object().unwrap().keys().collect();
    members.retain(|name| !body.contains(&format!("\"{name}\":")));
    assert_eq!(members, ["signature", "token_id"]);
}

#[test]
fn an_intent_is_one_member_more() {
    let plain = token("Edit", "{}", None);
    let bound = token("Edit", "{}", Some(r#"{"statement":"Mend the parser"}"#));
    let text = String::from_utf8(bound.body().to_vec()).unwrap();
    let without = text.replace(r#""intent":{"statement":"Mend the parser"},"#, "");
    assert_eq!(without.as_bytes(), plain.body());
    assert_ne!(bound.id(), plain.id());
}

#[test]
fn a_child_without_an_intent_is_the_published_child() {
    let parent = issuer(ISSUER)
        .mint(&grant("Edit", "{}", None), at(NOON))
        .unwrap();
    let narrowing = caretaker::receipts::Narrowing::default();
    let child = issuer(ISSUER)
        .attenuate(
            &parent,
            &super::desk::trusting(&[]),
            &narrowing,
            at(NOON + 10),
        )
        .unwrap();
    let text = String::from_utf8(child.body().to_vec()).unwrap();
    assert!(!text.contains("intent"));
    assert!(text.contains(&format!("\"parent_id\":\"{}\"", parent.id())));
}

#[test]
fn a_receipt_without_an_intent_has_no_member_of_one() {
    let (lines, _) = chain_of(1);
    let line: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    let payload = payload(line["jws"].as_str().unwrap());
    assert!(!payload.to_string().contains("intent"));
    // Extensions begin with x_, and there is one.
    let known = |name: &&String| name.starts_with("x_");
    let extensions: Vec<&String> = payload.as_object().unwrap().keys().filter(known).collect();
    assert_eq!(extensions, ["x_gate"]);
}
