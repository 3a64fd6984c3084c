//! Rules files: read strictly, and refused with the place and the mend.

use caretaker::config::{read_rules, rules_from_yaml};
use caretaker::gate::{MergeMethod, SecondOpinionRule, Workflows};

use super::Place;

fn refusal(text: &str) -> String {
    rules_from_yaml(text.as_bytes(), "rules.yaml")
        .unwrap_err()
        .to_string()
}

#[test]
fn a_full_rules_file_is_read() {
    let text = r#"
denied:
  - src/auth/**
  - {glob: "*.pem", reason: keys are changed by people}
infrastructure: [deploy/**]
data: [migrations/**]
sensitive: []
limits: {files: 20, lines: 400, binary: false}
dependencies: {major: approve, patch: free}
workflows: approve
second_opinion: off
checks: {required: [{name: build, app: github-actions}], allow_none: false}
merge_method: rebase
base: trunk
test: [cargo, test]
reruns: 3
anchors: {required: []}
"#;
    let rules = rules_from_yaml(text.as_bytes(), "rules.yaml").unwrap();
    assert_eq!(
        rules.denied[1].reason.as_deref(),
        Some("keys are changed by people")
    );
    assert_eq!(
        (rules.second_opinion, rules.workflows),
        (SecondOpinionRule::Off, Workflows::Approve)
    );
    assert_eq!(
        (rules.merge_method, rules.base.0.as_str()),
        (MergeMethod::Rebase, "trunk")
    );
    assert_eq!(rules.checks.required[0].app, "github-actions");
    assert_eq!(rules.test, ["cargo", "test"]);
    assert_eq!(rules.reruns.count(), 3);
}

#[test]
fn an_unusable_rules_file_says_where_and_how_to_mend_it() {
    let messages = [
        "",
        "# only a comment\n",
        "deneid: [src/**]\n",
        "denied:\n  - *.pem\n",
        "denied:\n  - !src/x\n",
        "denied:\n  - 12\n",
        "denied:\n  - {globb: x}\n",
        "denied: src/**\n",
        "denied:\nsensitive: []\n",
        "limits: {files: many}\n",
        "limits: {binary: -1}\n",
        "second_opinion: maybe\n",
        "workflows: free\n",
        "checks: {required: [{name: build}]}\n",
        "checks: {allow_none: no}\n",
        "merge_method: [squash]\n",
        "test: cargo test\n",
        "reruns: 11\n",
        "reruns: -1\n",
        "just text",
    ]
    .map(refusal);
    insta::assert_snapshot!(messages.join("\n"), @r#"
    rules.yaml:1:1: the rules file is empty; write at least `denied: []` if nothing is to be refused
    rules.yaml:1:1: the rules file is empty; write at least `denied: []` if nothing is to be refused
    rules.yaml:1:1: unknown key "deneid"; did you mean denied? Known here: denied, infrastructure, data, sensitive, limits, dependencies, workflows, second_opinion, checks, merge_method, base, test, reruns, anchors
    rules.yaml:2:5: a value that starts with * is read as a YAML alias; put it in quotes, as in "*.pem"
    rules.yaml:2:11: a value that starts with ! is read as a YAML tag; put it in quotes if the ! is meant
    rules.yaml:2:5: found: integer; expected a glob (in quotes when it looks like a number or a word such as yes), or {glob, reason}
    rules.yaml:2:6: unknown key "globb"; did you mean glob? Known here: glob, reason
    rules.yaml:1:9: expected a list here, as in [a, b]
    rules.yaml:1:7: expected a list here, as in [a, b]
    rules.yaml:1:17: this value is not a whole number that fits here
    rules.yaml:1:10: this value cannot be used; expected true, false, or the number of binary files that may change
    rules.yaml:1:17: "maybe" is not one of the words allowed here; known here: required, off
    rules.yaml:1:12: "free" is not one of the words allowed here; known here: deny, approve
    rules.yaml:1:22: the key "app" is missing; add it
    rules.yaml:1:22: this value is not a yes-or-no; write true or false
    rules.yaml:1:15: expected one word here
    rules.yaml:1:7: expected a list here, as in [a, b]
    rules.yaml:1:9: tests are run again at most 10 times, not 11; 0 runs nothing again
    rules.yaml:1:9: this value is not a whole number that fits here
    rules.yaml:1:1: expected keys with values here, as in key: value
    "#);
}

#[test]
fn tests_are_run_again_once_when_the_rules_do_not_say_how_often() {
    let count = |text: &str| {
        let rules = rules_from_yaml(text.as_bytes(), "rules.yaml").unwrap();
        rules.reruns.count()
    };
    assert_eq!(
        ["denied: []\n", "reruns: 0\n", "reruns: 10\n"].map(count),
        [1, 0, 10]
    );
}

#[test]
fn a_rules_file_is_named_by_the_digest_of_its_exact_bytes() {
    let place = Place::new();
    let one = read_rules(&place.write("one.yaml", "denied: [src/auth/**]\n")).unwrap();
    let two = read_rules(&place.write("two.yaml", "denied: [src/auth/**] \n")).unwrap();
    assert_eq!(one.document(), two.document());
    assert_ne!(one.digest(), two.digest());
    let refused = read_rules(&place.write("bad.yaml", "denied: [\"/src/**\"]\n")).unwrap_err();
    assert!(
        place
            .shown(&refused)
            .starts_with("bad.yaml: rules: denied[0]: the glob \"/src/**\" is refused"),
        "{refused}"
    );
    let large = read_rules(&place.write("large.yaml", vec![b'#'; 2 << 20])).unwrap_err();
    assert!(large.to_string().contains("larger than"));
}

#[test]
fn every_starter_rules_file_compiles_and_refuses_something() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("onboarding/rules");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|ending| ending == "yaml") {
            let rules = read_rules(&file).unwrap_or_else(|error| panic!("{error}"));
            assert!(!rules.denies_nothing(), "{}", file.display());
            seen += 1;
        }
    }
    assert!(seen >= 8, "only {seen} starter rules files");
}
