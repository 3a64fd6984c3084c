//! Checks as they are written.

use caretaker::config::{HealthCheck, JsonPath, Period, health_checks};
use proptest::prelude::*;
use serde_json::json;

fn refusal(text: &str) -> String {
    health_checks(text.as_bytes(), "--health")
        .unwrap_err()
        .to_string()
}

#[test]
fn a_check_needs_a_name_and_an_address_and_has_a_default_for_everything_else() {
    let text = r#"[{"name": "site", "url": "https://example.com/health?token=hunter2"}]"#;
    let checks = health_checks(text.as_bytes(), "--health").unwrap();
    let stored = serde_json::to_string(&checks).unwrap();
    insta::assert_snapshot!(stored, @r#"[{"name":"site","url":"https://example.com/health?token=hunter2","method":"GET","expect":{"status":["200-299"],"certificate_days":14},"interval":"1m","timeout":"10s","failures_to_open":3,"successes_to_close":2}]"#);
    assert_eq!(health_checks(stored.as_bytes(), "again").unwrap(), checks);
    // Whatever is printed or logged: not the query.
    assert_eq!(checks[0].url.to_string(), "https://example.com/health?…");
    assert!(!format!("{checks:?}").contains("hunter2"));
}

#[test]
fn a_check_with_everything_reads_back_as_it_was() {
    let text = r#"
- name: api
  url: https://example.com/status
  method: GET
  headers: {accept: application/json}
  expect:
    status: [200, "204-206"]
    body_matches: '"state":\s*"ok"'
    json: [{path: "$.parts[0].state", equals: ok}, {path: '$["a name"]'}]
    certificate_days: 0
    latency: 2s
  interval: 30s
  timeout: 5s
  failures_to_open: 2
  successes_to_close: 1
  commit: {json: $.build.sha}
"#;
    let checks = health_checks(text.as_bytes(), "health.yaml").unwrap();
    let stored = serde_json::to_string(&checks).unwrap();
    let again = health_checks(stored.as_bytes(), "again").unwrap();
    assert_eq!(again, checks);
    let status = &checks[0].expect.status;
    assert!(status.include(200) && status.include(205));
    assert!(!status.include(201) && !status.include_redirects());
}

#[test]
fn what_cannot_work_is_refused_with_the_mend() {
    let long = "a".repeat(600);
    let one = |rest: &str| {
        refusal(&format!(
            r#"[{{"name": "a", "url": "https://x.example/", {rest}}}]"#
        ))
    };
    let url = |url: &str| refusal(&format!(r#"[{{"name": "a", "url": "{url}"}}]"#));
    let all = [
        refusal("{}"),
        refusal("[1]"),
        refusal(r#"[{"name": "a"}]"#),
        refusal(r#"[{"name": "a", "url": "https://x.example/", "ulr": 1}]"#),
        refusal(r#"[{"name": "", "url": "https://x.example/"}]"#),
        refusal("[{name: \"a\\u0000b\", url: \"https://x.example/\"}]"),
        refusal(
            r#"[{"name": "a", "url": "https://x.example/"}, {"name": "a", "url": "https://y.example/"}]"#,
        ),
        url("https://user:hunter2@x.example/"),
        url("ftp://x.example/"),
        url("file:///etc/passwd"),
        url("unix:/run/socket"),
        url("x.example/health"),
        url("https://x.example/#part"),
        url(&format!("https://x.example/{}", "a".repeat(2_000))),
        one(r#""method": "POST""#),
        one(r#""headers": {"Authorization": "Bearer hunter2"}"#),
        one(r#""headers": {"HOST": "internal"}"#),
        one(r#""headers": {"a b": "c"}"#),
        one(r#""headers": {"a": "b\r\nc: d"}"#),
        one(r#""headers": {"a": "1", "A": "2"}"#),
        one(r#""interval": "1""#),
        one(r#""interval": "500ms""#),
        one(r#""interval": "99999999999999999999h""#),
        one(r#""timeout": "2m""#),
        one(r#""failures_to_open": 0"#),
        one(r#""successes_to_close": 101"#),
        one(r#""expect": {"status": []}"#),
        one(r#""expect": {"status": "99"}"#),
        one(r#""expect": {"status": "300-200"}"#),
        one(r#""expect": {"body_matches": "("}"#),
        one(r#""expect": {"body_matches": "(a{1000}){1000}"}"#),
        one(&format!(r#""expect": {{"body_matches": "{long}"}}"#)),
        one(r#""expect": {"json": [{"path": "a.b"}]}"#),
        one(r#""expect": {"latency": "2m"}"#),
        one(r#""method": "HEAD", "expect": {"body_matches": "ok"}"#),
        one(r#""commit": {"header": "a b"}"#),
        one(r#""commit": "X-Commit""#),
    ];
    let text = all.join("\n");
    assert!(!text.contains("hunter2"), "{text}");
    insta::assert_snapshot!(text);
    let many: Vec<_> = (0..21)
        .map(|number| json!({"name": number.to_string(), "url": "https://x.example/"}))
        .collect();
    assert!(refusal(&json!(many).to_string()).contains("21 checks; keep at most 20"));
}

#[test]
fn a_path_finds_one_place_or_none() {
    let document = json!({"a": {"b-c": [1, {"d e": "x"}]}, "é": true, "$": 2, "": 3});
    let find = |path: &str| path.parse::<JsonPath>().unwrap().find(&document).cloned();
    assert_eq!(find("$.a.b-c[1][\"d e\"]"), Some(json!("x")));
    assert_eq!(find("$.é"), Some(json!(true)));
    assert_eq!(find("$[\"$\"]"), Some(json!(2)));
    assert_eq!(find("$[\"\"]"), Some(json!(3)));
    assert_eq!(find("$[\"\\u00e9\"]"), Some(json!(true)));
    assert_eq!(find("$"), Some(document.clone()));
    for absent in [
        "$.b",
        "$.a.b-c[2]",
        "$.a[0]",
        "$[0]",
        "$.a.b-c.d",
        "$[18446744073709551615]",
    ] {
        assert_eq!(find(absent), None, "{absent}");
    }
    for wrong in [
        "",
        "a",
        "$a",
        "$.",
        "$..a",
        "$.a.",
        "$[",
        "$[]",
        "$[-1]",
        "$[1",
        "$[\"a]",
        "$[a]",
        "$.*",
        "$[*]",
        "$[?(@.a)]",
        "$[99999999999999999999]",
        "$ .a",
        "$[\"a\" ]",
    ] {
        assert!(wrong.parse::<JsonPath>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        drop(text.parse::<JsonPath>());
        drop(text.parse::<Period>());
        drop(health_checks(text.as_bytes(), "x"));
    }

    #[test]
    fn a_period_reads_as_it_shows(milliseconds in 0_u64..1_000_000_000) {
        let period: Period = format!("{milliseconds}ms").parse().unwrap();
        let shown: Period = period.to_string().parse().unwrap();
        prop_assert_eq!(shown.milliseconds(), milliseconds);
    }

    #[test]
    fn stored_checks_stay_as_they_are(failures in 1_u32..=100, seconds in 1_u64..=86_400, status in 100_u16..=599) {
        let text = json!([{"name": "a", "url": "https://x.example/?q", "interval": format!("{seconds}s"),
            "failures_to_open": failures, "expect": {"status": status}}]).to_string();
        let checks: Vec<HealthCheck> = health_checks(text.as_bytes(), "x").unwrap();
        let stored = serde_json::to_string(&checks).unwrap();
        let again = health_checks(stored.as_bytes(), "x").unwrap();
        prop_assert_eq!(serde_json::to_string(&again).unwrap(), stored);
    }
}
