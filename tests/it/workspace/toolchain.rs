//! Finding out how a project runs its tests.

use caretaker::change::Sha256Digest;
use caretaker::workspace::toolchain::{DetectedToolchain, Detection, Ecosystem, Tools, detect};

use super::{Bench, path, sources};

/// A machine that has every program but these.
struct Without(&'static [&'static str]);

impl Tools for Without {
    fn has(&self, program: &str) -> bool {
        !self.0.contains(&program)
    }
}

fn detection(
    listing: &[(&str, &str)],
    configured: Option<&[&str]>,
    hints: &[&str],
    tools: &dyn Tools,
) -> Detection {
    let bench = Bench::new();
    let commit = bench.commit(bench.tree(&sources(listing)), &[]);
    let configured: Option<Vec<String>> =
        configured.map(|argv| argv.iter().map(|word| (*word).to_owned()).collect());
    let hints: Vec<_> = hints.iter().map(|hint| path(hint)).collect();
    detect(
        &bench.repository,
        commit,
        configured.as_deref(),
        &hints,
        tools,
    )
    .unwrap()
}

fn found(listing: &[(&str, &str)]) -> DetectedToolchain {
    match detection(listing, None, &[], &Without(&[])) {
        Detection::Found(found) => found,
        other => panic!("{other:?}"),
    }
}

fn command(listing: &[(&str, &str)]) -> String {
    found(listing).test.join(" ")
}

const PLACEHOLDER: &str = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
const SCRIPT: &str = r#"{"scripts":{"test":"vitest run"}}"#;

