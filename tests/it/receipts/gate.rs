//! The gate: in which order it asks, and that every denial says where and why.

use caretaker::receipts::gate::{MAX_ANCESTORS, MAX_DISCLOSURE};
use caretaker::receipts::{Decision, Gate, Narrowing, Revocations, Token};
use serde_json::Value;

use super::desk::{
    GATE, ISSUER, NOON, STRANGER, agent, asked, asked_by, at, gate, issuer, last_payload,
    receipted, said, token, trusting, verdict, verified,
};
use super::forging::signed_token;

const LIMITS: &str = r#"{"max_value":{"amount":10}}"#;
const PURPOSE: &str = r#"{"statement":"Pay what is due","tools":["pay"],"constraints":{"allowed_values":{"to":["ada"]}}}"#;

/// The child of a child, and its ancestors.
fn family() -> (Token, [Token; 2]) {
    let root = token("pay", LIMITS, Some(PURPOSE));
    let narrowed = |parent: &Token, name: &str| {
        let narrowing = Narrowing {
            agent: Some(agent(name)),
            ..Narrowing::default()
        };
        issuer(ISSUER)
            .attenuate(parent, &trusting(&[]), &narrowing, at(NOON))
            .unwrap()
    };
    let child = narrowed(&root, "agent:fixer.a");
    let grandchild = narrowed(&child, "agent:fixer.a.b");
    (grandchild, [root, child])
}

fn revoking(tokens: &[&Token]) -> Gate {
    let list: String = tokens
        .iter()
        .map(|token| format!("{}\n", token.id()))
        .collect();
    Gate::new(trusting(&[ISSUER]), Revocations::parse(&list).unwrap())
}

