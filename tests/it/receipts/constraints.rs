//! The vocabulary: what each kind asks, and what it does not let through.

use caretaker::receipts::{Arguments, Constraints};

use super::desk::{constraints, holds, json};

/// Whether a call passes, in the order of the table in `docs/receipts.md`.
#[test]
fn every_kind_asks_what_it_says() {
    #[rustfmt::skip]
    let table = [
        (r#"{"allowed_values":{"to":["ada","bob"]}}"#, vec![
            (r#"{"to":"ada"}"#, true), (r#"{"to":["ada","bob"]}"#, true), (r#"{"to":"eve"}"#, false),
            (r#"{"to":["ada","eve"]}"#, false), (r#"{"to":{"ada":"bob"}}"#, true), (r#"{"to":{"eve":"bob"}}"#, false),
            (r#"{"to":[]}"#, false), (r#"{"to":{}}"#, false), (r#"{"to":null}"#, false), (r#"{"to":"Ada"}"#, false),
        ]),
        (r#"{"forbidden_values":{"to":["eve"]}}"#, vec![
            (r#"{"to":"ada"}"#, true), (r"{}", true), (r#"{"to":[["eve"]]}"#, false), (r#"{"to":{"eve":1}}"#, false),
        ]),
        (r#"{"max_value":{"amount":10}}"#, vec![
            (r#"{"amount":10}"#, true), (r#"{"amount":11}"#, false), (r#"{"amount":[1,11]}"#, false), (r#"{"amount":[1,2]}"#, true),
            (r#"{"amount":"1"}"#, false), (r#"{"amount":true}"#, false), (r#"{"amount":null}"#, false), (r#"{"amount":[]}"#, false),
        ]),
        (r#"{"min_value":{"amount":10}}"#, vec![
            (r#"{"amount":10}"#, true), (r#"{"amount":9}"#, false), (r#"{"amount":[10,9]}"#, false), (r#"{"amount":false}"#, false),
        ]),
        (r#"{"starts_with":{"path":"src/"}}"#, vec![
            (r#"{"path":"src/lib.rs"}"#, true), (r#"{"path":"srcery"}"#, false), (r#"{"path":["src/lib.rs"]}"#, false),
            (r#"{"path":1}"#, false), (r#"{"path":"src/a..b/c"}"#, true), (r#"{"path":"src/.../c"}"#, true),
        ]),
        (r#"{"required_present":["subject"]}"#, vec![
            (r#"{"subject":"x"}"#, true), (r#"{"subject":null}"#, true), (r#"{"Subject":"x"}"#, false),
        ]),
        (r#"{"forbidden_field_combinations":[["to","bcc"]]}"#, vec![
            (r#"{"to":1}"#, true), (r#"{"to":1,"bcc":null}"#, false), (r#"{"cc":1,"bcc":1}"#, true),
        ]),
        (r"{}", vec![(r#"{"anything":1}"#, true), (r"{}", true)]),
    ];
    for (limits, calls) in table {
        for (arguments, passes) in calls {
            let found = holds(limits, arguments);
            assert_eq!(found.is_ok(), passes, "{limits} of {arguments}: {found:?}");
        }
    }
}

#[test]
fn an_absent_field_satisfies_nothing() {
    for limits in [
        r#"{"allowed_values":{"to":["ada"]}}"#,
        r#"{"max_value":{"to":1}}"#,
        r#"{"min_value":{"to":1}}"#,
        r#"{"starts_with":{"to":""}}"#,
        r#"{"required_present":["to"]}"#,
    ] {
        let refused = holds(limits, r#"{"recipient":"ada"}"#).unwrap_err();
        assert!(refused.ends_with("to is absent from the call"), "{refused}");
    }
}

#[test]
fn true_is_not_one() {
    assert!(holds(r#"{"allowed_values":{"n":[1]}}"#, r#"{"n":true}"#).is_err());
    assert!(holds(r#"{"allowed_values":{"n":[true]}}"#, r#"{"n":1}"#).is_err());
    assert!(holds(r#"{"allowed_values":{"n":[1]}}"#, r#"{"n":"1"}"#).is_err());
    assert!(holds(r#"{"allowed_values":{"n":[0,true]}}"#, r#"{"n":false}"#).is_err());
    // What is forbidden is forbidden also to a tool that takes the one for the other.
    assert!(holds(r#"{"forbidden_values":{"n":[1]}}"#, r#"{"n":true}"#).is_err());
    assert!(holds(r#"{"forbidden_values":{"n":[false]}}"#, r#"{"n":0}"#).is_err());
}

#[test]
fn a_path_that_leads_back_out_does_not_begin_with_its_folder() {
    for path in [
        "src/../etc",
        "src/..",
        "src/a/../../etc",
        "src/..\\\\etc",
        "src/%2e%2e/etc",
        "src/.%2E/etc",
    ] {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        let refused = holds(r#"{"starts_with":{"path":"src/"}}"#, &arguments).unwrap_err();
        assert_eq!(refused, "starts_with: path leads back out by `..`");
    }
}

#[test]
fn a_misspelt_kind_is_refused_and_not_left_out() {
    let refusals: Vec<String> = [
        r#"{"allowedValues":{"to":["ada"]}}"#,
        r#"{"max_value":{"amount":true}}"#,
        r#"{"max_value":{"amount":"10"}}"#,
        r#"{"max_value":10}"#,
        r#"{"allowed_values":{"to":"ada"}}"#,
        r#"{"allowed_values":{"to":[null]}}"#,
        r#"{"allowed_values":{"to":[["ada"]]}}"#,
        r#"{"allowed_values":null}"#,
        r#"{"starts_with":{"path":1}}"#,
        r#"{"required_present":"to"}"#,
        r#"{"required_present":[""]}"#,
        r#"{"min_value":{"":1}}"#,
        r#"{"forbidden_field_combinations":["to","bcc"]}"#,
        r"[]",
    ]
    .iter()
    .map(|text| Constraints::from_json(&json(text)).unwrap_err().to_string())
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn two_spellings_of_one_field_are_refused() {
    for limits in [
        "{\"max_value\":{\"caf\u{e9}\":1,\"cafe\u{301}\":2}}",
        "{\"allowed_values\":{\"caf\u{e9}\":[],\"cafe\u{301}\":[]}}",
        "{\"required_present\":[\"caf\u{e9}\",\"cafe\u{301}\"]}",
    ] {
        let refused = Constraints::from_json(&json(limits)).unwrap_err();
        assert!(refused.to_string().contains("normal form C"), "{refused}");
    }
}

#[test]
fn a_field_is_found_however_it_is_spelt() {
    let forbidden = "{\"forbidden_values\":{\"caf\u{e9}\":[\"x\"]}}";
    assert!(holds(forbidden, "{\"cafe\u{301}\":\"x\"}").is_err());
    // The sign for kelvin is the letter K to whoever normalises.
    assert!(
        holds(
            r#"{"forbidden_values":{"K":["x"]}}"#,
            "{\"\u{212a}\":\"x\"}"
        )
        .is_err()
    );
}

#[test]
fn a_call_that_names_one_field_in_two_spellings_is_refused() {
    let twice = "{\"caf\u{e9}\":1,\"cafe\u{301}\":2}";
    assert!(Arguments::new(json(twice)).is_err());
    assert!(Arguments::new(json("[]")).is_err());
}

#[test]
fn lists_are_signed_in_one_order_and_nothing_is_left_out() {
    let limits = constraints(
        r#"{"allowed_values":{"n":["b",2,true,"a",1,false,"a"]},"required_present":["z","a"],"forbidden_field_combinations":[["z","a"],["b","a"]],"max_value":{}}"#,
    );
    let written = caretaker::receipts::canonical::to_canonical(&limits.to_json());
    assert_eq!(
        String::from_utf8(written).unwrap(),
        r#"{"allowed_values":{"n":["a","a","b",false,true,1,2]},"forbidden_field_combinations":[["a","b"],["a","z"]],"max_value":{},"required_present":["a","z"]}"#
    );
}

#[test]
fn a_refusal_names_the_constraint_and_repeats_no_value() {
    let refused = holds(r#"{"allowed_values":{"key":["a"]}}"#, r#"{"key":"s3cret"}"#).unwrap_err();
    assert_eq!(
        refused,
        "allowed_values: key holds a value that is not allowed"
    );
}
