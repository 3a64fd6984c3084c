//! What an answer means.

use std::time::Duration;

use caretaker::clock::Millis;
use caretaker::probe::{Answer, ProbeError};
use caretaker::watch::health::{Outcome, judge};
use http::HeaderMap;
use proptest::prelude::*;

use super::{NOW, check};

fn answer(status: u16, body: &str) -> Answer {
    Answer {
        status,
        headers: HeaderMap::new(),
        body: body.as_bytes().to_vec(),
        latency: Duration::from_millis(20),
        certificate_ends: None,
        authentic: false,
    }
}

fn expecting(expect: &str) -> caretaker::config::HealthCheck {
    check(&format!(
        r#"{{"name": "a", "url": "https://x.example/", "expect": {expect}}}"#
    ))
}

/// Why an answer fails; none when it passes.
fn failure(expect: &str, answer: Answer) -> Option<String> {
    match judge(&expecting(expect), &Ok(answer), NOW) {
        Outcome::Passed { .. } => None,
        Outcome::Failed { reason, .. } => Some(reason),
        Outcome::OurOutage { reason } => panic!("one endpoint cannot tell: {reason}"),
    }
}

#[test]
fn each_expectation_has_its_words() {
    let fails =
        |expect: &str, answer: Answer| failure(expect, answer).unwrap_or("passed".to_owned());
    let slow = Answer {
        latency: Duration::from_millis(2_001),
        ..answer(200, "")
    };
    let lines = [
        fails("{}", answer(503, "")),
        fails(r#"{"status": [200, "301-303"]}"#, answer(204, "")),
        fails(r#"{"latency": "2s"}"#, slow),
        fails(r#"{"body_matches": "^ok$"}"#, answer(200, "not ok")),
        fails(r#"{"json": [{"path": "$.state"}]}"#, answer(200, "<html>")),
        fails(r#"{"json": [{"path": "$.state"}]}"#, answer(200, "{}")),
        fails(
            r#"{"json": [{"path": "$.state"}]}"#,
            answer(200, r#"{"state": null}"#),
        ),
        fails(
            r#"{"json": [{"path": "$.state", "equals": "ok"}]}"#,
            answer(200, "{\"state\": \"\\u001b[2Jdown\"}"),
        ),
        fails(
            r#"{"json": [{"path": "$.off", "equals": null}]}"#,
            answer(200, r#"{"off": 1}"#),
        ),
        fails(
            r#"{"json": [{"path": "$.n", "equals": 9007199254740993}]}"#,
            answer(200, r#"{"n": 9007199254740992}"#),
        ),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    status 503, expected 200-299
    status 204, expected 200, 301-303
    it took 2001 ms, expected at most 2s
    the body does not match ^ok$
    the body is not JSON
    there is no $.state in the body
    $.state is null
    $.state is "\u001b[2Jdown", expected "ok"
    $.off is 1, expected null
    $.n is 9007199254740992, expected 9007199254740993
    "#);
    for (expect, body) in [
        ("{}", "anything"),
        (r#"{"body_matches": "(?m)^ok$"}"#, "first\nok\nlast"),
        (
            r#"{"json": [{"path": "$[0].n", "equals": 1}]}"#,
            r#"[{"n": 1.0}]"#,
        ),
        (
            r#"{"json": [{"path": "$", "equals": {"a": [1]}}]}"#,
            r#"{"a": [1]}"#,
        ),
        (
            r#"{"json": [{"path": "$.off", "equals": null}]}"#,
            r#"{"off": null}"#,
        ),
    ] {
        assert_eq!(failure(expect, answer(200, body)), None, "{expect} {body}");
    }
}

#[test]
fn an_answer_that_never_came_fails_with_the_reason() {
    let error = ProbeError::Deadline(Duration::from_millis(250));
    let outcome = judge(&expecting("{}"), &Err(error), NOW);
    let reason = "no answer within 250 ms".to_owned();
    assert_eq!(
        outcome,
        Outcome::Failed {
            reason,
            commit: None
        }
    );
}

#[test]
fn days_of_a_certificate_are_whole_days_from_now() {
    let days = |seconds: i64| {
        let answer = Answer {
            certificate_ends: Some(NOW.plus_seconds(seconds)),
            ..answer(200, "")
        };
        match judge(&expecting("{}"), &Ok(answer), NOW) {
            Outcome::Passed {
                certificate_days, ..
            } => certificate_days.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(days(3 * 86_400), 3);
    assert_eq!((days(86_399), days(0), days(-1)), (0, 0, -1));
}

#[test]
fn the_deployed_commit_is_a_complete_object_id_or_unknown() {
    let sha = "0123456789abcdef0123456789abcdef01234567";
    let by_header =
        check(r#"{"name": "a", "url": "https://x.example/", "commit": {"header": "X-Commit"}}"#);
    let by_json =
        check(r#"{"name": "a", "url": "https://x.example/", "commit": {"json": "$.build.sha"}}"#);
    let told = |header: Option<&str>, body: &str, status: u16| {
        let mut answer = answer(status, body);
        if let Some(header) = header {
            answer.headers.insert("x-commit", header.parse().unwrap());
        }
        let check = if header.is_some() {
            &by_header
        } else {
            &by_json
        };
        match judge(check, &Ok(answer), NOW) {
            Outcome::Passed { commit, .. } | Outcome::Failed { commit, .. } => {
                commit.map(|commit| commit.to_string())
            }
            Outcome::OurOutage { .. } => None,
        }
    };
    assert_eq!(told(Some(sha), "", 200).as_deref(), Some(sha));
    // A failing endpoint tells it too: that is when it matters.
    assert_eq!(told(Some(sha), "", 503).as_deref(), Some(sha));
    let body = format!(r#"{{"build": {{"sha": "{sha}"}}}}"#);
    assert_eq!(told(None, &body, 500).as_deref(), Some(sha));
    for unknown in ["0123456", "main", "", "../../etc", &format!("{sha}0")] {
        assert_eq!(told(Some(unknown), "", 200), None, "{unknown}");
    }
    for unknown in ["", "[]", r#"{"build": {"sha": 7}}"#, r#"{"build": null}"#] {
        assert_eq!(told(None, unknown, 200), None, "{unknown}");
    }
}

proptest! {
    #[test]
    fn any_answer_is_judged_in_few_words(status in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..2_000), ends in any::<i64>()) {
        let check = check(r#"{"name": "a", "url": "https://x.example/", "commit": {"json": "$.c"},
            "expect": {"body_matches": "a+b", "json": [{"path": "$.a[0]", "equals": {"x": 1}}], "latency": "1ms"}}"#);
        let answer = Answer { body, certificate_ends: Some(Millis(ends)), ..answer(status, "") };
        if let Outcome::Failed { reason, .. } = judge(&check, &Ok(answer), NOW) {
            prop_assert!(reason.len() < 1_500 && !reason.chars().any(char::is_control));
        }
    }
}

#[test]
fn deep_json_is_no_json() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let reason = failure(r#"{"json": [{"path": "$[0]"}]}"#, answer(200, &deep));
    assert_eq!(reason.as_deref(), Some("the body is not JSON"));
}
