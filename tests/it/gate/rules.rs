//! The rules file: what a glob names, and what is refused before it can silently name nothing.

use super::*;

/// What each glob names, and what it does not. `..` cannot occur in a path of a repository at all.
const GOLDEN: &[(&str, &str, bool)] = &[
    ("src/auth/**", "src/auth/login.rs", true),
    ("src/auth/**", "src/auth/deep/er/x", true),
    ("src/auth/**", "src/auth", true),
    ("src/auth/**", "src/authority/x", false),
    ("src/auth/**", "lib/src/auth/x", false),
    ("src/auth/**", "src/auth/a\nb", true),
    ("src/auth/*", "src/auth/x", true),
    ("src/auth/*", "src/auth/x/y", false),
    ("src/auth/*", "src/auth/.hidden", true),
    ("*.lock", "Cargo.lock", true),
    ("*.lock", "sub/Cargo.lock", false),
    ("**/*.lock", "Cargo.lock", true),
    ("**/*.lock", "a/b/Cargo.lock", true),
    ("**/*.lock", "a/b/Cargo.lock.txt", false),
    ("**/secrets/**", "secrets/x", true),
    ("**/secrets/**", "a/secrets/b/x", true),
    ("**/secrets/**", "a/secretservice/x", false),
    ("a/**/b", "a/b", true),
    ("a/**/b", "a/x/y/b", true),
    ("a/**/b", "a/xb", false),
    ("**", "anything/at/all", true),
    ("*/**", "README", false),
    ("src/?.rs", "src/a.rs", true),
    ("src/?.rs", "src/é.rs", true),
    ("src/?.rs", "src/ab.rs", false),
    ("src/[!a].rs", "src/é.rs", true),
    ("src/[ab].rs", "src/b.rs", true),
    ("src/[ab].rs", "src/c.rs", false),
    ("{src,lib}/**", "lib/x", true),
    ("{src/**,lib/**}", "lib/x/y", true),
    ("{**/a,b}", "x/y/a", true),
    ("src/*[*]x", "src/a*x", true),
    // Case, composition and characters that do not show.
    ("src/auth/**", "SRC/Auth/Login.rs", true),
    ("SRC/Auth/**", "src/auth/x", true),
    ("src/Grüße/**", "src/GRÜSSE/x", true),
    ("src/caf\u{e9}/**", "src/cafe\u{301}/x", true),
    ("src/cafe\u{301}/**", "SRC/CAF\u{c9}/x", true),
    ("src/auth/**", "src/au\u{200d}th/x", true),
    ("src/auth/**", "\u{17f}rc/auth/x", true),
    ("src/key/**", "src/\u{212a}ey/x", true),
    // Dots and spaces that some file systems drop, and their other separator.
    ("src/auth/**", "src/auth./x", true),
    ("src/auth/**", "src/auth /x", true),
    ("src/login.rs", "src/login.rs..", true),
    ("src/auth/**", "src\\auth\\x", true),
    ("src/login.rs", "src/login.rs.bak", false),
    ("src/..rs", "src/..rs", true),
];

#[test]
fn globs_mean_what_the_table_says() {
    for (glob, path, expected) in GOLDEN {
        assert_eq!(
            denies(glob, path.as_bytes()),
            *expected,
            "{glob} against {path:?}"
        );
    }
    for (glob, _) in super::consequential::matters_by_example() {
        assert!(!denies("unrelated/**", glob.as_bytes()));
    }
}

