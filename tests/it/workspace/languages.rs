//! Tests taken away, skipped or weakened in other languages than Rust.

use caretaker::workspace::red_green::Planned;

use super::path;
use super::red_green::{GO, NODE, PYTHON, planned, ready, reason};

#[test]
fn python_tests_are_compared_by_class_and_name() {
    let base = "import unittest\n\nclass T(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(f(1), 2)  # two\n";
    let new = "\n    def test_new(self):\n        self.assertTrue(f(0))\n";
    let compared = |fix: &str| {
        planned(
            PYTHON,
            &[("a.py", "x"), ("tests/test_a.py", base)],
            &[("a.py", "y"), ("tests/test_a.py", fix)],
        )
        .1
    };
    for (fix, expected) in [
        (format!("{base}{new}"), None),
        (
            format!(
                "import unittest\nclass T(unittest.TestCase):\n    def test_old(self):\n        self.assertEqual(\n            f(1),\n            2,\n        )\n{new}"
            ),
            None,
        ),
        (base.replace("2)", "3)") + new, Some("test-weakened")),
        (
            base.replace(
                "self.assertEqual(f(1), 2)",
                "'''self.assertEqual(f(1), 2)'''",
            ) + new,
            Some("test-weakened"),
        ),
        (base.replace("test_old", "_old") + new, Some("test-deleted")),
        (
            base.replace("class T", "@unittest.skip('x')\nclass T") + new,
            Some("test-skipped"),
        ),
        (
            base.replace("    def", "    @unittest.expectedFailure\n    def") + new,
            Some("test-weakened"),
        ),
        (
            base.replace("        self", "        self.skipTest('x')\n        self") + new,
            Some("test-skipped"),
        ),
        (
            base.replace("        self", "        return\n        self") + new,
            Some("test-weakened"),
        ),
        (
            format!("{base}{new}pytestmark = pytest.mark.skip\n"),
            Some("test-skipped"),
        ),
        (
            format!("{base}    def test_old(self):\n        pass\n{new}"),
            Some("test-skipped"),
        ),
    ] {
        match (compared(&fix), expected) {
            (Planned::Ready(plan), None) => assert_eq!(plan.added[0].name, "test_new"),
            (Planned::Unproven(unproven), Some(name)) => {
                assert_eq!(unproven.reason.as_str(), name, "{fix}");
            }
            (other, expected) => panic!("{fix}: {other:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn javascript_tests_are_compared_by_suite_and_name() {
    let base = "describe('s', () => {\n  it('old', () => { expect(f(`${1}`)).toBe(/'/); });\n});\n";
    let new = "test('new', () => { assert.equal(1, 1); });\n";
    for (fix, expected) in [
        (
            format!("{base}test.only('new', () => {{}});"),
            "test-skipped",
        ),
        (base.replace("it(", "it.skip(") + new, "test-skipped"),
        (base.replace("it(", "xit(") + new, "test-skipped"),
        (
            base.replace("describe(", "describe.skip(") + new,
            "test-skipped",
        ),
        (
            base.replace("toBe(/'/)", "toBeTruthy()") + new,
            "test-weakened",
        ),
        (base.replace("'old'", "'older'") + new, "test-deleted"),
        (base.to_owned(), "no-test-added"),
    ] {
        let name = reason(
            NODE,
            &[("a.js", "x"), ("a.test.js", base)],
            &[("a.js", "y"), ("a.test.js", &fix)],
        );
        assert_eq!(name, expected, "{fix}");
    }
    let (_, plan) = ready(
        NODE,
        &[("a.js", "x"), ("a.test.js", base)],
        &[("a.js", "y"), ("a.test.js", &format!("{base}{new}"))],
    );
    assert_eq!(plan.added[0].name, "new");
}

#[test]
fn go_tests_are_compared_with_the_conditions_that_fail_them() {
    let base =
        "package a\n\nfunc TestOld(t *testing.T) {\n\tif f() != 2 {\n\t\tt.Fatal(`no`)\n\t}\n}\n";
    let new = "func TestNew(t *testing.T) { t.Error(1) }\n";
    for (fix, expected) in [
        (base.replace("!= 2", "== 9") + new, "test-weakened"),
        (
            base.replace("\tif", "\tt.Skip()\n\tif") + new,
            "test-skipped",
        ),
        (format!("//go:build never\n\n{base}{new}"), "test-skipped"),
        (
            format!("{base}{new}func TestMain(m *testing.M) {{ os.Exit(0) }}"),
            "test-weakened",
        ),
        (base.replace("TestOld", "Testold") + new, "test-deleted"),
    ] {
        let name = reason(
            GO,
            &[("a.go", "x"), ("a_test.go", base)],
            &[("a.go", "y"), ("a_test.go", &fix)],
        );
        assert_eq!(name, expected, "{fix}");
    }
}

#[test]
fn in_unknown_languages_lines_may_only_be_added() {
    const MAKE: &[(&str, &str)] = &[("Makefile", "test:\n\tsh tests/run.sh\n")];
    let (_, plan) = ready(
        MAKE,
        &[("a.c", "x"), ("tests/run.sh", "one\n")],
        &[("a.c", "y"), ("tests/run.sh", "one\ntwo\n")],
    );
    assert_eq!(plan.added[0].file, path("tests/run.sh"));
    for fix in [&[("tests/run.sh", "two\n")][..], &[]] {
        let mut files = vec![("a.c", "y"), ("tests/b.sh", "new\n")];
        files.extend(fix);
        let name = reason(MAKE, &[("a.c", "x"), ("tests/run.sh", "one\n")], &files);
        assert!(["test-weakened", "test-deleted"].contains(&name), "{name}");
    }
    let name = reason(
        MAKE,
        &[("a.c", "x")],
        &[
            ("a.c", "y"),
            ("tests/b.sh", "x"),
            ("Makefile", "test:\n\ttrue\n"),
        ],
    );
    assert_eq!(name, "test-configuration-changed");
}
