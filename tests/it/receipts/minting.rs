//! New tokens.

use std::sync::Arc;

use caretaker::receipts::{AgentId, Intent, Issuer, Token, ToolName};

use super::desk::{ISSUER, NOON, asked, at, gate, grant, issuer, json, key, said, token};

#[test]
fn a_token_allows_what_it_was_minted_for_until_its_time_is_over() {
    let token = token("Edit", r#"{"starts_with":{"path":"src/"}}"#, None);
    let claims = token.claims();
    assert_eq!(
        (claims.issued_at, claims.not_before, claims.expires_at),
        (NOON, NOON, NOON + 3_600)
    );
    assert!(token.verifies(&key(ISSUER).public()) && token.id_matches());
    assert_eq!(
        said(&asked(&gate(), &token, &[], "Edit", r#"{"path":"src/a"}"#)),
        "ALLOW"
    );
    // What is handed on is read back as the same.
    assert_eq!(Token::parse(token.to_text().as_bytes()), Ok(token));
}

#[test]
fn a_tool_outside_its_own_intent_is_refused() {
    let archive = grant(
        "archive_export",
        "{}",
        Some(r#"{"statement":"Check today's calendar","tools":["calendar_read"]}"#),
    );
    let refused = issuer(ISSUER).mint(&archive, at(NOON)).unwrap_err();
    insta::assert_snapshot!(refused);
}

#[test]
fn a_time_to_live_is_from_a_second_to_a_year() {
    for (ttl, minted) in [
        (0, false),
        (-5, false),
        (1, true),
        (31_622_400, true),
        (31_622_401, false),
        (i64::MAX, false),
    ] {
        let mut grant = grant("Edit", "{}", None);
        grant.ttl_seconds = ttl;
        assert_eq!(
            issuer(ISSUER).mint(&grant, at(NOON)).is_ok(),
            minted,
            "{ttl}"
        );
    }
}

#[test]
fn names_are_those_of_the_published_format() {
    for (name, sound) in [
        ("agent:fixer", true),
        ("agent:fixer.tests", true),
        ("agent:a_b-c", true),
        ("agent:fixer.", false),
        ("agent:fixer..tests", false),
        ("agent:.fixer", false),
        ("agent:Fixer", false),
        ("agent:", false),
        ("fixer", false),
        ("agent:fixer\n", false),
        (&format!("agent:{}", "a".repeat(128)), true),
        (&format!("agent:{}", "a".repeat(129)), false),
        (&format!("agent:{}_", "a".repeat(127)), false),
        (&format!("agent:{}_", "a".repeat(126)), true),
    ] {
        assert_eq!(AgentId::parse(name).is_ok(), sound, "{name}");
    }
    for (name, sound) in [
        ("mcp__files__read", true),
        ("a/b.c-d", true),
        ("/a", false),
        ("", false),
        ("a b", false),
        ("a\0", false),
        (&"a".repeat(128), true),
        (&"a".repeat(129), false),
    ] {
        assert_eq!(ToolName::parse(name).is_ok(), sound, "{name}");
    }
    assert!(Issuer::new("", Arc::new(key(ISSUER))).is_err());
}

#[test]
fn an_intent_is_taken_whole_or_not_at_all() {
    let long = format!(r#"{{"statement":"{}"}}"#, "x".repeat(4_097));
    let many: Vec<String> = (0..1_000).map(|n| format!("\"tool-number-{n}\"")).collect();
    let many = format!(r#"{{"statement":"x","tools":[{}]}}"#, many.join(","));
    let refusals: Vec<String> = [
        r"{}",
        r"[]",
        r#"{"statement":""}"#,
        r#"{"statement":" \n"}"#,
        r#"{"statement":"a\u0000b"}"#,
        r#"{"statement":1}"#,
        r#"{"statement":"x","tools":[]}"#,
        r#"{"statement":"x","tools":"Edit"}"#,
        r#"{"statement":"x","tools":["Edit","Edit"]}"#,
        r#"{"statement":"x","tools":["no tool"]}"#,
        r#"{"statement":"x","purpose":"y"}"#,
        r#"{"statement":"x","constraints":{"max":{}}}"#,
        r#"{"statement":"x","tools":null}"#,
        &long,
        &many,
    ]
    .iter()
    .map(|text| Intent::from_json(&json(text)).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn an_intents_tools_are_signed_in_one_order_and_its_statement_as_it_is() {
    let intent = super::desk::intent("{\"statement\":\" A\u{30a} \",\"tools\":[\"b\",\"a\"]}");
    let written = caretaker::receipts::canonical::to_canonical(&intent.to_json());
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "{\"statement\":\" A\u{30a} \",\"tools\":[\"a\",\"b\"]}"
    );
}
