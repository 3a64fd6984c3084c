//! Planning red then green: which trees prove a fix, and what makes a fix unprovable.

use caretaker::change::Oid;
use caretaker::workspace::red_green::{Plan, Planned, plan};
use caretaker::workspace::toolchain::{DetectedToolchain, Detection, Tools, detect};

use super::{Bench, path, sources};

pub(super) struct Everything;

impl Tools for Everything {
    fn has(&self, _: &str) -> bool {
        true
    }
}

pub(super) fn toolchain(bench: &Bench, tree: Oid) -> DetectedToolchain {
    match detect(&bench.repository, tree, None, &[], &Everything).unwrap() {
        Detection::Found(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Base and fix as differences from the files that both have.
pub(super) fn planned(
    common: &[(&str, &str)],
    base: &[(&str, &str)],
    fix: &[(&str, &str)],
) -> (Bench, Planned) {
    let bench = Bench::new();
    let tree = |own: &[(&str, &str)]| {
        let mut content = sources(common);
        content.extend(sources(own));
        bench.tree(&content)
    };
    let (base, fix) = (tree(base), tree(fix));
    let toolchain = toolchain(&bench, base);
    let planned = plan(&bench.repository, base, fix, &toolchain).unwrap();
    (bench, planned)
}

pub(super) fn ready(
    common: &[(&str, &str)],
    base: &[(&str, &str)],
    fix: &[(&str, &str)],
) -> (Bench, Plan) {
    match planned(common, base, fix) {
        (bench, Planned::Ready(plan)) => (bench, *plan),
        (_, Planned::Unproven(unproven)) => panic!("{unproven}"),
    }
}

pub(super) fn reason(
    common: &[(&str, &str)],
    base: &[(&str, &str)],
    fix: &[(&str, &str)],
) -> &'static str {
    match planned(common, base, fix).1 {
        Planned::Unproven(unproven) => {
            assert!(!unproven.detail.is_empty());
            unproven.reason.as_str()
        }
        Planned::Ready(plan) => panic!("planned {:?}", plan.added),
    }
}

fn content(bench: &Bench, tree: Oid, name: &str) -> Option<String> {
    let bytes = bench
        .repository
        .read_file(tree, &path(name), 1 << 20)
        .unwrap();
    bytes.map(|bytes| String::from_utf8(bytes).unwrap())
}

const RUST: &[(&str, &str)] = &[("Cargo.toml", "[package]\nname = \"a\"\n")];
pub(super) const PYTHON: &[(&str, &str)] = &[("setup.py", "")];
pub(super) const NODE: &[(&str, &str)] =
    &[("package.json", r#"{"scripts":{"test":"node --test"}}"#)];
pub(super) const GO: &[(&str, &str)] = &[("go.mod", "module a\n")];

const LIB_BASE: &str = r##"//! Sum. `#[cfg(test)] mod not_this {}`
pub fn add(a: u32, b: u32) -> u32 { a - b } // "}" '
const BRACE: char = '}';
const RAW: &str = r#"#[cfg(test)] mod neither { "#;
fn lives<'a>(text: &'a str) -> &'a str { text }

/// Tests.
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn zero() { assert_eq!(add(0, 0), 0); }
}

pub fn after() {}
"##;
const LIB_FIX: &str = r##"//! Sum. `#[cfg(test)] mod not_this {}`
pub fn add(a: u32, b: u32) -> u32 { a + b } // "}" '
const BRACE: char = '}';
const RAW: &str = r#"#[cfg(test)] mod neither { "#;
fn lives<'a>(text: &'a str) -> &'a str { text }

/// Tests.
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn zero() { assert_eq!(add(0, 0), 0); }

    #[test]
    fn one() { assert_eq!(add(1, 1), 2); }
}

pub fn after() {}
"##;

