//! The gate: what is denied, what is free, what a person must approve, and why.

mod consequential;
mod properties;
mod rules;

use caretaker::change::{ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Side};
use caretaker::gate::{
    Base, BinaryLimit, Bump, Class, Decision, DecisionDocument, Dependencies, Handling, Limits,
    List, Measured, NOT_MEASURED, Opinion, PathRule, Rules, RulesDocument, SecondOpinion,
    SecondOpinionRule, Stricter, Verdict, Workflows, check_paths, evaluate,
};

fn list(globs: &[&str]) -> Vec<PathRule> {
    globs.iter().map(|glob| PathRule::new(*glob)).collect()
}

fn compile(document: RulesDocument) -> Rules {
    Rules::compile(document, b"the file").unwrap()
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn side(mode: Mode, byte: u8) -> Side {
    if mode == Mode::Absent {
        Side::absent(ObjectFormat::Sha1)
    } else {
        Side {
            mode,
            oid: Oid::from_bytes(&[byte; 20]).unwrap(),
        }
    }
}

fn entry(path: RepoPath, old: Mode, new: Mode) -> FileChange {
    FileChange {
        path,
        old: side(old, 1),
        new: side(new, 2),
    }
}

fn change_of(entries: Vec<FileChange>) -> ChangeSet {
    ChangeSet::new(ObjectFormat::Sha1, entries).unwrap()
}

fn edits(paths: &[&str]) -> ChangeSet {
    change_of(
        paths
            .iter()
            .map(|text| entry(path(text), Mode::Regular, Mode::Regular))
            .collect(),
    )
}

fn agreeing() -> SecondOpinion {
    opinion(Class::Functional)
}

fn opinion(class: Class) -> SecondOpinion {
    SecondOpinion::Given(Opinion {
        class,
        model: "reviewer-1".to_owned(),
    })
}

/// Everything measured, everything small, and a model that agrees.
fn measured(change: &ChangeSet) -> Measured<'_> {
    Measured {
        lines: Some(3),
        binary: Some(0),
        opinion: agreeing(),
        ..Measured::nothing_but(change)
    }
}

fn decide(document: RulesDocument, paths: &[&str]) -> Decision {
    evaluate(&compile(document), &measured(&edits(paths)))
}

fn denies(glob: &str, raw: &[u8]) -> bool {
    let rules = compile(RulesDocument {
        denied: list(&[glob]),
        workflows: Workflows::Approve,
        ..RulesDocument::default()
    });
    check_paths(&rules, [&RepoPath::from_bytes(raw).unwrap()]).is_some()
}

#[test]
fn a_small_functional_change_with_an_agreeing_second_opinion_is_free() {
    let decision = decide(RulesDocument::default(), &["src/lib.rs", "tests/it.rs"]);
    assert_eq!(
        (decision.verdict(), decision.class()),
        (Verdict::Free, Class::Functional)
    );
    assert!(decision.signed_reasons().items.is_empty());
}

#[test]
fn without_a_second_opinion_a_change_is_free_only_where_the_project_says_off() {
    let change = edits(&["src/lib.rs"]);
    let verdict = |rule, opinion| {
        let rules = compile(RulesDocument {
            second_opinion: rule,
            ..RulesDocument::default()
        });
        evaluate(
            &rules,
            &Measured {
                opinion,
                ..measured(&change)
            },
        )
        .verdict()
    };
    assert_eq!(
        verdict(SecondOpinionRule::Required, SecondOpinion::NotMeasured),
        Verdict::Approve
    );
    assert_eq!(
        verdict(SecondOpinionRule::Required, SecondOpinion::Off),
        Verdict::Approve
    );
    assert_eq!(
        verdict(SecondOpinionRule::Off, SecondOpinion::NotMeasured),
        Verdict::Free
    );
    assert_eq!(
        verdict(SecondOpinionRule::Off, SecondOpinion::Off),
        Verdict::Free
    );
    // An opinion that nobody asked for still counts when it is stricter.
    assert_eq!(
        verdict(SecondOpinionRule::Off, opinion(Class::Data)),
        Verdict::Approve
    );
}

#[test]
fn on_disagreement_the_stricter_class_wins() {
    let rules = compile(RulesDocument {
        data: list(&["migrations/**"]),
        ..RulesDocument::default()
    });
    let change = edits(&["migrations/1.sql"]);
    let with = |class| {
        evaluate(
            &rules,
            &Measured {
                opinion: opinion(class),
                ..measured(&change)
            },
        )
    };
    assert_eq!(
        (
            with(Class::Functional).class(),
            with(Class::Functional).stricter()
        ),
        (Class::Data, Stricter::Rule)
    );
    assert_eq!(
        (with(Class::Data).class(), with(Class::Data).stricter()),
        (Class::Data, Stricter::Equal)
    );
    assert_eq!(
        (
            with(Class::Infrastructure).class(),
            with(Class::Infrastructure).stricter()
        ),
        (Class::Infrastructure, Stricter::Model)
    );
    assert_eq!(with(Class::Infrastructure).rules_class(), Class::Data);
}

#[test]
fn sensitive_asks_a_person_without_changing_the_class() {
    let decision = decide(
        RulesDocument {
            sensitive: list(&["src/billing/**"]),
            ..RulesDocument::default()
        },
        &["src/billing/tax.rs"],
    );
    assert_eq!(
        (decision.verdict(), decision.class()),
        (Verdict::Approve, Class::Functional)
    );
    assert_eq!(
        decision.signed_reasons().items,
        ["sensitive: src/billing/** (class functional, path src/billing/tax.rs)"]
    );
}

