//! The spelling that is signed.

use caretaker::receipts::canonical::{CanonicalError, read_canonical, to_canonical};
use proptest::prelude::*;

use super::desk::json;

fn spelt(text: &str) -> String {
    String::from_utf8(to_canonical(&json(text))).unwrap()
}

#[test]
fn members_are_in_the_order_of_their_utf_16_units() {
    // U+1F511 is two units from U+D83D on, so it stands before U+E000, which has fewer bytes.
    let text = "{\"\u{e000}\":1,\"a\":3,\"\u{1f511}\":2}";
    assert_eq!(spelt(text), "{\"a\":3,\"\u{1f511}\":2,\"\u{e000}\":1}");
    assert_eq!(
        spelt(r#"{"b":{"d":1,"c":2},"a":[]}"#),
        r#"{"a":[],"b":{"c":2,"d":1}}"#
    );
}

#[test]
fn only_control_characters_quotes_and_backslashes_are_escaped() {
    let text = r#""a\u0008b\tc\nd\re\u000ff\u0001h\/i\"j\\k<>&\u00e9\u007f""#;
    assert_eq!(
        spelt(text),
        "\"a\\bb\\tc\\nd\\re\\u000ff\\u0001h/i\\\"j\\\\k<>&é\u{7f}\""
    );
}

#[test]
fn nothing_is_normalised() {
    assert_eq!(spelt("\"A\u{30a}\""), "\"A\u{30a}\"");
}

#[test]
fn another_spelling_of_a_signed_document_is_refused() {
    assert!(read_canonical(br#"{"a":1,"b":2}"#, 100).is_ok());
    for other in [
        r#"{"b":2,"a":1}"#,
        r#"{"a": 1,"b":2}"#,
        "{\"a\":1,\"b\":2}\n",
        r#"{"\u0061":1,"b":2}"#,
    ] {
        assert_eq!(
            read_canonical(other.as_bytes(), 100),
            Err(CanonicalError::Spelling),
            "{other}"
        );
    }
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for text in [
        r#"{"a":1.0}"#,
        r#"{"a":9007199254740992}"#,
        r#"{"a":-0}"#,
        r#"{"a":NaN}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":"\ud800"}"#,
    ] {
        assert!(
            matches!(
                read_canonical(text.as_bytes(), 100),
                Err(CanonicalError::Json(_))
            ),
            "{text}"
        );
    }
    let deep = format!("{}{}", "[".repeat(33), "]".repeat(33));
    assert!(matches!(
        read_canonical(deep.as_bytes(), 100),
        Err(CanonicalError::Json(_))
    ));
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(names in proptest::collection::vec(".*", 0..6), value in ".*") {
        let object: serde_json::Map<String, serde_json::Value> = names
            .iter()
            .map(|name| (name.clone(), serde_json::json!([value, {"in": name}, 7, true, null])))
            .collect();
        let text = serde_json::to_string(&object).unwrap();
        let written = to_canonical(&json(&text));
        prop_assert_eq!(read_canonical(&written, usize::MAX), Ok(json(&text)));
        // Another reader finds the same in it.
        let again: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&written).unwrap();
        prop_assert_eq!(again, object);
    }
}