#[test]
fn inline_rust_tests_are_set_into_the_other_sides_code() {
    let (bench, plan) = ready(
        RUST,
        &[("src/lib.rs", LIB_BASE)],
        &[("src/lib.rs", LIB_FIX)],
    );
    assert_eq!(plan.added.len(), 1);
    assert_eq!(plan.added[0].name, "one");
    let red = content(&bench, plan.red, "src/lib.rs").unwrap();
    assert!(red.contains("a - b") && red.contains("fn one()"), "{red}");
    assert!(
        red.contains("mod not_this") && red.contains("mod neither"),
        "{red}"
    );
    assert!(red.contains("pub fn after()"), "{red}");
    assert_eq!(red.matches("/// Tests.").count(), 1);
    let base_on_fix = content(&bench, plan.base_on_fix, "src/lib.rs").unwrap();
    assert!(
        base_on_fix.contains("a + b") && !base_on_fix.contains("fn one()"),
        "{base_on_fix}"
    );
    assert!(base_on_fix.contains("fn zero()"), "{base_on_fix}");
}

#[test]
fn test_files_go_to_red_and_come_back_from_the_base() {
    let (bench, plan) = ready(
        RUST,
        &[
            ("src/lib.rs", "fn a() {}\n"),
            ("tests/a.rs", "#[test] fn old() { assert!(true); }"),
        ],
        &[
            ("src/lib.rs", "fn b() {}\n"),
            (
                "src/new.rs",
                "pub fn n() {}\n#[cfg(test)] mod tests { #[test] fn inside() {} }\n",
            ),
            (
                "tests/a.rs",
                "#[test] fn old() { assert!(true,); }\n#[test] fn new() {}",
            ),
            ("tests/helper/mod.rs", "pub fn h() {}"),
        ],
    );
    let names: Vec<&str> = plan.added.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(names, ["new", "inside"]);
    assert_eq!(
        content(&bench, plan.red, "src/lib.rs").unwrap(),
        "fn a() {}\n"
    );
    assert_eq!(content(&bench, plan.red, "src/new.rs"), None);
    assert!(
        content(&bench, plan.red, "tests/a.rs")
            .unwrap()
            .contains("fn new")
    );
    assert!(content(&bench, plan.red, "tests/helper/mod.rs").is_some());
    assert_eq!(
        content(&bench, plan.base_on_fix, "src/lib.rs").unwrap(),
        "fn b() {}\n"
    );
    let new = content(&bench, plan.base_on_fix, "src/new.rs").unwrap();
    assert!(new.contains("fn n()") && !new.contains("inside"), "{new}");
    assert!(
        !content(&bench, plan.base_on_fix, "tests/a.rs")
            .unwrap()
            .contains("fn new")
    );
    assert_eq!(
        content(&bench, plan.base_on_fix, "tests/helper/mod.rs"),
        None
    );
}

#[test]
fn a_test_module_in_a_file_of_its_own_is_a_test_file() {
    let (bench, plan) = ready(
        RUST,
        &[
            ("src/lib.rs", "pub fn a() {}\n#[cfg(test)]\nmod checks;\n"),
            ("src/checks.rs", "#[test] fn old() {}\n"),
        ],
        &[
            ("src/lib.rs", "pub fn b() {}\n#[cfg(test)]\nmod checks;\n"),
            (
                "src/checks.rs",
                "#[test] fn old() {}\n#[test] fn new() {}\n",
            ),
        ],
    );
    assert!(
        content(&bench, plan.red, "src/checks.rs")
            .unwrap()
            .contains("new")
    );
    assert!(
        !content(&bench, plan.base_on_fix, "src/checks.rs")
            .unwrap()
            .contains("new")
    );
}

const NEW_FILE: (&str, &str) = ("tests/new.rs", "#[test] fn new() {}");
const PY: (&str, &str) = ("test_new.py", "def test_new():\n    assert f()\n");
const JS: (&str, &str) = ("a.test.js", "test('new', () => {});");
const FIXED: (&str, &str) = ("src/lib.rs", "fn fixed() {}\n");
const BROKEN: (&str, &str) = ("src/lib.rs", "fn broken() {}\n");

/// A fix in Rust that changes code and this test file.
fn rust_tests(base: &str, fix: &str) -> &'static str {
    reason(
        RUST,
        &[BROKEN, ("tests/a.rs", base)],
        &[FIXED, ("tests/a.rs", fix)],
    )
}

const OLD: &str = "#[test] fn old() { assert_eq!(a(), 3); }";
const NEW: &str = "#[test] fn new() { assert!(x()); }";