#[test]
fn a_glob_that_would_silently_match_nothing_is_refused_with_the_mend() {
    let messages: Vec<String> = [
        "",
        "!src/x",
        "/src/**",
        "src/auth/",
        "src/../x",
        "src/a**",
        "src\\auth\\**",
        "[[:upper:]]",
        "é?",
        "a\u{200b}b",
        "{a,b",
        "[z-a]",
        "a//b",
        "[Z-a]",
    ]
    .into_iter()
    .map(|glob| {
        let document = RulesDocument {
            sensitive: vec![PathRule::new("ok"), PathRule::new(glob)],
            ..RulesDocument::default()
        };
        Rules::compile(document, b"").unwrap_err().to_string()
    })
    .collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    rules: sensitive[1]: the glob "" is refused: it is empty; remove it or write a path
    rules: sensitive[1]: the glob "!src/x" is refused: rules have no negation; list what is meant and remove the leading !
    rules: sensitive[1]: the glob "/src/**" is refused: it has an empty, . or .. component, which no path in a repository has; start at the root, without a leading slash
    rules: sensitive[1]: the glob "src/auth/" is refused: it ends with a slash and would match nothing; write src/auth/** for all that is below
    rules: sensitive[1]: the glob "src/../x" is refused: it has an empty, . or .. component, which no path in a repository has; start at the root, without a leading slash
    rules: sensitive[1]: the glob "src/a**" is refused: ** must stand alone between slashes, as in src/**/x; within a name write *
    rules: sensitive[1]: the glob "src\\auth\\**" is refused: it holds a backslash; write / between folders, and [*] for a literal star
    rules: sensitive[1]: the glob "[[:upper:]]" is refused: named character classes are not supported; write the characters, as in [a-z]
    rules: sensitive[1]: the glob "é?" is refused: it mixes letters outside ASCII with ? or [ ]; write * instead
    rules: sensitive[1]: the glob "a\u{200b}b" is refused: it holds the invisible character U+200B; retype it without
    rules: sensitive[1]: the glob "{a,b" is refused: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    rules: sensitive[1]: the glob "[z-a]" is refused: invalid range; 'z' > 'a'
    rules: sensitive[1]: the glob "a//b" is refused: it has an empty, . or .. component, which no path in a repository has; start at the root, without a leading slash
    rules: sensitive[1]: the glob "[Z-a]" is refused: invalid range; 'z' > 'a'
    "#);
    let long = RulesDocument {
        data: list(&[&"a".repeat(2_000)]),
        ..RulesDocument::default()
    };
    assert!(
        Rules::compile(long, b"")
            .unwrap_err()
            .to_string()
            .contains("2000 bytes")
    );
    let many = RulesDocument {
        data: vec![PathRule::new("a"); 1_001],
        ..RulesDocument::default()
    };
    assert!(
        Rules::compile(many, b"")
            .unwrap_err()
            .to_string()
            .contains("1001 globs")
    );
}

#[test]
fn settings_that_cannot_be_kept_are_refused() {
    for base in [
        "",
        "-x",
        "a..b",
        "refs/heads/main",
        "a b",
        "x.lock",
        "a//b",
        "@",
        "a\u{7}",
    ] {
        let document = RulesDocument {
            base: Base(base.to_owned()),
            ..RulesDocument::default()
        };
        assert!(
            Rules::compile(document, b"")
                .unwrap_err()
                .to_string()
                .contains("base"),
            "{base:?}"
        );
    }
    for (demand, why) in [
        ("log", "none of checkpoint, branch"),
        ("branch:one", "none of checkpoint, branch"),
        ("witness:", "names no anchor"),
    ] {
        let refused = serde_json::from_str::<RulesDocument>(&format!(
            r#"{{"anchors":{{"required":["{demand}"]}}}}"#
        ));
        assert!(refused.unwrap_err().to_string().contains(why), "{demand}");
    }
    for check in [r#"{"name":"","app":"x"}"#, r#"{"name":"build","app":" "}"#] {
        let document =
            serde_json::from_str(&format!(r#"{{"checks":{{"required":[{check}]}}}}"#)).unwrap();
        assert!(
            Rules::compile(document, b"")
                .unwrap_err()
                .to_string()
                .contains("checks.required[0]")
        );
    }
    assert!(
        serde_json::from_str::<RulesDocument>(r#"{"checks":{"required":[{"name":"build"}]}}"#)
            .is_err(),
        "a check without an app"
    );
    assert!(
        serde_json::from_str::<RulesDocument>(r#"{"deneid":[]}"#).is_err(),
        "a misspelt list must not vanish"
    );
}

#[test]
fn lists_keep_the_words_of_the_rules_file() {
    let words: Vec<&str> = [
        List::Denied,
        List::Infrastructure,
        List::Data,
        List::Sensitive,
    ]
    .map(List::as_str)
    .to_vec();
    let document = serde_json::to_value(RulesDocument::default()).unwrap();
    assert!(words.iter().all(|word| document.get(word).is_some()));
    let written = r#"{"denied":["a",{"glob":"b","reason":"why"}],"limits":{"binary":0},"checks":{"required":[{"name":"build","app":15368}]}}"#;
    let read: RulesDocument = serde_json::from_str(written).unwrap();
    assert_eq!(read.denied[1].reason.as_deref(), Some("why"));
    assert_eq!(
        (read.limits.binary, read.checks.required[0].app.as_str()),
        (Some(BinaryLimit::Count(0)), "15368")
    );
    assert!(
        serde_json::from_str::<RulesDocument>(r#"{"denied":[{"glob":"b","raeson":"why"}]}"#)
            .is_err()
    );
    assert!(compile(RulesDocument::default()).denies_nothing());
}
