//! What holds for every change and every rules file.

use proptest::prelude::*;

use super::*;

fn any_glob() -> impl Strategy<Value = PathRule> {
    prop::sample::select(vec![
        "a/**", "**/b", "A", "c/*", "**", "{a,b}/c", "a/b/c", "É/**",
    ])
    .prop_map(PathRule::new)
}

fn any_globs() -> impl Strategy<Value = Vec<PathRule>> {
    prop::collection::vec(any_glob(), 0..3)
}

prop_compose! {
    fn any_document()(denied in any_globs(), infrastructure in any_globs(), data in any_globs(), sensitive in any_globs(), files in prop::option::of(0_u64..4)) -> RulesDocument {
        RulesDocument { denied, infrastructure, data, sensitive, limits: Limits { files, ..Limits::default() }, ..RulesDocument::default() }
    }
}

fn any_paths() -> impl Strategy<Value = Vec<RepoPath>> {
    prop::collection::btree_set("[a-cA-C]{1,2}(/[a-cé]{1,2}){0,2}", 1..5)
        .prop_map(|names| names.iter().map(|name| path(name)).collect())
}

fn edit_all(paths: &[RepoPath]) -> ChangeSet {
    change_of(
        paths
            .iter()
            .map(|path| entry(path.clone(), Mode::Regular, Mode::Regular))
            .collect(),
    )
}

fn not_milder(after: &Decision, before: &Decision) -> bool {
    after.verdict() >= before.verdict() && after.class() >= before.class()
}

proptest! {
    // Break it: take the least class instead of the greatest in `evaluate`.
    #[test]
    fn another_rule_another_path_or_a_stricter_opinion_never_makes_a_decision_milder(
        document in any_document(), paths in any_paths(), extra in any_glob(), which in 0..4, given in prop::sample::select(vec![Class::Functional, Class::Data, Class::Infrastructure]),
    ) {
        let change = edit_all(&paths);
        let before = evaluate(&compile(document.clone()), &measured(&change));
        let mut stricter = document.clone();
        match which {
            0 => stricter.denied.push(extra),
            1 => stricter.infrastructure.push(extra),
            2 => stricter.data.insert(0, extra),
            _ => stricter.sensitive.push(extra),
        }
        prop_assert!(not_milder(&evaluate(&compile(stricter), &measured(&change)), &before));
        let judged = Measured { opinion: opinion(given), ..measured(&change) };
        prop_assert!(not_milder(&evaluate(&compile(document.clone()), &judged), &before));
        let fewer = edit_all(&paths[1..]);
        prop_assert!(not_milder(&before, &evaluate(&compile(document), &measured(&fewer))));
    }

    #[test]
    fn any_bytes_have_a_decision(names in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..40), 0..6), document in any_document()) {
        let paths: Vec<RepoPath> = names.iter().filter_map(|name| RepoPath::from_bytes(name).ok()).collect();
        let change = edit_all(&paths);
        let decision = evaluate(&compile(document), &Measured::nothing_but(&change));
        prop_assert!(decision.cleared(&change).is_some() == (decision.verdict() != Verdict::Deny));
        prop_assert!(serde_json::to_string(&decision.document()).is_ok());
        if paths.iter().any(|path| path.as_text().is_none()) {
            prop_assert_eq!(decision.verdict(), Verdict::Deny);
        }
    }

    #[test]
    fn any_text_is_a_glob_or_a_clear_error(glob in any::<String>()) {
        let document = RulesDocument { denied: vec![PathRule::new(glob)], ..RulesDocument::default() };
        if let Err(error) = Rules::compile(document, b"") {
            prop_assert!(error.to_string().starts_with("rules: denied[0]: the glob"));
        }
    }

    #[test]
    fn denied_by_any_list_beats_everything(document in any_document(), paths in any_paths()) {
        let change = edit_all(&paths);
        let free = RulesDocument { denied: list(&["**"]), ..document };
        let rules = compile(free);
        prop_assert_eq!(evaluate(&rules, &measured(&change)).verdict(), Verdict::Deny);
        prop_assert_eq!(check_paths(&rules, &paths).unwrap().paths.len(), paths.len());
    }

    // Break it: match only the raw bytes in `gate::glob::Globs::matches`.
    #[test]
    fn twins_of_a_denied_path_are_denied(name in "[a-zé]{1,6}(/[a-zßſéσ]{1,6}){0,3}", upper in any::<u64>(), decompose in any::<bool>()) {
        use unicode_normalization::UnicodeNormalization as _;
        let twin: String = name.chars().enumerate().flat_map(|(place, letter)| {
            if upper >> (place % 64) & 1 == 1 { letter.to_uppercase().collect::<Vec<_>>() } else { vec![letter] }
        }).collect();
        let twin: String = if decompose { twin.nfd().collect() } else { twin };
        prop_assert!(denies(&name, twin.as_bytes()), "{} lets {} through", name, twin);
    }
}
