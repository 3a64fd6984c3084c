//! Which paths fit which patterns.

use caretaker::tool_gate::Allowlist;

fn list(patterns: &[&str]) -> Allowlist {
    Allowlist::new(
        &patterns
            .iter()
            .map(|pattern| (*pattern).to_owned())
            .collect::<Vec<_>>(),
    )
}

fn fits(pattern: &str, path: &str) -> bool {
    list(&[pattern]).allows(path.as_bytes(), false)
}

#[test]
fn a_folder_is_not_its_namesake() {
    assert!(fits("src/", "src/a") && fits("src", "src/a/b") && fits("src/", "src"));
    assert!(!fits("src/", "srcx/a") && !fits("src/", "asrc") && !fits("src/", "a/src/b"));
}

/// As Python's own `fnmatch.fnmatchcase` answers.
#[test]
fn patterns_are_pythons() {
    for (pattern, path, expected) in [
        ("docs/*.md", "docs/a.md", true),
        ("docs/*.md", "docs/a/b.md", true),
        ("docs/*.md", "docs/.md", true),
        ("docs/*.md", "docs/a.mdx", false),
        ("*.rs", "a/b.rs", true),
        ("**/x", "a/b/x", true),
        ("**/x", "x", false),
        ("a?c", "abc", true),
        ("a?c", "a/c", true),
        ("[ab]x", "ax", true),
        ("[!ab]x", "ax", false),
        ("[!ab]x", "cx", true),
        ("[a-c]x", "bx", true),
        ("[]]x", "]x", true),
        ("[x", "[x", true),
        ("a{b,c}", "ab", false),
        ("a{b,c}", "a{b,c}", true),
        ("a\\*", "a\\b", true),
        ("*a*b*c", "xxaxxbxxc", true),
        ("*a*b*c", "xxaxxbxx", false),
        ("*", "a/b/c", true),
        ("A", "a", false),
    ] {
        assert_eq!(fits(pattern, path), expected, "{pattern} {path}");
    }
}

#[test]
fn blank_patterns_are_none_and_slashes_alone_fit_nothing() {
    assert!(!list(&["", "  ", "\t"]).enforces());
    let slashes = list(&["/"]);
    assert!(slashes.enforces() && !slashes.allows(b"a", false) && !slashes.allows(b"", false));
}

#[test]
fn case_and_composition_count_unless_the_file_system_folds() {
    let patterns = list(&["src/", "Grün/"]);
    assert!(!patterns.allows(b"SRC/a", false) && patterns.allows(b"SRC/a", true));
    let decomposed = "Gru\u{308}n/x";
    assert!(!patterns.allows(decomposed.as_bytes(), false));
    assert!(patterns.allows(decomposed.as_bytes(), true));
}

#[test]
fn bytes_that_are_no_text_fit_the_folder_above_only() {
    assert!(list(&["src/"]).allows(b"src/\xff", false));
    assert!(!list(&["*"]).allows(b"\xff", false));
}

#[test]
fn patterns_are_shown_as_python_prints_them() {
    assert_eq!(
        list(&["src/", "docs/*.md"]).shown(),
        "['docs/*.md', 'src/']"
    );
    assert_eq!(
        list(&["it's", "a\\b", "\"'"]).shown(),
        r#"['"\'', 'a\\b', "it's"]"#
    );
    assert_eq!(list(&[]).shown(), "[]");
}

/// A pattern full of stars does not take for ever.
#[test]
fn stars_do_not_multiply() {
    let pattern = "*a".repeat(500);
    let path = "a".repeat(4000);
    assert!(!fits(&format!("{pattern}b"), &path));
}