/// What becomes of [`OLD`] beside a new test, and what that is called.
const LOSSES: &[(&str, &str)] = &[
    ("", "test-deleted"),
    ("fn old() { assert_eq!(a(), 3); }", "test-deleted"),
    (
        "#[cfg(x)] mod m { #[test] fn old() { assert_eq!(a(), 3); } }",
        "test-deleted",
    ),
    (
        "#[test] #[ignore] fn old() { assert_eq!(a(), 3); }",
        "test-skipped",
    ),
    (
        "#[ignore = \"x\"] #[test] fn old() { assert_eq!(a(), 3); }",
        "test-skipped",
    ),
    (
        "#[test] #[cfg(any())] fn old() { assert_eq!(a(), 3); }",
        "test-skipped",
    ),
    (
        "#![cfg(any())] #[test] fn old() { assert_eq!(a(), 3); }",
        "test-skipped",
    ),
    ("#[test] fn old() { assert_eq!(a(), 4); }", "test-weakened"),
    ("#[test] fn old() { assert!(a() > 0); }", "test-weakened"),
    (
        "#[test] fn old() { /* assert_eq!(a(), 3); */ }",
        "test-weakened",
    ),
    (
        "#[test] fn old() { \"assert_eq!(a(), 3)\"; }",
        "test-weakened",
    ),
    (
        "#[test] fn old() { return; assert_eq!(a(), 3); }",
        "test-weakened",
    ),
    (
        "#[test] #[should_panic] fn old() { assert_eq!(a(), 3); }",
        "test-weakened",
    ),
];

#[test]
fn a_rust_test_may_not_be_taken_away_skipped_or_weakened() {
    for (fix, expected) in LOSSES {
        assert_eq!(rust_tests(OLD, &format!("{fix} {NEW}")), *expected, "{fix}");
    }
    let deleted = reason(
        RUST,
        &[BROKEN, ("tests/a.rs", OLD)],
        &[FIXED, ("tests/b.rs", NEW)],
    );
    assert_eq!(deleted, "test-deleted");
}

#[test]
fn modules_and_macros_around_a_rust_test_count_too() {
    let module = "mod m { #[test] fn old() {} }";
    let gated = format!("#[cfg(x)] {module} {NEW}");
    assert_eq!(rust_tests(module, &gated), "test-skipped");
    let property = "proptest! { #[test] fn old(x in 0..9) { prop_assert!(x < 9); } }";
    let emptied = format!("proptest! {{ #[test] fn old(x in 0..9) {{ }} }} {NEW}");
    assert_eq!(rust_tests(property, &emptied), "test-weakened");
}

#[test]
fn a_fix_without_a_new_test_that_runs_is_not_proven() {
    for more in ["", "#[test] #[ignore] fn new() {}", "fn helper() {}"] {
        let fix = format!("{OLD} {more}");
        assert_eq!(rust_tests(OLD, &fix), "no-test-added", "{more}");
    }
}

#[test]
fn examples_in_documentation_are_tests_too() {
    let documented = |code: &str, fence: &str, example: &str| {
        format!("/// Adds.\n/// ```{fence}\n/// {example}\n/// ```\npub fn add() {{ {code} }}\n")
    };
    let base = documented("1", "", "assert_eq!(a::add(), 2);");
    for (fence, example) in [
        ("", "assert_eq!(a::add(), 3);"),
        ("ignore", "assert_eq!(a::add(), 2);"),
    ] {
        let fix = documented("2", fence, example);
        let name = reason(
            RUST,
            &[("src/lib.rs", &base)],
            &[("src/lib.rs", &fix), NEW_FILE],
        );
        assert_eq!(name, "test-weakened", "{fix}");
    }
    let fix = documented("2", "", "assert_eq!(a::add(), 2);");
    ready(
        RUST,
        &[("src/lib.rs", &base)],
        &[("src/lib.rs", &fix), NEW_FILE],
    );
}