#[test]
fn the_usual_projects_are_run_by_their_own_tools() {
    for (listing, expected) in [
        (
            &[("Cargo.toml", "[package]"), ("Cargo.lock", "")][..],
            "cargo test --offline --locked",
        ),
        (&[("Cargo.toml", "[package]")], "cargo test --offline"),
        (
            &[
                ("Cargo.toml", "[ workspace ]"),
                ("Cargo.lock", ""),
                ("a/Cargo.toml", "[package]"),
            ],
            "cargo test --offline --locked --workspace",
        ),
        (
            &[("Cargo.toml", "[package]"), (".config/nextest.toml", "")],
            "cargo nextest run --offline",
        ),
        (
            &[("package.json", SCRIPT), ("package-lock.json", "")],
            "npm test",
        ),
        (
            &[("package.json", SCRIPT), ("pnpm-lock.yaml", "")],
            "pnpm test",
        ),
        (
            &[
                (
                    "package.json",
                    r#"{"packageManager":"yarn@4.1.0","scripts":{"test":"x"}}"#,
                ),
                ("package-lock.json", ""),
            ],
            "yarn test",
        ),
        (
            &[("package.json", PLACEHOLDER), ("a.test.mjs", "")],
            "node --test",
        ),
        (
            &[("package.json", r#"{"devDependencies":{"jest":"1"}}"#)],
            "npx --no-install jest",
        ),
        (&[("test_a.py", "")], "python3 -m unittest discover"),
        (
            &[("setup.py", ""), ("tests/test_a.py", "")],
            "python3 -m unittest discover -s tests",
        ),
        (
            &[
                ("pyproject.toml", "[tool.pytest.ini_options]\n"),
                ("tests/test_a.py", ""),
            ],
            "python3 -m pytest",
        ),
        (
            &[
                ("pyproject.toml", "[project]"),
                ("uv.lock", ""),
                ("conftest.py", ""),
            ],
            "uv run --offline --frozen python3 -m pytest",
        ),
        (&[("tox.ini", "[tox]\n"), ("setup.py", "")], "tox"),
        (&[("go.mod", "module x")], "go test ./..."),
        (
            &[("Makefile", "all:\n\ncheck test: all\n\tsh run\n")],
            "make test",
        ),
        (
            &[("Makefile", "check:\n"), ("go.mod", "module x")],
            "go test ./...",
        ),
    ] {
        assert_eq!(command(listing), expected, "{listing:?}");
    }
}

#[test]
fn the_others_are_run_by_theirs() {
    for (listing, expected) in [
        (&[("mix.exs", "")][..], "mix test"),
        (&[("a.sln", "")], "dotnet test"),
        (&[("Gemfile", ""), (".rspec", "")], "bundle exec rspec"),
        (&[("justfile", "test:\n  x\n")], "just test"),
    ] {
        assert_eq!(command(listing), expected, "{listing:?}");
    }
}

#[test]
fn the_choice_carries_its_evidence() {
    let found = found(&[("web/package.json", SCRIPT), ("web/pnpm-lock.yaml", "lock")]);
    assert_eq!(
        (found.root.as_str(), found.ecosystem),
        ("web", Ecosystem::Node)
    );
    let lock = &found.evidence[1];
    assert_eq!(lock.file, path("web/pnpm-lock.yaml"));
    assert_eq!(lock.sha256, Sha256Digest::of(b"lock"));
    let tests = found.matcher().unwrap();
    assert!(tests.contains(&path("web/src/a.test.ts")));
    assert!(!tests.contains(&path("src/a.test.ts")) && !tests.contains(&path("web/src/a.ts")));
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(
        serde_json::from_str::<DetectedToolchain>(&json).unwrap(),
        found
    );
}

/// Break it: take test modules of a folder with a manifest for the top's.
#[test]
fn the_tests_of_a_project_in_a_folder_make_no_project_of_the_top() {
    let below = [
        ("README.md", ""),
        ("lib/requirements.txt", ""),
        ("lib/deep/test_sums.py", ""),
    ];
    let only = found(&below);
    assert_eq!(only.root, "lib");
    let mut both = below.to_vec();
    both.push(("test_all.py", ""));
    assert_eq!(found(&both).root, "");
}

#[test]
fn nothing_found_is_an_outcome() {
    for listing in [
        &[("README.md", "")][..],
        &[("package.json", PLACEHOLDER)],
        &[("package.json", "not json")],
        &[("Makefile", "test := 1\n.test:\n\ttest: x\n")],
        &[("vendor/a/Cargo.toml", ""), ("a/b/c/d/e/go.mod", "")],
    ] {
        let outcome = detection(listing, None, &[], &Without(&[]));
        assert_eq!(outcome, Detection::NoneFound, "{listing:?}");
        assert!(outcome.to_string().contains("test: [argv"));
    }
}

#[test]
fn two_ways_are_an_outcome_unless_the_failure_names_one() {
    let listing = &[
        ("api/go.mod", "module x"),
        ("web/package.json", SCRIPT),
        ("web/package-lock.json", ""),
    ];
    let outcome = detection(listing, None, &[], &Without(&[]));
    assert_eq!(outcome.as_str(), "toolchain-ambiguous");
    assert!(outcome.to_string().contains("npm test in web"), "{outcome}");
    match detection(listing, None, &["web/src/a.js"], &Without(&[])) {
        Detection::Found(found) => assert_eq!(found.root, "web"),
        other => panic!("{other:?}"),
    }
    let outcome = detection(listing, None, &["web/a.js", "api/a.go"], &Without(&[]));
    assert_eq!(outcome.as_str(), "toolchain-ambiguous");

    let locks = &[
        ("package.json", SCRIPT),
        ("yarn.lock", ""),
        ("package-lock.json", ""),
    ];
    let outcome = detection(locks, None, &[], &Without(&[]));
    assert!(
        outcome
            .to_string()
            .contains("yarn.lock, or by package-lock.json"),
        "{outcome}"
    );
}

#[test]
fn a_missing_tool_is_an_outcome_and_not_a_guess() {
    let listing = &[("package.json", SCRIPT), ("pnpm-lock.yaml", "")];
    let outcome = detection(listing, None, &[], &Without(&["pnpm"]));
    assert_eq!(outcome.as_str(), "toolchain-missing");
    assert!(
        outcome.to_string().contains("pnpm is not installed"),
        "{outcome}"
    );
}

#[test]
fn the_command_of_the_rules_wins() {
    let listing = &[("Cargo.toml", "[package]"), ("package.json", SCRIPT)];
    match detection(listing, Some(&["cargo", "test", "-q"]), &[], &Without(&[])) {
        Detection::Found(found) => {
            assert_eq!(found.test, ["cargo", "test", "-q"]);
            assert_eq!((found.ecosystem, found.confidence), (Ecosystem::Rust, 1000));
            let tests = found.matcher().unwrap();
            assert!(tests.contains(&path("tests/a.rs")) && tests.contains(&path("a.test.js")));
        }
        other => panic!("{other:?}"),
    }
    let script = &[("run-tests", ""), ("a.py", "")];
    let outcome = detection(
        script,
        Some(&["./run-tests"]),
        &[],
        &Without(&["./run-tests"]),
    );
    assert_eq!(
        outcome.as_str(),
        "toolchain-missing",
        "it is tracked but not executable"
    );
}