#[test]
fn what_is_over_a_limit_or_not_measured_asks_a_person() {
    let limits = Limits {
        files: Some(2),
        lines: Some(10),
        binary: Some(BinaryLimit::Any(false)),
    };
    let rules = compile(RulesDocument {
        limits,
        ..RulesDocument::default()
    });
    let small = edits(&["a", "b"]);
    let large = edits(&["a", "b", "c"]);
    let verdict = |measured: &Measured<'_>| evaluate(&rules, measured).verdict();
    assert_eq!(verdict(&measured(&small)), Verdict::Free);
    assert_eq!(verdict(&measured(&large)), Verdict::Approve);
    assert_eq!(
        verdict(&Measured {
            lines: Some(11),
            ..measured(&small)
        }),
        Verdict::Approve
    );
    assert_eq!(
        verdict(&Measured {
            binary: Some(1),
            ..measured(&small)
        }),
        Verdict::Approve
    );
    for unmeasured in [
        Measured {
            lines: None,
            ..measured(&small)
        },
        Measured {
            binary: None,
            ..measured(&small)
        },
    ] {
        let decision = evaluate(&rules, &unmeasured);
        assert_eq!(decision.verdict(), Verdict::Approve);
        assert!(decision.signed_reasons().items[0].contains(NOT_MEASURED));
    }
    assert_eq!(BinaryLimit::Any(true).most(), None);
}

#[test]
fn a_name_that_is_not_utf8_is_denied_and_shown_as_escapes() {
    let odd = RepoPath::from_bytes(b"src/\xff.rs").unwrap();
    let change = change_of(vec![entry(odd, Mode::Absent, Mode::Regular)]);
    let decision = evaluate(&compile(RulesDocument::default()), &measured(&change));
    assert_eq!(decision.verdict(), Verdict::Deny);
    let document = decision.document();
    assert_eq!(document.denied[0].path, "src/\\xff.rs");
    let text = serde_json::to_string(&document).unwrap();
    assert_eq!(
        serde_json::from_str::<DecisionDocument>(&text).unwrap(),
        document
    );
}

#[test]
fn the_json_of_a_denial_names_path_rule_and_reason() {
    let denied = vec![PathRule {
        glob: "src/auth/**".to_owned(),
        reason: Some("people only".to_owned()),
    }];
    let decision = decide(
        RulesDocument {
            denied,
            infrastructure: list(&["deploy/**"]),
            ..RulesDocument::default()
        },
        &["deploy/x.yaml", "src/auth/login.rs"],
    );
    let json = serde_json::to_value(decision.document()).unwrap();
    for digest in ["change_digest", "rules_digest"] {
        assert_eq!(json[digest].as_str().unwrap().len(), 64);
    }
    let shown = ["verdict", "class", "denied", "matched"].map(|member| json[member].to_string());
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "deny"
    "infrastructure"
    [{"path":"src/auth/login.rs","reason":"people only","rule":"src/auth/**"}]
    [{"class":"infrastructure","list":"infrastructure","path":"deploy/x.yaml","reason":null,"rule":"deploy/**"}]
    "#);
    insta::assert_snapshot!(json["reasons"][0].to_string(), @r#"{"children":[{"children":[],"outcome":"deny","rule":"src/auth/**","values":{"path":"src/auth/login.rs","reason":"people only"}}],"outcome":"deny","rule":"denied","values":{"paths":1}}"#);
    insta::assert_snapshot!(decision.signed_reasons().items.join("\n"), @r"
    denied: src/auth/** (path src/auth/login.rs, reason people only)
    class: deploy/** (class infrastructure, path deploy/x.yaml)
    ");
}

#[test]
fn signed_reasons_stay_short_whatever_the_change() {
    let names: Vec<String> = (0..100)
        .map(|number| format!("src/auth/{number:03}{}", "é".repeat(400)))
        .collect();
    let paths: Vec<&str> = names.iter().map(String::as_str).collect();
    let reasons = decide(
        RulesDocument {
            denied: list(&["src/auth/**"]),
            ..RulesDocument::default()
        },
        &paths,
    )
    .signed_reasons();
    assert_eq!((reasons.items.len(), reasons.rest), (20, 80));
    assert!(
        reasons
            .items
            .iter()
            .all(|line| line.len() <= 500 && line.ends_with('…'))
    );
}

// Break it: drop `same &&` from `Decision::cleared`; a clearance for one change then opens the door to another.
#[test]
fn a_clearance_holds_for_the_exact_change_and_never_after_a_denial() {
    let change = edits(&["src/lib.rs"]);
    let decision = evaluate(&compile(RulesDocument::default()), &measured(&change));
    let cleared = decision.cleared(&change).unwrap();
    assert_eq!(
        (cleared.change(), cleared.verdict()),
        (&change.digest(), Verdict::Free)
    );
    assert!(
        decision
            .cleared(&edits(&["src/lib.rs", "src/auth.rs"]))
            .is_none()
    );
    let denied = evaluate(
        &compile(RulesDocument {
            denied: list(&["src/**"]),
            ..RulesDocument::default()
        }),
        &measured(&change),
    );
    assert!(denied.cleared(&change).is_none());
}