/// Each call has one fault more than the next, and is denied by the first of them: so the order shows.
#[test]
fn the_first_denial_wins_in_the_documented_order() {
    let (token, chain) = family();
    let text = token.to_text();
    let altered =
        |from: &str, to: &str| Token::parse(text.replacen(from, to, 1).as_bytes()).unwrap();
    let stranger = {
        let mut body: Value = serde_json::from_slice(token.body()).unwrap();
        body["key_id"] = super::desk::key(STRANGER).id().to_string().into();
        signed_token(body, STRANGER)
    };
    let broken = altered("\"expires_at\":18000", "\"expires_at\":18001");
    let hybrid = altered(
        "{\"agent_id\"",
        "{\"pq_key_id\":\"0123456789abcdef\",\"agent_id\"",
    );
    let renamed = altered(token.id().as_str(), "cap:0123456789abcdef01234567");
    let gates = [
        gate(),
        revoking(&[&token]),
        revoking(&[&chain[1]]),
        revoking(&[&chain[0]]),
    ];
    let bad = r#"{"amount":11,"to":"eve"}"#;
    let late = NOON + 3_600;
    #[rustfmt::skip]
    let calls: [(&str, &Gate, &Token, &[Token], (Option<&str>, &str, &str), i64); 18] = [
        ("key", &gates[1], &stranger, &[], (Some("agent:x"), "other", bad), late),
        ("signature", &gates[1], &broken, &[], (Some("agent:x"), "other", bad), late),
        ("hybrid", &gates[1], &hybrid, &[], (Some("agent:x"), "other", bad), late),
        ("token-id", &gates[1], &renamed, &[], (Some("agent:x"), "other", bad), late),
        ("revoked", &gates[1], &token, &[], (Some("agent:x"), "other", bad), late),
        ("revoked", &gates[2], &token, &[], (Some("agent:x"), "other", bad), late),
        ("time", &gates[0], &token, &[], (Some("agent:x"), "other", bad), late),
        ("time", &gates[0], &token, &[], (Some("agent:x"), "other", bad), NOON - 1),
        ("tool", &gates[0], &token, &[], (Some("agent:x"), "other", bad), NOON),
        ("agent", &gates[0], &token, &[], (Some("agent:x"), "pay", bad), NOON),
        ("agent", &gates[0], &token, &[], (Some("no agent"), "pay", bad), NOON),
        ("arguments", &gates[0], &token, &[], (None, "pay", r#"{"amount":1.5}"#), NOON),
        ("arguments", &gates[0], &token, &[], (None, "pay", "[]"), NOON),
        ("constraints", &gates[0], &token, &[], (None, "pay", bad), NOON),
        ("intent", &gates[0], &token, &[], (None, "pay", r#"{"amount":10,"to":"eve"}"#), NOON),
        ("chain", &gates[0], &token, &[], (None, "pay", r#"{"amount":10,"to":"ada"}"#), NOON),
        ("chain", &gates[3], &token, &chain, (None, "pay", r#"{"amount":10,"to":"ada"}"#), NOON),
        ("ALLOW", &gates[0], &token, &chain, (Some("agent:fixer.a.b.c"), "pay", r#"{"amount":10,"to":"ada"}"#), late - 1),
    ];
    let told: Vec<String> = calls
        .into_iter()
        .map(|(stage, gate, token, chain, call, now)| {
            let checked = asked_by(gate, token, chain, call, now);
            let told = said(&checked);
            assert!(told.starts_with(stage), "{stage}: {told}");
            told
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_name_that_only_begins_like_the_agents_is_another_agent() {
    let token = token("pay", "{}", None);
    for (name, allowed) in [
        ("agent:fixer", true),
        ("agent:fixer.tests", true),
        ("agent:fixer-evil", false),
        ("agent:fixerevil", false),
        ("agent:fix", false),
    ] {
        let checked = asked_by(&gate(), &token, &[], (Some(name), "pay", "{}"), NOON);
        assert_eq!(checked.decision() == Decision::Allow, allowed, "{name}");
    }
}

#[test]
fn a_token_without_its_chain_is_denied() {
    let (token, chain) = family();
    let ask = |chain: &[Token]| {
        said(&asked(
            &gate(),
            &token,
            chain,
            "pay",
            r#"{"amount":1,"to":"ada"}"#,
        ))
    };
    assert_eq!(ask(&chain), "ALLOW");
    assert!(ask(&chain[..1]).ends_with("is not there to be checked"));
    assert!(ask(&chain[1..]).ends_with("is not there to be checked"));
    // An ancestor that claims the name and is another token.
    let renamed = super::desk::token("pay", "{}", None);
    let renamed = renamed
        .to_text()
        .replace(renamed.id().as_str(), chain[0].id().as_str());
    let renamed = Token::parse(renamed.as_bytes()).unwrap();
    let told = ask(&[renamed, chain[1].clone()]);
    assert!(told.ends_with("token_id does not match body"), "{told}");
}

#[test]
fn a_chain_has_an_end() {
    let mut all = vec![token("pay", "{}", None)];
    for _ in 0..=MAX_ANCESTORS {
        let parent = all.last().unwrap();
        let child =
            issuer(ISSUER).attenuate(parent, &trusting(&[]), &Narrowing::default(), at(NOON));
        all.push(child.unwrap());
    }
    let at_most = &all[MAX_ANCESTORS];
    assert_eq!(said(&asked(&gate(), at_most, &all, "pay", "{}")), "ALLOW");
    let told = said(&asked(&gate(), &all[MAX_ANCESTORS + 1], &all, "pay", "{}"));
    assert_eq!(told, "chain: more than 16 ancestors");
}

#[test]
fn revoking_an_ancestor_revokes_all_that_came_from_it() {
    let (token, chain) = family();
    for revoked in [&token, &chain[0], &chain[1]] {
        let gate = revoking(&[revoked]);
        let told = said(&asked(
            &gate,
            &token,
            &chain,
            "pay",
            r#"{"amount":1,"to":"ada"}"#,
        ));
        assert!(told.ends_with("is revoked"), "{told}");
    }
}

#[test]
fn a_list_can_be_put_in_force_while_the_gate_stands() {
    let token = token("pay", "{}", None);
    let mut gate = gate();
    assert_eq!(said(&asked(&gate, &token, &[], "pay", "{}")), "ALLOW");
    let mut list = Revocations::default();
    assert!(list.revoke(token.id().clone()) && !list.revoke(token.id().clone()));
    gate.set_revocations(list);
    assert!(said(&asked(&gate, &token, &[], "pay", "{}")).starts_with("revoked"));
}

#[test]
fn a_damaged_list_of_revoked_tokens_is_no_list() {
    let good = "# lost laptop\n\ncap:0123456789abcdef01234567\n  cap:0123456789abcdef01234568  \n";
    assert!(Revocations::parse(good).is_ok());
    let told = Revocations::parse("cap:0123456789abcdef01234567\ncap:0123\n").unwrap_err();
    assert_eq!(
        told.to_string(),
        "line 2 of the list of revoked tokens: `cap:0123` names no token: `cap:` and 24 lower-case hexadecimal digits were expected"
    );
}

#[test]
fn a_bad_signature_is_bad_the_second_time_too() {
    let good = token("pay", "{}", None);
    let bad = Token::parse(
        good.to_text()
            .replace("1800003600", "1800003601")
            .as_bytes(),
    )
    .unwrap();
    let gate = gate();
    for _ in 0..3 {
        assert_eq!(said(&asked(&gate, &good, &[], "pay", "{}")), "ALLOW");
        assert!(said(&asked(&gate, &bad, &[], "pay", "{}")).starts_with("signature: "));
    }
    // What one gate remembers is nothing to another.
    let other = Gate::new(trusting(&[GATE]), Revocations::default());
    assert!(said(&asked(&other, &good, &[], "pay", "{}")).starts_with("key: "));
}

#[test]
fn a_receipt_discloses_only_what_the_intent_constrains() {
    let token = token("pay", LIMITS, Some(PURPOSE));
    let file = receipted(
        &gate(),
        &token,
        "pay",
        r#"{"amount":3,"to":"ada","note":"s3cret"}"#,
    );
    let said = last_payload(&file);
    assert_eq!(
        said["x_gate"]["intent_check"]["satisfied_fields"],
        serde_json::json!({"to": "ada"})
    );
    let file = receipted(
        &gate(),
        &token,
        "pay",
        r#"{"amount":99,"to":"ada","note":"s3cret"}"#,
    );
    assert!(!file.contains("s3cret") && !last_payload(&file).to_string().contains("s3cret"));
    assert!(!last_payload(&file).to_string().contains("99,"));
}

#[test]
fn what_cannot_be_disclosed_whole_is_denied() {
    let purpose =
        r#"{"statement":"Write below src","constraints":{"starts_with":{"path":"src/"}}}"#;
    let token = token("Write", "{}", Some(purpose));
    let call = |length: usize| format!(r#"{{"path":"src/{}"}}"#, "x".repeat(length));
    assert_eq!(
        said(&asked(
            &gate(),
            &token,
            &[],
            "Write",
            &call(MAX_DISCLOSURE - 10)
        )),
        "ALLOW"
    );
    let long = call(MAX_DISCLOSURE);
    let told = said(&asked(&gate(), &token, &[], "Write", &long));
    assert!(
        told.starts_with("intent: outside intent scope: the arguments that"),
        "{told}"
    );
    // The denial is recorded without what is too long, and the record holds.
    let file = receipted(&gate(), &token, "Write", &long);
    assert_eq!(
        last_payload(&file)["x_gate"]["intent_check"]["satisfied_fields"],
        serde_json::json!({})
    );
    assert_eq!(verdict(&verified(&file)), "valid");
}

#[test]
fn an_intent_that_was_never_proven_is_not_recorded_as_approved() {
    let token = token("pay", LIMITS, Some(PURPOSE));
    let forged = Token::parse(
        token
            .to_text()
            .replace("Pay what is due", "Pay everything")
            .as_bytes(),
    )
    .unwrap();
    let file = receipted(&gate(), &forged, "pay", r#"{"amount":1,"to":"ada"}"#);
    let said = last_payload(&file);
    assert_eq!(said["x_gate"]["stage"], "signature");
    assert!(!said.to_string().contains("Pay everything"));
    assert!(said["x_gate"].get("token_id").is_none());
    assert_eq!(verdict(&verified(&file)), "valid");
}
