//! Running the proof: what counts as red, as green, and as neither.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use async_trait::async_trait;
use caretaker::workspace::TreeLimits;
use caretaker::workspace::red_green::{
    Plan, Planned, Redness, RunError, ScratchTrees, TestLimits, TestOutcome, TestRunner,
    TestStatus, Verdict, plan, prove, run_tests,
};

use super::red_green::toolchain;
use super::{Bench, sources};

/// Answers by the last part of the tree's path.
struct Scripted(Vec<(&'static str, TestStatus, &'static str)>);

#[async_trait]
impl TestRunner for Scripted {
    async fn run(
        &self,
        _: &[String],
        directory: &Path,
        _: TestLimits,
    ) -> Result<TestOutcome, RunError> {
        let (_, status, stdout) = self
            .0
            .iter()
            .find(|(tree, ..)| directory.ends_with(tree))
            .unwrap();
        Ok(TestOutcome {
            status: *status,
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            elapsed: Duration::from_millis(5),
        })
    }
}

/// Runs trusted test programs without any sandbox.
struct Direct;

#[async_trait]
impl TestRunner for Direct {
    async fn run(
        &self,
        argv: &[String],
        directory: &Path,
        _: TestLimits,
    ) -> Result<TestOutcome, RunError> {
        let (program, arguments) = argv.split_first().unwrap();
        let output = Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .env("CARGO_TARGET_DIR", directory.join("built"))
            .output()
            .map_err(|error| RunError {
                directory: directory.display().to_string(),
                reason: error.to_string(),
            })?;
        Ok(TestOutcome {
            status: output
                .status
                .code()
                .map_or(TestStatus::Signalled(9), TestStatus::Exited),
            stdout: output.stdout,
            stderr: output.stderr,
            elapsed: Duration::ZERO,
        })
    }
}

