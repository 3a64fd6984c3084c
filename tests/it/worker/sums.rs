//! A small Python repository whose tests run in a moment, for stories that are told many times.

use caretaker::agent::{Diagnosis, Edit, FixSummary, Script, ScriptedCoder, When};
use caretaker::forge::{Ci, FileEdit, Forge, NewJob, NewRun, NewStep, Planted};

/// Long enough for an edit elsewhere in it that git merges without a word.
pub(crate) const MODULE: &str =
    "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return 2 * a\n";
pub(crate) const OLD_TEST: &str = "import unittest\nimport sums\n\n\nclass Sums(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(sums.add(1, 1), 2)\n";
pub(crate) const NEW_TEST: &str = "import unittest\nimport sums\n\n\nclass More(unittest.TestCase):\n    def test_three(self):\n        self.assertEqual(sums.add(2, 1), 3)\n";
pub(crate) const LOG: &str = "test_two (test_sums.Sums.test_two) ... FAIL\n\n======================================================================\nFAIL: test_two (test_sums.Sums.test_two)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/home/runner/work/sums/sums/test_sums.py\", line 7, in test_two\n    self.assertEqual(sums.add(1, 1), 2)\nAssertionError: 0 != 2\n\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n";

/// The module without its defect.
pub(crate) const RIGHT_MODULE: &str =
    "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n";

/// Plants the repository and its failed run.
pub(crate) fn plant(forge: &Forge) -> Planted {
    plant_of(forge, MODULE, OLD_TEST)
}

/// The same with another module and another test.
pub(crate) fn plant_of(forge: &Forge, module: &str, test: &str) -> Planted {
    let files = [
        ("sums.py", FileEdit::file(module)),
        ("test_sums.py", FileEdit::file(test)),
        ("README.md", FileEdit::file("Sums.\n")),
    ];
    failing(forge, &files, LOG, "sums.py")
}

/// The same in a folder, as a project of its own in the repository.
pub(crate) fn plant_below(forge: &Forge) -> Planted {
    let files = [
        ("lib/sums.py", FileEdit::file(MODULE)),
        ("lib/test_sums.py", FileEdit::file(OLD_TEST)),
        ("lib/requirements.txt", FileEdit::file("")),
        ("README.md", FileEdit::file("Sums.\n")),
    ];
    let log = LOG.replace("/sums/test_sums.py", "/sums/lib/test_sums.py");
    failing(forge, &files, &log, "lib/sums.py")
}

fn failing(forge: &Forge, files: &[(&str, FileEdit)], log: &str, file: &'static str) -> Planted {
    let repository = forge.create_repository("acme", "sums", files).unwrap();
    repository.set_ci(Ci::Automatic).unwrap();
    let step = NewStep {
        name: "Run python3 -m unittest".to_owned(),
        conclusion: Some("failure".to_owned()),
    };
    let job = NewJob {
        name: "test".to_owned(),
        conclusion: Some("failure".to_owned()),
        steps: vec![step],
        log: Some(log.as_bytes().to_vec()),
    };
    let run = repository
        .add_run(NewRun {
            workflow: "CI".to_owned(),
            workflow_id: 700,
            workflow_path: ".github/workflows/ci.yml".to_owned(),
            event: "push".to_owned(),
            branch: Some("main".to_owned()),
            head_sha: repository.tip("main").unwrap(),
            status: "completed".to_owned(),
            conclusion: Some("failure".to_owned()),
            jobs: vec![job],
        })
        .unwrap();
    Planted {
        repository,
        run,
        file,
        wrong: "a - b",
        right: "a + b",
    }
}

/// The coder that knows its defect.
pub(crate) fn coder() -> ScriptedCoder {
    ScriptedCoder::new(vec![Script {
        when: When::default(),
        diagnosis: Diagnosis {
            cause: "add subtracts".to_owned(),
            files: vec!["sums.py".parse().unwrap(), "test_more.py".parse().unwrap()],
            confidence: 900,
            summary: "sums.add subtracts its second argument instead of adding it.".to_owned(),
        },
        edits: vec![
            Edit::Replace {
                path: "sums.py".parse().unwrap(),
                find: "a - b".to_owned(),
                replace: "a + b".to_owned(),
            },
            Edit::Write {
                path: "test_more.py".parse().unwrap(),
                content: NEW_TEST.to_owned(),
            },
        ],
        fix: FixSummary {
            title: "Add instead of subtracting".to_owned(),
            summary: "The sign was wrong. A new test adds two and one.".to_owned(),
        },
    }])
}
