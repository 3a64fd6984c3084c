//! Input of somebody who means no good: an answer in words, no panic, no endless work.

use caretaker::receipts::verify::{MAX_FAILURES, MAX_LINE, MAX_UNORDERED, Reader};
use caretaker::receipts::{Fault, GivenArguments, MAX_JWS, MAX_TOKEN, ReceiptHash, Token, Walk};
use proptest::prelude::*;
use serde_json::json;

use super::desk::{
    GATE, NOON, asked, chain_of, forged, gate, key, said, token, trusting, verdict, verified,
};

#[test]
fn documents_that_are_no_tokens_are_refused_in_words() {
    let good = token("Edit", "{}", Some(r#"{"statement":"x"}"#)).to_text();
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    let long = format!("{good}{}", " ".repeat(MAX_TOKEN));
    let told: Vec<String> = [
        "",
        "nonsense",
        "[]",
        "{}",
        "null",
        &deep,
        &long,
        &good.replace("\"agent_id\"", "\"agent_id\":\"agent:x\",\"agent_id\""),
        &good.replace("1800003600", "1800003600.0"),
        &good.replace("1800003600", "\"1800003600\""),
        &good.replace("1800003600", "9007199254740992"),
        &good.replace("1800003600", "true"),
        &good.replace("\"parent_id\":null", "\"parent_id\":\"\""),
        &good.replace("\"parent_id\":null", "\"parent_id\":[]"),
        &good.replace("\"constraints\":{}", "\"constraints\":[]"),
        &good.replace("\"constraints\":{},", ""),
        &good.replace("\"intent\":{\"statement\":\"x\"}", "\"intent\":null"),
        &good.replace("\"tool\":\"Edit\"", "\"tool\":\"\""),
        &good.replace("\"issuer\":\"desk.example\"", "\"issuer\":\"\""),
        &good.replace("\"grammar_hash\":null", "\"grammar_hash\":7"),
        &good.replace("\"token_id\":\"cap:", "\"token_id\":\"cup:"),
        &good.replace("\"signature\":", "\"sig\":"),
    ]
    .iter()
    .map(|text| Token::parse(text.as_bytes()).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(told.join("\n"));
    assert!(Token::parse(&[0xff; 100]).is_err());
}

#[test]
fn a_member_that_nobody_knows_is_refused() {
    let good = token("Edit", "{}", None).to_text();
    let more = good.replacen('{', "{\"admin\":true,", 1);
    let told = Token::parse(more.as_bytes()).unwrap_err();
    assert_eq!(
        told.to_string(),
        "the token has the member `admin`, which this version does not know"
    );
}

#[test]
fn lists_in_another_order_are_not_what_was_signed() {
    let good = token(
        "Edit",
        r#"{"allowed_values":{"to":["a","b"]}}"#,
        Some(r#"{"statement":"x","tools":["Edit","Write"]}"#),
    )
    .to_text();
    for (from, to) in [
        (r#"["a","b"]"#, r#"["b","a"]"#),
        (r#"["Edit","Write"]"#, r#"["Write","Edit"]"#),
    ] {
        let told = Token::parse(good.replace(from, to).as_bytes()).unwrap_err();
        assert!(
            told.to_string().ends_with("it is not what was signed"),
            "{told}"
        );
    }
    // The spelling of the file itself is free.
    let pretty: serde_json::Value = serde_json::from_str(&good).unwrap();
    let pretty = serde_json::to_string_pretty(&pretty).unwrap();
    assert_eq!(
        said(&asked(
            &gate(),
            &Token::parse(pretty.as_bytes()).unwrap(),
            &[],
            "Edit",
            r#"{"to":"a"}"#
        )),
        "ALLOW"
    );
}

#[test]
fn arguments_that_two_readers_could_read_differently_are_denied() {
    let token = token("pay", r#"{"max_value":{"amount":10}}"#, None);
    let deep = format!("{{\"amount\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    for arguments in [
        r#"{"amount":1,"amount":99}"#,
        r#"{"amount":9.5}"#,
        r#"{"amount":1e2}"#,
        r#"{"amount":NaN}"#,
        r#"{"amount":-0}"#,
        r#"{"amount":1}x"#,
        &deep,
        "",
        "7",
    ] {
        let told = said(&asked(&gate(), &token, &[], "pay", arguments));
        assert!(told.starts_with("arguments: "), "{arguments}: {told}");
        // There is a digest to record in any case.
        assert_ne!(
            GivenArguments::read(arguments.as_bytes()).digest,
            GivenArguments::read(b"{}").digest
        );
    }
}

#[test]
fn lines_that_are_no_receipts_are_refused_in_words() {
    let (lines, _) = chain_of(1);
    let line = lines[1].trim_end();
    let envelope: serde_json::Value = serde_json::from_str(line).unwrap();
    let jws = envelope["jws"].as_str().unwrap();
    let with = |jws: &str| {
        format!(
            "{{\"receipt_hash\":\"{}\",\"jws\":\"{jws}\"}}",
            ReceiptHash::of(jws)
        )
    };
    let long = with(&"a".repeat(MAX_JWS + 1));
    let signature = jws.rsplit('.').next().unwrap();
    // The last character of 86 carries four bits that say nothing; there is one spelling.
    let loose = format!(
        "{}{}",
        &jws[..jws.len() - 1],
        if signature.ends_with('A') { 'B' } else { 'P' }
    );
    let heavy = forged(GATE, &json!({"agent_id": "a".repeat(40_000)}));
    let deep = (0..40).fold(json!(1), |inner, _| json!({"a": inner}));
    let deep = forged(GATE, &json!({"x_deep": deep}));
    let reader = Reader::new(&trusting(&[GATE]), &[]);
    let told: Vec<String> = [
        "{}",
        "[]",
        "garbage",
        &line.replacen('{', "{\"more\":1,", 1),
        &line.replacen('{', "{\"jws\":\"x\",", 1),
        &with(""),
        &with("a.b"),
        &with("a.b.c"),
        &with(&format!("{jws}.AAAA")),
        &with(&format!("{jws}=")),
        &with(&loose),
        &with(&jws.replace(signature, "")),
        &long,
        heavy.trim_end(),
        deep.trim_end(),
        &format!("{line}{}", " ".repeat(MAX_LINE)),
    ]
    .iter()
    .map(|line| reader.read(line.as_bytes()).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(told.join("\n"));
    assert!(matches!(reader.read(&[0xff; 9]), Err(Fault::Envelope(_))));
}

#[test]
fn failures_without_end_are_counted_and_not_kept() {
    let file = "garbage\n".repeat(5_000);
    let report = verified(&file);
    assert_eq!(
        (report.failure_count, report.failures.len()),
        (5_000, MAX_FAILURES)
    );
    assert_eq!(report.receipts, 0);
}

#[test]
fn a_file_without_order_is_not_kept_without_end() {
    let taint: Vec<String> = (0..700)
        .map(|number| format!("tag-number-{number:030}"))
        .collect();
    let payload = json!({"agent_id": "agent:x", "agent_key_id": key(GATE).id().to_string(), "iat": NOON,
        "input_hash": "sha256:0", "iss": "x", "operation": "user_input", "taint": taint, "typ": "provenance-receipt/v1"});
    let line = forged(GATE, &payload);
    let read = Reader::new(&trusting(&[GATE]), &[])
        .read(line.trim_end().as_bytes())
        .unwrap();
    let mut walk = Walk::default();
    // Far more than a gigabyte would be kept of these.
    for number in 0..30_000_u64 {
        let mut another = read.clone();
        another.hash = ReceiptHash::of(&number.to_string());
        walk.next(Some(Ok(another)));
    }
    let report = walk.finish(&super::desk::Expectation::default());
    let told = verdict(&report);
    assert!(
        told.contains("more memory than is spent on them"),
        "{MAX_UNORDERED}: {told}"
    );
}

proptest! {
    #[test]
    fn nothing_that_is_read_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in "[\\[\\]{}:,\"a-z0-9.\\\\ ]{0,200}") {
        for input in [bytes.as_slice(), text.as_bytes()] {
            drop(Token::parse(input));
            drop(Reader::new(&trusting(&[GATE]), &[]).read(input));
            drop(GivenArguments::read(input));
        }
    }
}
