//! What is read of a payload: GitHub's own examples, and whatever else may stand there.

use std::time::{Duration, Instant};

use caretaker::hook::{
    Delivery, DeliveryError, DeliveryId, EventName, HeaderError, MOST_REPOSITORIES, Version,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NOW, after, run};
use crate::support::corpus;

fn event(name: &str) -> EventName {
    name.parse().unwrap()
}

fn read(name: &str, body: &[u8]) -> Result<Delivery, DeliveryError> {
    Delivery::read(&event(name), body)
}

fn object(name: &str, body: &Value) -> Option<(String, String)> {
    let delivery = read(name, body.to_string().as_bytes()).unwrap();
    let object = delivery.object?;
    let version = match object.version {
        Version::Ordered { digits, .. } => digits,
        Version::Commit(commit) => commit,
    };
    Some((object.name, version))
}

/// Events of which every example with a repository is a hint.
const HINTS: [&str; 8] = [
    "workflow_run",
    "workflow_job",
    "check_run",
    "check_suite",
    "status",
    "push",
    "repository",
    "public",
];

fn examples() -> Option<Vec<(String, Value)>> {
    let document = corpus("github/webhook-examples.json")?;
    let document: Value = serde_json::from_slice(&document).unwrap();
    let events = document["events"].as_array().unwrap();
    let of = |event: &Value| {
        let name = event["name"].as_str().unwrap().to_owned();
        let examples = event["examples"].as_array().unwrap().clone();
        examples
            .into_iter()
            .map(move |example| (name.clone(), example))
    };
    Some(events.iter().flat_map(of).collect())
}

