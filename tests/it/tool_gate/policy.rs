//! Reading a session's policy: strictly, or not at all.

use caretaker::change::Sha256Digest;
use caretaker::tool_gate::{Policy, PolicyError, ProducerKind};

/// As the neighbour writes it.
const NEIGHBOURS: &str = r#"{"path_allowlist":["src/","docs/*.md"],"producers":[{"command":["true"],"kind":"test","name":"tests","required":true}],"task_id":"task-1","v":1}"#;

fn refusal(document: &str) -> String {
    Policy::parse(document.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_neighbours_policy_is_read_as_it_is() {
    let policy = Policy::parse(NEIGHBOURS.as_bytes()).unwrap();
    assert_eq!(policy.task(), "task-1");
    assert_eq!(policy.digest(), Sha256Digest::of(NEIGHBOURS.as_bytes()));
    let producer = policy.required().next().unwrap();
    assert_eq!(
        (producer.kind, producer.command.as_slice()),
        (ProducerKind::Test, ["true".to_owned()].as_slice())
    );
    assert!(!policy.enforces_nothing());
}

#[test]
fn another_version_is_refused() {
    let document = NEIGHBOURS.replace("\"v\":1", "\"v\":99,\"later\":{}");
    assert_eq!(
        Policy::parse(document.as_bytes()).unwrap_err(),
        PolicyError::Version(99)
    );
    assert!(refusal(&NEIGHBOURS.replace(",\"v\":1", "")).contains("missing field `v`"));
}

/// The neighbour drops the whole policy for an unknown kind and allows everything.
#[test]
fn whatever_is_not_exactly_a_policy_is_refused() {
    for (document, word) in [
        (
            NEIGHBOURS.replace("\"test\"", "\"wishes\""),
            "unknown variant",
        ),
        (NEIGHBOURS.replace("task_id", "task_no"), "unknown field"),
        (NEIGHBOURS.replace("[\"true\"]", "\"true\""), "invalid type"),
        (NEIGHBOURS.replace("[\"true\"]", "[]"), "has no command"),
        (
            NEIGHBOURS.replace("\"v\":1", "\"v\":1,\"v\":1"),
            "occurs twice",
        ),
        (NEIGHBOURS.replace("\"v\":1", "\"v\":1.0"), "only integers"),
        (NEIGHBOURS.replace("\"v\":1", "\"v\":true"), "invalid type"),
        (NEIGHBOURS.replace("\"task-1\"", "\"\""), "task_id"),
        (NEIGHBOURS.replace("src/", "sr\\u0000c"), "NUL"),
        ("[1]".to_owned(), "not an object"),
        (
            NEIGHBOURS.replace(
                "{\"command\":[\"true\"],\"kind\":\"test\",\"name\":\"tests\",\"required\":true}",
                "[\"a\",\"test\",[\"true\"],true]",
            ),
            "not an object",
        ),
        (String::new(), "expected"),
        (NEIGHBOURS[..40].to_owned(), "expected"),
        (
            format!("{NEIGHBOURS}{NEIGHBOURS}"),
            "the end of the document",
        ),
        (" ".repeat(300_000), "at most"),
    ] {
        let refusal = refusal(&document);
        assert!(refusal.contains(word), "{word}: {refusal}");
    }
}

#[test]
fn lists_may_be_left_out_and_producers_are_required_unless_they_say_otherwise() {
    let policy = Policy::parse(br#"{"v":1,"task_id":"t"}"#).unwrap();
    assert!(policy.enforces_nothing());
    let document = br#"{"v":1,"task_id":"t","producers":[{"name":"a","kind":"lint","command":["b"]},{"name":"c","kind":"lint","command":["d"],"required":false}]}"#;
    let policy = Policy::parse(document).unwrap();
    assert_eq!(
        (policy.required().count(), policy.producers().len()),
        (1, 2)
    );
}

// The line to break is named in `tool_gate::policy`.
#[test]
fn a_producers_folder_lies_below_the_top() {
    let within = |folder: &str| {
        let producer = format!("{{\"folder\":{folder},\"command\"");
        NEIGHBOURS.replace("{\"command\"", &producer)
    };
    let policy = Policy::parse(within("\"web/app\"").as_bytes()).unwrap();
    assert_eq!(policy.producers()[0].folder.as_deref(), Some("web/app"));
    assert!(policy.at_top().is_empty());
    for folder in [
        "",
        "/",
        "/etc",
        "..",
        "web/../..",
        "./web",
        "web//app",
        "web/",
        "a\\\\b",
        "a\\u0000",
    ] {
        let refused = refusal(&within(&format!("\"{folder}\"")));
        assert!(
            refused.contains("none below the worktree's top"),
            "{folder}: {refused}"
        );
    }
}
