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
        "just text",
    ]
    .map(refusal);
    insta::assert_snapshot!(messages.join("\n"), @"");
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
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("onboarding");
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