fn planned(bench: &Bench, base: &[(&str, &str)], fix: &[(&str, &str)]) -> Plan {
    let (base, fix) = (bench.tree(&sources(base)), bench.tree(&sources(fix)));
    let toolchain = toolchain(bench, base);
    match plan(&bench.repository, base, fix, &toolchain).unwrap() {
        Planned::Ready(plan) => *plan,
        Planned::Unproven(unproven) => panic!("{unproven}"),
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

const MANIFEST: (&str, &str) = (
    "Cargo.toml",
    "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
);
const OLD_TEST: &str = "    #[test]\n    fn zero() { assert_eq!(super::add(0, 0), 0); }\n    #[test]\n    fn two() { assert_eq!(super::add(1, 1), 2); }\n";
const NEW_TEST: &str = "    #[test]\n    fn three() { assert_eq!(super::add(2, 1), 3); }\n";

fn rust(operator: &str, tests: &str) -> String {
    format!(
        "pub fn add(a: u32, b: u32) -> u32 {{ a {operator} b }}\n\n#[cfg(test)]\nmod tests {{\n{tests}}}\n"
    )
}

fn rust_plan(bench: &Bench) -> Plan {
    let (base, fix) = (
        rust("-", OLD_TEST),
        rust("+", &format!("{OLD_TEST}{NEW_TEST}")),
    );
    planned(
        bench,
        &[MANIFEST, ("src/lib.rs", &base)],
        &[MANIFEST, ("src/lib.rs", &fix)],
    )
}

fn verdict(
    red: (TestStatus, &'static str),
    green: (TestStatus, &'static str),
    base: i32,
) -> Verdict {
    let bench = Bench::new();
    let plan = rust_plan(&bench);
    let trees = ScratchTrees {
        red: PathBuf::from("/trees/red"),
        green: PathBuf::from("/trees/green"),
        base_on_fix: PathBuf::from("/trees/base-on-fix"),
    };
    let runner = Scripted(vec![
        ("red", red.0, red.1),
        ("green", green.0, green.1),
        ("base-on-fix", TestStatus::Exited(base), ""),
    ]);
    block_on(prove(&plan, &trees, &runner, TestLimits::default())).unwrap()
}

const PASSED: (TestStatus, &str) = (
    TestStatus::Exited(0),
    "test tests::two ... ok\ntest tests::three ... ok\ntest result: ok.\n",
);
const FAILED: (TestStatus, &str) = (
    TestStatus::Exited(101),
    "test tests::two ... FAILED\ntest tests::three ... FAILED\ntest result: FAILED.\n",
);

#[test]
fn the_verdict_follows_from_the_three_runs() {
    let Verdict::Proven(proof) = verdict(FAILED, PASSED, 0) else {
        panic!()
    };
    assert_eq!(proof.redness, Redness::AddedTestFailed);
    assert_eq!(proof.red.failed, ["tests::three", "tests::two"]);
    assert_eq!(
        proof.red.argv,
        ["cargo", "test", "--no-fail-fast", "--offline"]
    );

    let exited = |code, text| (TestStatus::Exited(code), text);
    for (red, green, base, expected, runs) in [
        (PASSED, PASSED, 0, "red-passes", 1),
        (
            exited(
                101,
                "test tests::two ... FAILED\ntest tests::three ... ok\ntest result: FAILED.\n",
            ),
            PASSED,
            0,
            "added-test-passes-on-base",
            1,
        ),
        ((TestStatus::TimedOut, ""), PASSED, 0, "run-undecided", 1),
        (exited(127, ""), PASSED, 0, "run-undecided", 1),
        (
            (TestStatus::LimitReached, ""),
            PASSED,
            0,
            "run-undecided",
            1,
        ),
        (FAILED, FAILED, 0, "green-fails", 2),
        (
            FAILED,
            exited(0, "test tests::two ... ok\ntest result: ok.\n"),
            0,
            "added-test-not-run",
            2,
        ),
        (FAILED, (TestStatus::Signalled(9), ""), 0, "green-fails", 2),
        (FAILED, PASSED, 101, "base-tests-fail-on-fix", 3),
    ] {
        let Verdict::Unproven(unproven, evidence) = verdict(red, green, base) else {
            panic!("{expected}")
        };
        assert_eq!(unproven.reason.as_str(), expected);
        assert_eq!(evidence.len(), runs);
    }
    let broken = exited(101, "error: could not compile `sum` (lib test)\n");
    let Verdict::Proven(proof) = verdict(broken, PASSED, 0) else {
        panic!()
    };
    assert_eq!(proof.redness, Redness::RunFailed);
}

fn really(bench: &Bench, plan: &Plan) -> Verdict {
    let limits = TreeLimits::default();
    let place = bench.place.path().join("trees");
    let trees = plan.check_out(&bench.repository, &place, &limits).unwrap();
    block_on(prove(plan, &trees, &Direct, TestLimits::default())).unwrap()
}

#[test]
fn a_failure_is_reproduced_by_one_run_of_the_same_command() {
    let bench = Bench::new();
    let plan = rust_plan(&bench);
    let runner = Scripted(vec![("red", FAILED.0, FAILED.1)]);
    let red = Path::new("/trees/red");
    let limits = TestLimits::default();
    let evidence = block_on(run_tests(&plan.toolchain, plan.red, red, &runner, limits)).unwrap();
    assert_eq!(evidence.status.passed(), Ok(false));
    assert_eq!(evidence.failed, ["tests::three", "tests::two"]);
    let json = serde_json::to_string(&evidence).unwrap();
    assert!(json.contains(r#""status":{"exited":101}"#), "{json}");
}

#[test]
fn a_real_rust_fix_is_proven() {
    let bench = Bench::new();
    let plan = rust_plan(&bench);
    match really(&bench, &plan) {
        Verdict::Proven(proof) => {
            assert_eq!(proof.redness, Redness::AddedTestFailed);
            assert_eq!(proof.red.failed, ["tests::three", "tests::two"]);
        }
        other @ Verdict::Unproven(..) => panic!("{other:?}"),
    }
}

const PYTHON_TEST: &str = "import unittest\nimport sums\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(sums.add(1, 1), 2)\n";

#[test]
fn a_real_python_fix_is_proven_and_a_special_case_is_not() {
    if !has("python3") {
        return;
    }
    let sum = |body: &str| format!("def add(a, b):\n    return {body}\n");
    let base = sum("a - b");
    let added =
        |assertion: &str| format!("{PYTHON_TEST}\n    def test_new(self):\n        {assertion}\n");
    for (body, assertion, expected) in [
        ("a + b", "self.assertEqual(sums.add(2, 1), 3)", None),
        (
            "a + b",
            "self.assertEqual(sums.add(0, 0), 0)",
            Some("added-test-passes-on-base"),
        ),
        (
            "a * b",
            "self.assertEqual(sums.add(2, 2), 4)",
            Some("green-fails"),
        ),
    ] {
        let bench = Bench::new();
        let (fixed, tests) = (sum(body), added(assertion));
        let plan = planned(
            &bench,
            &[
                ("setup.py", ""),
                ("sums.py", &base),
                ("test_sums.py", PYTHON_TEST),
            ],
            &[
                ("setup.py", ""),
                ("sums.py", &fixed),
                ("test_sums.py", &tests),
            ],
        );
        match (really(&bench, &plan), expected) {
            (Verdict::Proven(_), None) => {}
            (Verdict::Unproven(unproven, _), Some(name)) => {
                assert_eq!(unproven.reason.as_str(), name);
            }
            (other, expected) => panic!("{other:?} instead of {expected:?}"),
        }
    }
}

/// Whether a program is here; without it the test says so and counts as skipped, in CI it fails.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "{program} is missing in CI"
    );
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

#[test]
fn a_real_node_fix_is_proven() {
    if !has("node") {
        return;
    }
    let bench = Bench::new();
    let source = |operator: &str| format!("exports.add = (a, b) => a {operator} b;\n");
    let test = |more: &str| {
        format!(
            "const test = require('node:test');\nconst assert = require('node:assert');\nconst {{ add }} = require('./sum.js');\ntest('zero', () => {{ assert.equal(add(0, 0), 0); }});\n{more}"
        )
    };
    let (base, fix) = (source("-"), source("+"));
    let (old, new) = (
        test(""),
        test("test('adds one', () => { assert.equal(add(1, 1), 2); });\n"),
    );
    let plan = planned(
        &bench,
        &[
            ("package.json", "{}"),
            ("sum.js", &base),
            ("sum.test.js", &old),
        ],
        &[
            ("package.json", "{}"),
            ("sum.js", &fix),
            ("sum.test.js", &new),
        ],
    );
    match really(&bench, &plan) {
        Verdict::Proven(proof) => assert_eq!(proof.redness, Redness::AddedTestFailed),
        other @ Verdict::Unproven(..) => panic!("{other:?}"),
    }
}

/// The verdict on red when a runner prints this for a fix that adds one test.
fn redness(
    common: (&str, &str),
    source: &str,
    test: (&str, &str),
    printed: &'static str,
) -> Result<Redness, &'static str> {
    let bench = Bench::new();
    let plan = planned(
        &bench,
        &[common, (source, "old")],
        &[common, (source, "new"), test],
    );
    let trees = ScratchTrees {
        red: PathBuf::from("red"),
        green: PathBuf::from("green"),
        base_on_fix: PathBuf::from("base-on-fix"),
    };
    let runner = Scripted(vec![
        ("red", TestStatus::Exited(1), printed),
        ("green", TestStatus::Exited(0), ""),
        ("base-on-fix", TestStatus::Exited(0), ""),
    ]);
    match block_on(prove(&plan, &trees, &runner, TestLimits::default())).unwrap() {
        Verdict::Proven(proof) => Ok(proof.redness),
        Verdict::Unproven(unproven, _) => Err(unproven.reason.as_str()),
    }
}

const OTHER: Result<Redness, &str> = Err("added-test-passes-on-base");
const ADDED: Result<Redness, &str> = Ok(Redness::AddedTestFailed);
const UNREAD: Result<Redness, &str> = Ok(Redness::RunFailed);

// Break it: compare names with `contains` in `results::names`; a test named after a part of every failure then counts.
#[test]
fn of_python_failures_one_must_be_the_added_test() {
    let test = ("tests/test_new.py", "def test_one():\n    assert f()\n");
    for (printed, expected) in [
        (
            "FAIL: test_one (test_new.test_one)\nRan 2 tests in 0.1s\nFAILED (failures=1)\n",
            ADDED,
        ),
        (
            "FAIL: test_old (test_new.test_one.T)\nRan 2 tests in 0.1s\n",
            OTHER,
        ),
        (
            "ERROR: tests.test_new (unittest.loader._FailedTest.tests.test_new)\nRan 1 test in 0.1s\n",
            ADDED,
        ),
        (
            "FAILED tests/test_new.py::T::test_one[1-x] - assert 1\n==== 1 failed in 0.1s ====\n",
            ADDED,
        ),
        (
            "ERROR tests/test_new.py - ImportError\n==== 1 error in 0.1s ====\n",
            ADDED,
        ),
        (
            "FAILED tests/test_new.py::test_old\n==== 1 failed ====\n",
            OTHER,
        ),
        ("No module named pytest\n", UNREAD),
    ] {
        let verdict = redness(("setup.py", ""), "a.py", test, printed);
        assert_eq!(verdict, expected, "{printed}");
    }
}

#[test]
fn of_node_failures_one_must_be_the_added_test() {
    let test = ("a.test.js", "test('one', () => { expect(f()).toBe(1); });");
    let manifest = r#"{"scripts":{"test":"x"}}"#;
    for (printed, expected) in [
        ("not ok 1 - one\n", ADDED),
        ("\u{1b}[31m✖ one (0.5ms)\u{1b}[39m\n", ADDED),
        ("  ✕ one (3 ms)\n", ADDED),
        (" × a.test.js > suite > one 3ms\n", ADDED),
        ("  1) one\n", ADDED),
        ("not ok 1 - /tree/a.test.js\n", ADDED),
        ("not ok 1 - one more\nok 2 - one\n", OTHER),
        ("✓ one\n✕ someone\n", OTHER),
        ("Cannot find module\n", UNREAD),
    ] {
        let verdict = redness(("package.json", manifest), "a.js", test, printed);
        assert_eq!(verdict, expected, "{printed}");
    }
}

#[test]
fn of_go_failures_one_must_be_the_added_test() {
    let test = (
        "a_test.go",
        "package a\nfunc TestOne(t *testing.T) { t.Error(1) }\n",
    );
    for (printed, expected) in [
        ("--- FAIL: TestOne (0.00s)\nFAIL\nFAIL\ta\t0.1s\n", ADDED),
        ("--- FAIL: TestOne/sub (0.00s)\nFAIL\n", ADDED),
        ("--- FAIL: TestOneMore (0.00s)\nFAIL\n", OTHER),
        ("FAIL\ta [build failed]\nok  \tb\t0.1s\n", UNREAD),
    ] {
        let verdict = redness(("go.mod", "module a"), "a.go", test, printed);
        assert_eq!(verdict, expected, "{printed}");
    }
}