#[test]
fn every_example_of_github_is_read_and_says_which_version_of_what() {
    let Some(examples) = examples() else { return };
    assert_eq!(examples.len(), 149);
    let mut lines: Vec<String> = Vec::new();
    for (name, example) in &examples {
        let delivery = read(name, example.to_string().as_bytes()).unwrap();
        let expected: Vec<u64> = if HINTS.contains(&name.as_str()) {
            vec![example["repository"]["id"].as_u64().unwrap()]
        } else {
            let lists = ["repositories", "repositories_added", "repositories_removed"];
            let listed = lists
                .iter()
                .filter_map(|list| example[list].as_array())
                .flatten();
            let listed = listed.filter_map(|one| one["id"].as_u64());
            let listed: std::collections::BTreeSet<u64> = listed.collect();
            listed.into_iter().collect()
        };
        assert_eq!(delivery.repositories, expected, "{name}: {example}");
        let version = match delivery.object {
            None => "-".to_owned(),
            Some(object) => match object.version {
                Version::Ordered { digits, at } => format!("{} {digits} {at}", object.name),
                Version::Commit(commit) => format!("{} {commit}", object.name),
            },
        };
        if !delivery.repositories.is_empty() {
            lines.push(format!("{name} {:?} {version}", delivery.repositories));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_later_version_is_greater_whatever_is_later_about_it() {
    let version = |attempt, at, status| {
        let body = run(1, attempt, at, status);
        object("workflow_run", &serde_json::from_slice(&body).unwrap())
            .unwrap()
            .1
    };
    let ascending = [
        version(1, NOW, "queued"),
        version(1, NOW, "in_progress"),
        version(1, NOW, "completed"),
        version(1, after(1), "queued"),
        version(1, after(100_000_000), "queued"),
        version(2, after(-1), "queued"),
        version(10, after(-9), "queued"),
    ];
    assert!(ascending.is_sorted_by(|a, b| a < b), "{ascending:#?}");
    assert_eq!(version(3, NOW, "completed"), "00000000030018000000000002");
    assert!(ascending.iter().all(|version| version.len() == 26));
}

/// What cannot be put in order is news each time: a hint too many costs one look, one too few a minute.
#[test]
fn what_has_no_readable_version_is_a_hint_without_an_object() {
    let mut payload: Value = serde_json::from_slice(&run(1, 1, NOW, "completed")).unwrap();
    assert!(object("workflow_run", &payload).is_some());
    let good = payload["workflow_run"].clone();
    for (member, odd) in [
        ("id", json!(null)),
        ("id", json!("7")),
        ("id", json!(0)),
        ("id", json!(u64::MAX)),
        ("run_attempt", json!("1")),
        ("run_attempt", json!(1e300)),
        ("run_attempt", json!(10_000_000_000_u64)),
        ("updated_at", json!(null)),
        ("updated_at", json!(1_800_000_000)),
        ("updated_at", json!("yesterday")),
        ("updated_at", json!("-000001-01-01T00:00:00Z")),
        ("started_at", json!({"deep": [1]})),
        ("status", json!("unheard_of")),
        ("status", json!(["completed"])),
    ] {
        payload["workflow_run"] = good.clone();
        payload["workflow_run"][member] = odd.clone();
        let delivery = read("workflow_run", payload.to_string().as_bytes()).unwrap();
        assert_eq!(delivery.repositories, [1], "{member}: {odd}");
        assert_eq!(delivery.object, None, "{member}: {odd}");
    }
    for odd in [
        json!(null),
        json!([1]),
        json!("run"),
        json!(7),
        json!(true),
        json!(0.5),
    ] {
        payload["workflow_run"] = odd;
        let delivery = read("workflow_run", payload.to_string().as_bytes()).unwrap();
        assert_eq!((delivery.repositories, delivery.object), (vec![1], None));
    }
    let pushed = |name: &str, after: &str| {
        let body = json!({"ref": name, "after": after, "repository": {"id": 1}});
        object("push", &body)
    };
    let commit = "6113728f27ae82c7b1a177c8d03f9e96e0adf246";
    let expected = ("push/1/refs/heads/main".to_owned(), commit.to_owned());
    assert_eq!(pushed("refs/heads/main", commit), Some(expected));
    assert_eq!(pushed("refs/heads/ma\0in", commit), None);
    assert_eq!(pushed(&"x".repeat(256), commit), None);
    assert_eq!(pushed("refs/heads/main", "main"), None);
}

#[test]
fn a_repository_that_is_not_there_is_no_hint_and_one_without_a_number_is_an_error() {
    for nobody in [json!(null), json!("example/parcel"), json!([1]), json!(1)] {
        let body = json!({"repository": nobody}).to_string();
        assert_eq!(read("push", body.as_bytes()), Ok(Delivery::default()));
    }
    assert_eq!(read("push", b"{}"), Ok(Delivery::default()));
    for id in [
        "null",
        "0",
        "-1",
        "1.0",
        "1e3",
        "\"1\"",
        "9223372036854775808",
        "18446744073709551616",
    ] {
        let body = format!("{{\"repository\": {{\"id\": {id}}}}}");
        let refused = read("push", body.as_bytes());
        assert_eq!(refused, Err(DeliveryError::Repository), "{id}");
    }
    let largest = format!("{{\"repository\": {{\"id\": {}}}}}", i64::MAX);
    let read_back = read("push", largest.as_bytes()).unwrap();
    assert_eq!(read_back.repositories, [i64::MAX.unsigned_abs()]);
}

#[test]
fn an_event_that_is_no_news_hints_nobody_whatever_it_holds() {
    for name in [
        "ping",
        "star",
        "watch",
        "issues",
        "pull_request",
        "meta",
        "not_yet_invented",
    ] {
        let body = run(1, 1, NOW, "completed");
        assert_eq!(read(name, &body), Ok(Delivery::default()), "{name}");
        assert!(read(name, b"not JSON").is_err());
    }
}

#[test]
fn an_installation_names_a_bounded_number_of_repositories() {
    let ids: Vec<Value> = (1..=5_000).rev().map(|id| json!({"id": id})).collect();
    let odd = json!([{"id": 3}, null, 7, {"id": "x"}, {}, {"id": 3}, {"id": 2}]);
    let body = json!({"repositories_added": odd, "repositories_removed": "none"}).to_string();
    let few = read("installation_repositories", body.as_bytes()).unwrap();
    assert_eq!(few.repositories, [2, 3]);
    let body = json!({"repositories": ids, "repository": {"id": "odd"}}).to_string();
    let many = read("installation", body.as_bytes()).unwrap();
    assert_eq!(many.repositories.len(), MOST_REPOSITORIES);
}

#[test]
fn what_is_not_one_json_object_is_refused_with_its_place_and_nothing_of_its_content() {
    let shown = |body: &[u8]| read("push", body).unwrap_err().to_string();
    let bodies: [&[u8]; 12] = [
        b"",
        b"{",
        b"{}{}",
        b"[]",
        b"[{\"id\": 1}]",
        b"null",
        b"\"hunter2\"",
        b"{\"ref\": \"\xff\"}",
        b"{\"repository\": {\"id\": 1}, \"repository\": {\"id\": 2}}",
        b"{\"repository\": {\"id\": 1, \"id\": 2}}",
        b"{\"repository\": {\"id\": 1}, \"after\": 1e999}",
        b"payload=%7B%7D",
    ];
    let lines: Vec<String> = bodies.iter().map(|body| shown(body)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    the payload is not JSON: line 1, column 0
    the payload is not JSON: line 1, column 1
    the payload is not JSON: line 1, column 3
    the payload is not a JSON object
    the payload is not a JSON object
    the payload is not a JSON object
    the payload is not a JSON object
    byte 9 of the payload is not UTF-8
    the payload has one of its members twice: line 1, column 38
    the payload has one of its members twice: line 1, column 29
    the payload is not JSON: line 1, column 40
    the payload is not JSON: line 1, column 1
    ");
    // Escapes and brackets in texts are no nesting.
    let text = format!(
        "{{\"x\": \"{}\\\"{}\"}}",
        "[".repeat(1_000),
        "{".repeat(1_000)
    );
    assert!(read("push", text.as_bytes()).is_ok());
}

#[test]
fn a_member_that_is_not_read_may_stand_there_twice() {
    let body = b"{\"x\": 1, \"x\": 2, \"repository\": {\"id\": 1, \"name\": 1, \"name\": 2}}";
    assert_eq!(read("push", body).unwrap().repositories, [1]);
}

/// Break it: drop `is_too_deep` from `Delivery::read`; deep nesting is then no longer refused as such.
#[test]
fn the_largest_and_oddest_bodies_end_in_bounded_time() {
    const SIZE: usize = 8 << 20;
    let start = Instant::now();
    let too_deep = Err(DeliveryError::TooDeep);
    for bomb in ["[", "{\"a\":", "{\"repository\":", "[{\"id\":"] {
        let body = bomb.repeat(SIZE / bomb.len());
        assert_eq!(read("push", body.as_bytes()), too_deep, "{bomb}");
        let hidden = format!("{{\"x\": {}", &body[..SIZE / 2]);
        assert_eq!(read("push", hidden.as_bytes()), too_deep, "{bomb}");
    }
    let digits = format!("{{\"id\": {}}}", "9".repeat(SIZE));
    assert!(read("status", digits.as_bytes()).is_err());
    let text = format!("{{\"ref\": \"{}\"}}", "\\u0041".repeat(SIZE / 6));
    assert!(read("push", text.as_bytes()).is_ok());
    let list = format!(
        "{{\"repositories\": [{}1]}}",
        "{\"id\":1},".repeat(SIZE / 9)
    );
    assert!(read("installation", list.as_bytes()).is_ok());
    let members = format!("{{{}\"z\":1}}", "\"a\":{},".repeat(SIZE / 7));
    assert!(read("push", members.as_bytes()).is_ok());
    // Far more than it takes, far less than a reader of quadratic time would.
    assert!(
        start.elapsed() < Duration::from_mins(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn headers_are_bounded_in_length_and_alphabet() {
    let id = "72D3162E-cc78-11e3-81ab-4c9367dc0958";
    let read: DeliveryId = id.parse().unwrap();
    assert_eq!(read.as_str(), id.to_lowercase());
    let long = "a".repeat(65);
    for odd in [
        "",
        "1234567",
        "72d3162e cc78",
        "72d3162e\n",
        "ä72d3162ecc78",
        "../../etc/x",
        &long,
    ] {
        assert_eq!(
            odd.parse::<DeliveryId>(),
            Err(HeaderError::Delivery),
            "{odd:?}"
        );
    }
    assert_eq!(event("workflow_run").to_string(), "workflow_run");
    for odd in ["", "Push", "push ", "push/1", "push\0", &long] {
        assert_eq!(odd.parse::<EventName>(), Err(HeaderError::Event), "{odd:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..400), name in "[a-z_]{1,20}") {
        for name in [name.as_str(), "push", "workflow_run", "installation"] {
            let _read = read(name, &body);
        }
    }

    /// Also of what the alphabet of JSON can spell.
    #[test]
    fn almost_json_is_read_or_refused(body in r#"[\[\]{}:,"\\0-9eE.+\-a-f idrepostyn]{0,200}"#) {
        for name in ["push", "status", "check_run", "installation_repositories"] {
            let _read = read(name, body.as_bytes());
        }
    }
}

/// Examples with bytes overwritten, removed and inserted: read or refused, and no repository that is not written there.
#[test]
fn damaged_examples_are_read_or_refused() {
    let Some(examples) = examples() else { return };
    let bodies: Vec<(String, Vec<u8>)> = examples
        .into_iter()
        .map(|(name, example)| (name, example.to_string().into_bytes()))
        .collect();
    let damage = (any::<u8>(), any::<prop::sample::Index>(), any::<u8>());
    let damages = proptest::collection::vec(damage, 1..12);
    let which = any::<prop::sample::Index>();
    proptest!(ProptestConfig::with_cases(600), |(which in which, damages in damages)| {
        let (name, mut body) = bodies[which.index(bodies.len())].clone();
        for (kind, place, byte) in damages {
            let at = place.index(body.len().max(1));
            match kind % 5 {
                0 if at < body.len() => body[at] = byte,
                1 if at < body.len() => drop(body.remove(at)),
                2 => body.insert(at.min(body.len()), byte),
                3 => body.insert(at.min(body.len()), b"[]{}\",:0"[usize::from(byte % 8)]),
                _ if byte < 8 => body.truncate(at),
                _ => {}
            }
        }
        if let Ok(delivery) = read(&name, &body) {
            let text = String::from_utf8(body).unwrap();
            for id in delivery.repositories {
                prop_assert!(text.contains(&id.to_string()));
            }
        }
    });
}