#[test]
fn what_only_looks_like_a_loss_is_none() {
    ready(
        RUST,
        &[
            BROKEN,
            (
                "tests/a.rs",
                "#[test]\nfn a() {\n    assert_eq!(\n        x,\n        1,\n    );\n}\n",
            ),
        ],
        &[
            FIXED,
            (
                "tests/a.rs",
                "// moved\n#[test]\nfn b() { }\n#[test]\nfn a() { let y = 1; assert_eq!(x, 1); assert!(y); }\n",
            ),
        ],
    );
    ready(
        RUST,
        &[
            BROKEN,
            ("tests/a.rs", "#[test] #[ignore] fn a() {}"),
            ("tests/data.json", "{}"),
        ],
        &[FIXED, ("tests/a.rs", "#[test] fn a() {} #[test] fn b() {}")],
    );
}

#[test]
fn inline_tests_that_cannot_be_told_apart_are_named() {
    for fix in [
        "mod m { fn f() {} #[cfg(test)] mod tests { #[test] fn new() {} } }",
        "fn f() { #[test] fn hidden() {} }",
        "fn f() { \" }",
        "fn f() { (] }",
        "/* never closed",
    ] {
        let name = reason(RUST, &[BROKEN], &[("src/lib.rs", fix)]);
        assert_eq!(name, "inline-tests-not-separable", "{fix}");
    }
}

#[test]
fn a_fix_of_tests_alone_fixes_nothing() {
    let with = |tests: &str| format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ {tests} }}\n");
    let (base, fix) = (
        with("#[test] fn a() {}"),
        with("#[test] fn a() {} #[test] fn b() {}"),
    );
    let name = reason(RUST, &[("src/lib.rs", &base)], &[("src/lib.rs", &fix)]);
    assert_eq!(name, "nothing-but-tests");
    let name = reason(
        PYTHON,
        &[("a.py", "")],
        &[("a.py", ""), ("test_a.py", "def test_a(): pass")],
    );
    assert_eq!(name, "nothing-but-tests");
}

// Break it: return `Ok(false)` at the top of `guard::decides_about_tests`; each of these then passes on every tree.
#[test]
fn a_fix_may_not_decide_how_its_tests_are_run() {
    for file in [
        (
            ".cargo/config.toml",
            "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n",
        ),
        ("build.rs", "fn main() {}"),
        ("Cargo.toml", "[package]\nname = \"a\"\nautotests = false\n"),
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\n[lib]\ntest = false\n[dependencies]\n",
        ),
    ] {
        let name = reason(RUST, &[BROKEN], &[FIXED, NEW_FILE, file]);
        assert_eq!(name, "test-configuration-changed", "{file:?}");
    }
    ready(
        RUST,
        &[BROKEN],
        &[
            FIXED,
            NEW_FILE,
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n",
            ),
        ],
    );
    for file in [
        ("unittest.py", "def main(): pass"),
        ("unittest/__init__.py", ""),
        ("sitecustomize.py", "import os; os._exit(0)"),
        ("pytest.ini", "[pytest]\naddopts = --co\n"),
    ] {
        let name = reason(PYTHON, &[("a.py", "x")], &[("a.py", "y"), PY, file]);
        assert_eq!(name, "test-configuration-changed", "{file:?}");
    }
    let script = ("package.json", r#"{"scripts":{"test":"exit 0"}}"#);
    let name = reason(NODE, &[("a.js", "x")], &[("a.js", "y"), JS, script]);
    assert_eq!(name, "test-configuration-changed");
    let bumped = r#"{"dependencies":{"b":"2"},"scripts":{"test":"node --test"}}"#;
    ready(
        NODE,
        &[("a.js", "x")],
        &[("a.js", "y"), JS, ("package.json", bumped)],
    );
}

#[test]
fn code_may_not_find_out_that_it_is_tested() {
    for fix in [
        "fn broken() { if cfg!(test) { 1 } else { 2 } }",
        "#[cfg(not(test))] fn broken() {} #[cfg(any(test, x))] fn broken() {}",
        "fn broken() { std::env::var(\"RUST_TEST_THREADS\"); }",
    ] {
        let name = reason(RUST, &[BROKEN], &[("src/lib.rs", fix), NEW_FILE]);
        assert_eq!(name, "source-knows-tests", "{fix}");
    }
    let name = reason(
        PYTHON,
        &[("a.py", "x = 1")],
        &[
            (
                "a.py",
                "import sys\nx = 1 if 'pytest' in sys.modules else 0",
            ),
            ("test_new.py", "def test_new(): pass"),
        ],
    );
    assert_eq!(name, "source-knows-tests");
}
