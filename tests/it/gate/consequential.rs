//! What is consequential without any rule of the project.

use caretaker::gate::matters;

use super::*;

pub(super) fn matters_by_example() -> Vec<(&'static str, Class)> {
    vec![
        (".github/dependabot.yml", Class::Infrastructure),
        (".GitHub/actions/x/action.yml", Class::Infrastructure),
        ("CODEOWNERS", Class::Infrastructure),
        ("docs/codeowners", Class::Infrastructure),
        (".gitattributes", Class::Infrastructure),
        ("deep/down/.gitattributes", Class::Infrastructure),
        (".gitmodules", Class::Infrastructure),
        (".lfsconfig", Class::Infrastructure),
        ("Cargo.lock", Class::Functional),
        ("web/package-lock.json", Class::Functional),
        ("requirements-dev.txt", Class::Functional),
    ]
}

#[test]
fn built_in_matters_are_never_free() {
    for (name, class) in matters_by_example() {
        let decision = decide(RulesDocument::default(), &[name]);
        assert_eq!(
            (decision.verdict(), decision.class()),
            (Verdict::Approve, class),
            "{name}"
        );
    }
    let modes = [
        (Mode::Regular, Mode::Symlink),
        (Mode::Symlink, Mode::Regular),
        (Mode::Absent, Mode::Gitlink),
        (Mode::Gitlink, Mode::Gitlink),
        (Mode::Regular, Mode::Executable),
        (Mode::Absent, Mode::Executable),
    ];
    for (old, new) in modes {
        let change = change_of(vec![entry(path("tool"), old, new)]);
        let decision = evaluate(&compile(RulesDocument::default()), &measured(&change));
        assert_eq!(decision.verdict(), Verdict::Approve, "{old:?} to {new:?}");
    }
    let change = change_of(vec![entry(
        path("tool"),
        Mode::Executable,
        Mode::Executable,
    )]);
    assert_eq!(
        evaluate(&compile(RulesDocument::default()), &measured(&change)).verdict(),
        Verdict::Free
    );
}

// Break it: make `Workflows::default` be `Approve`.
#[test]
fn workflows_are_denied_unless_the_rules_say_otherwise() {
    for name in [
        matters::WORKFLOWS.replace("**", "ci.yml"),
        ".GITHUB/Workflows/ci.yml".to_owned(),
        ".github/workflows".to_owned(),
    ] {
        let denied = check_paths(&compile(RulesDocument::default()), [&path(&name)]).unwrap();
        assert_eq!(denied.class, Class::Infrastructure);
        assert_eq!(denied.paths[0].rule, matters::WORKFLOWS);
        let allowed = RulesDocument {
            workflows: Workflows::Approve,
            ..RulesDocument::default()
        };
        assert!(check_paths(&compile(allowed.clone()), [&path(&name)]).is_none());
        let decision = decide(allowed, &[&name]);
        assert_eq!(
            (decision.verdict(), decision.class()),
            (Verdict::Approve, Class::Infrastructure)
        );
    }
}

#[test]
fn a_version_step_is_handled_as_the_rules_say_and_asks_a_person_when_unmeasured() {
    let dependencies = Dependencies {
        major: Some(Handling::Deny),
        minor: None,
        patch: Some(Handling::Free),
    };
    let rules = compile(RulesDocument {
        dependencies,
        ..RulesDocument::default()
    });
    let change = edits(&["Cargo.lock"]);
    let verdict = |bump| {
        evaluate(
            &rules,
            &Measured {
                bump,
                ..measured(&change)
            },
        )
        .verdict()
    };
    assert_eq!(verdict(Some(Bump::Major)), Verdict::Deny);
    assert_eq!(verdict(Some(Bump::Minor)), Verdict::Approve);
    assert_eq!(verdict(Some(Bump::Patch)), Verdict::Free);
    assert_eq!(verdict(None), Verdict::Approve);
    let code = edits(&["src/lib.rs"]);
    assert_eq!(
        evaluate(
            &rules,
            &Measured {
                bump: Some(Bump::Major),
                ..measured(&code)
            }
        )
        .verdict(),
        Verdict::Free
    );
}

#[test]
fn twins_inside_the_change_or_beside_it_in_the_tree_ask_a_person() {
    let rules = compile(RulesDocument::default());
    for (first, second) in [
        ("a/Read.rs", "a/read.rs"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("x", "x."),
    ] {
        let inside = edits(&[first, second]);
        assert_eq!(
            evaluate(&rules, &measured(&inside)).verdict(),
            Verdict::Approve,
            "{first} {second}"
        );
        let beside = edits(&[first]);
        let tree = [path(first), path(second), path("other")];
        assert_eq!(
            evaluate(
                &rules,
                &Measured {
                    tree: Some(&tree),
                    ..measured(&beside)
                }
            )
            .verdict(),
            Verdict::Approve
        );
        // Twins that the change does not touch are not its matter.
        let elsewhere = edits(&["other"]);
        assert_eq!(
            evaluate(
                &rules,
                &Measured {
                    tree: Some(&tree),
                    ..measured(&elsewhere)
                }
            )
            .verdict(),
            Verdict::Free
        );
    }
}
