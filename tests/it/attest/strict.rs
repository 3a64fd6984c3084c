//! Strict JSON: what two readers could read differently is refused.

use caretaker::attest::Event;
use caretaker::attest::json::{Json, JsonError, MAX_DEPTH, parse};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::ledger::{Ledger, payload_of};
use crate::twin::{self, read};

fn refused(text: &str) -> JsonError {
    match read(text.as_bytes(), 1_000_000) {
        Err(error) => error,
        Ok(json) => panic!("{text} was read as {json:?}"),
    }
}

#[test]
fn repeated_members_are_refused_however_they_are_spelt() {
    for text in [
        r#"{"decision":"deny","decision":"approve"}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        r#"[{"\ud83d\ude00":1,"😀":2}]"#,
    ] {
        // Break: drop the `contains_key` check in `Reader::members`.
        assert!(
            matches!(refused(text), JsonError::Duplicate { .. }),
            "{text}"
        );
    }
}

#[test]
fn only_plain_integers_that_a_double_holds_are_numbers() {
    for text in [
        "1.0",
        "1e3",
        "1E3",
        "-0",
        "0.5",
        "9007199254740992",
        "-9007199254740992",
        "1e400",
        "99999999999999999999",
        "01",
        "-",
        "-01",
        "00",
    ] {
        assert!(matches!(refused(text), JsonError::Number { .. }), "{text}");
    }
    for (text, number) in [
        ("0", 0),
        ("-1", -1),
        ("9007199254740991", 9_007_199_254_740_991),
        ("-9007199254740991", -9_007_199_254_740_991),
    ] {
        assert_eq!(read(text.as_bytes(), 100).unwrap(), Json::Integer(number));
    }
    for text in ["+1", "NaN", "Infinity", ".5", "0x1"] {
        assert!(matches!(refused(text), JsonError::Syntax { .. }), "{text}");
    }
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for text in [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800\ud800""#,
        r#""\udc00\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
    ] {
        assert!(
            matches!(refused(text), JsonError::Surrogate { .. }),
            "{text}"
        );
    }
    assert_eq!(
        read(br#""\uD83D\ude00""#, 100).unwrap(),
        Json::Text("😀".into())
    );
}

#[test]
fn depth_and_size_are_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(nested(MAX_DEPTH).as_bytes(), 1_000_000).is_ok());
    // Break: drop the comparison in `Reader::enter`; the next line then overflows the stack.
    assert!(matches!(
        refused(&nested(MAX_DEPTH + 1)),
        JsonError::Depth { .. }
    ));
    assert!(matches!(
        refused(&"[".repeat(500_000)),
        JsonError::Depth { .. }
    ));
    assert!(matches!(
        refused(&"{\"a\":".repeat(100_000)),
        JsonError::Depth { .. }
    ));
    assert_eq!(
        read(b"[1]", 2),
        Err(JsonError::TooLong {
            length: 3,
            limit: 2
        })
    );
}

#[test]
fn the_grammar_has_no_extensions() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "[1 2]",
        "1 2",
        "nul",
        "nullx",
        "tru",
        "\u{feff}1",
        "\"\t\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"a",
        "// x",
        "[1]]",
    ] {
        assert!(
            matches!(refused(text), JsonError::Syntax { .. }),
            "{text:?}"
        );
    }
    assert_eq!(read(b"\"\xff\"", 100), Err(JsonError::NotUtf8 { at: 1 }));
    assert!(
        read(
            b" [ 1 , { } , [ ] , true , false , null , \"\\b\\f\\n\\r\\t\\/\\\\\\\"\" ] ",
            100
        )
        .is_ok()
    );
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    left: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    right: Option<u8>,
}

#[test]
fn a_typed_reading_must_be_the_whole_document() {
    let pair = |text: &str| parse::<Pair>(text.as_bytes(), 100);
    assert_eq!(
        pair(r#"{"left":1}"#).unwrap(),
        Pair {
            left: 1,
            right: None
        }
    );
    assert_eq!(
        pair(r#" {"right":2, "left":1} "#).unwrap(),
        Pair {
            left: 1,
            right: Some(2)
        }
    );
    // An array for the object, an unknown member, an explicit null for an absent member.
    for text in [
        "[1,2]",
        r#"{"left":1,"more":2}"#,
        r#"{"left":1,"right":null}"#,
    ] {
        // Break: return `Ok(value)` without comparing in `typed`.
        assert_eq!(pair(text), Err(JsonError::NotExact), "{text}");
    }
    assert!(matches!(
        pair(r#"{"left":256}"#),
        Err(JsonError::Shape { .. })
    ));
}

#[test]
fn a_signed_statement_with_an_unknown_or_repeated_member_is_no_statement() {
    let good = String::from_utf8(payload_of(&Ledger::merged().envelopes[1])).unwrap();
    assert!(twin::statement(good.as_bytes()).is_ok());
    for (from, to) in [
        ("\"terminal\":false", "\"terminal\":false,\"note\":1"),
        (
            "\"verdict\":\"approve\"",
            "\"verdict\":\"deny\",\"verdict\":\"approve\"",
        ),
        (
            "\"verdict\":\"approve\"",
            "\"verdict\":\"free\",\"v\\u0065rdict\":\"approve\"",
        ),
        ("\"verdict\":\"approve\"", "\"verdict\":{\"approve\":null}"),
        ("\"terminal\":false", "\"terminal\":0"),
        ("\"seq\":1", "\"seq\":1.0"),
        ("\"seq\":1", "\"seq\":\"1\""),
        ("\"reasons\":", "\"opinion\":null,\"reasons\":"),
        (
            "\"version\":\"0.1.0\"",
            "\"version\":\"0.1.0\",\"extra\":[]",
        ),
        ("\"_type\":", "\"extra\":0,\"_type\":"),
    ] {
        assert!(good.contains(from), "{from}");
        let bad = good.replacen(from, to, 1);
        assert!(twin::statement(bad.as_bytes()).is_err(), "{to}");
    }
    // Another order and layout mean the same: verification never depends on a re-serialisation.
    let value: serde_json::Value = serde_json::from_str(&good).unwrap();
    let laid_out =
        twin::statement(serde_json::to_string_pretty(&value).unwrap().as_bytes()).unwrap();
    assert!(matches!(
        laid_out.as_event(),
        Some(Event::PolicyDecision(_))
    ));
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A strict reading as the general reader's value, to compare the two.
fn general(json: &Json<'_>) -> serde_json::Value {
    match json {
        Json::Null => serde_json::Value::Null,
        Json::Bool(value) => (*value).into(),
        Json::Integer(value) => (*value).into(),
        Json::Text(value) => value.as_ref().into(),
        Json::List(items) => items.iter().map(general).collect(),
        Json::Members(members) => members
            .iter()
            .map(|(name, value)| (name.clone().into_owned(), general(value)))
            .collect(),
    }
}

proptest! {
    #[test]
    fn what_is_accepted_is_read_as_everybody_reads_it(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(general(&read(text.as_bytes(), 1_000_000).unwrap()), value);
    }

    #[test]
    fn no_text_crashes_the_reader_and_it_accepts_no_more_than_the_general_one(text in "[\\[\\]{}\",:\\\\u0-9a-f truefalsn.eE+-]{0,40}") {
        if read(text.as_bytes(), 1_000).is_ok() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        }
    }
}
