//! A whole worker that has brought a fix to the point where a person is asked, as cheaply as that can be had.

use std::process::Command;
use std::sync::Arc;

use caretaker::agent::{Diagnosis, Edit, FixSummary, Script, ScriptedCoder, When};
use caretaker::approve::HumanDecision;
use caretaker::forge::{
    Ci, Fault, FaultAction, FileEdit, Forge, Moment, NewJob, NewRun, Planted, RepositoryHandle,
};
use caretaker::incident::{EscalationReason, Fact, Stage};
use caretaker::reconcile::Difference;

use super::bench::asked;
use crate::attest::ledger::payload_of;
use crate::worker::world::{Setting, World, forge};

pub(crate) const SOURCE: &str = "sums.py";
const WRONG: &str = "return a - b";
const RIGHT: &str = "return a + b";

/// A repository whose tests take a fraction of a second.
pub(crate) const FILES: [(&str, &str); 2] = [
    (
        SOURCE,
        "\"\"\"Sums.\"\"\"\n\n\ndef add(a, b):\n    \"\"\"The sum of two numbers.\"\"\"\n    return a - b\n\n\ndef double(a):\n    \"\"\"Twice a number.\"\"\"\n    return 2 * a\n",
    ),
    (
        "tests/test_sums.py",
        "import unittest\n\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(add(1, 1), 2)\n",
    ),
];

pub(crate) const LOG: &str = "F\n======================================================================\nFAIL: test_two (test_sums.Sums.test_two)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/home/runner/work/sums/sums/tests/test_sums.py\", line 8, in test_two\n    self.assertEqual(add(1, 1), 2)\nAssertionError: 0 != 2\n\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n";

const TEST: &str = "import unittest\n\nfrom sums import add\n\n\nclass Signs(unittest.TestCase):\n    def test_negative(self):\n        self.assertEqual(add(-1, 3), 2)\n";

/// Mends [`FILES`].
pub(crate) fn coder() -> ScriptedCoder {
    let (source, test) = (SOURCE.parse().unwrap(), "tests/test_signs.py");
    ScriptedCoder::new(vec![Script {
        when: When::default(),
        diagnosis: Diagnosis {
            cause: "add subtracts.".to_owned(),
            files: vec![SOURCE.parse().unwrap(), test.parse().unwrap()],
            confidence: 900,
            summary: "add takes the second number away instead of adding it.".to_owned(),
        },
        edits: vec![
            Edit::Replace {
                path: source,
                find: WRONG.to_owned(),
                replace: RIGHT.to_owned(),
            },
            Edit::Write {
                path: test.parse().unwrap(),
                content: TEST.to_owned(),
            },
        ],
        fix: FixSummary {
            title: "Add instead of subtracting".to_owned(),
            summary: "add returned the difference. It now returns the sum.".to_owned(),
        },
    }])
}

/// Whether Python is here. In CI it has to be.
pub(crate) fn has_python() -> bool {
    let asked = Command::new("python3").arg("--version").output();
    let found = asked.is_ok_and(|output| output.status.success());
    assert!(
        found || std::env::var_os("CI").is_none(),
        "python3 is missing in CI"
    );
    found
}

fn planted(forge: &Forge) -> Planted {
    let files = FILES.map(|(path, text)| (path, FileEdit::file(text)));
    let repository = forge.create_repository("acme", "sums", &files).unwrap();
    repository.set_ci(Ci::Automatic).unwrap();
    let job = NewJob {
        name: "test".to_owned(),
        conclusion: Some("failure".to_owned()),
        steps: Vec::new(),
        log: Some(LOG.as_bytes().to_vec()),
    };
    let run = repository.add_run(NewRun {
        workflow: "CI".to_owned(),
        workflow_id: 501,
        workflow_path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        branch: Some("main".to_owned()),
        head_sha: repository.tip("main").unwrap(),
        status: "completed".to_owned(),
        conclusion: Some("failure".to_owned()),
        jobs: vec![job],
    });
    Planted {
        run: run.unwrap(),
        repository,
        file: SOURCE,
        wrong: WRONG,
        right: RIGHT,
    }
}

/// An incident about which a person is asked. Without Python it is one of the slower planted repositories.
pub(super) async fn waiting() -> World {
    let world = if has_python() {
        let home = tempfile::tempdir().unwrap();
        let forge = forge(&home).await;
        let planted = planted(&forge);
        let setting = Setting {
            coder: Some(Arc::new(coder())),
            ..Setting::default()
        };
        World::over(home, forge, planted, setting).await
    } else {
        World::new(Setting::default()).await
    };
    let stage = world.settle().await;
    let facts = world.snapshot().await.facts;
    assert_eq!(stage, Stage::AwaitingApproval, "{facts:#?}");
    world
}

/// The same after the person has said yes and before the worker has seen it.
pub(super) async fn approved() -> World {
    let world = waiting().await;
    world.answer(HumanDecision::Approve).await;
    world
}

impl World {
    pub(super) fn repository(&self) -> RepositoryHandle {
        self.planted.repository.clone()
    }

    /// What happens to the nth request to merge from now on.
    pub(super) fn merge_fails(&self, nth: usize, action: FaultAction) {
        self.forge.fault(Fault {
            method: "PUT".to_owned(),
            path: "/merge".to_owned(),
            nth,
            action,
        });
    }

    /// The nth request to merge is answered with this, and has no effect.
    pub(super) fn merge_answers(&self, nth: usize, code: u16, message: &str) {
        let body = serde_json::json!({"message": message}).to_string();
        let headers = Vec::new();
        self.merge_fails(
            nth,
            FaultAction::Status {
                code,
                body,
                headers,
            },
        );
    }

    /// Somebody does something when the first request to merge has arrived and before it takes effect.
    pub(super) fn meanwhile(&self, act: impl FnOnce(&RepositoryHandle) + Send + 'static) {
        let repository = self.repository();
        let act = move || {
            act(&repository);
            Ok(())
        };
        self.forge.on("PUT", "/merge", 1, Moment::Before, act);
    }

    pub(super) fn merges_asked(&self) -> usize {
        asked(&self.forge)
    }

    /// The branch of the fix.
    pub(super) async fn branch(&self) -> String {
        self.snapshot().await.fix().unwrap().branch.clone()
    }

    /// Why it was handed over, and the rules that said no.
    pub(super) async fn handed_over(&self) -> (EscalationReason, String, Vec<String>) {
        let snapshot = self.snapshot().await;
        let found = snapshot.facts.iter().find_map(|fact| match &fact.fact {
            Fact::Escalated {
                reason,
                detail,
                differences,
            } => Some((*reason, detail.clone(), rules(differences))),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("not handed over: {:#?}", snapshot.facts))
    }

    /// The predicate of the only signed event of this kind.
    pub(super) async fn signed(&self, kind: &str) -> serde_json::Value {
        let scoped = self.engine.store.within(&self.project.organisation);
        let ledger = scoped.ledger(&self.incident).await.unwrap().unwrap();
        let position = self.events().await.iter().position(|name| *name == kind);
        let envelope = &ledger.rows[position.expect("it is signed")].envelope;
        let statement: serde_json::Value = serde_json::from_slice(&payload_of(envelope)).unwrap();
        statement["predicate"].clone()
    }

    /// Nothing of the fix is on the base branch, and the pull request is not merged.
    pub(super) fn assert_unmerged(&self) {
        let pulls = self.planted.repository.pulls().unwrap();
        assert_eq!(pulls.len(), 1);
        assert_eq!(pulls[0].merge_commit, None);
        let text = self.text_on_main();
        assert!(text.contains(self.planted.wrong), "{text}");
    }

    /// The fix is on the base branch, once.
    pub(super) fn assert_merged(&self) {
        let pulls = self.planted.repository.pulls().unwrap();
        assert_eq!(pulls.len(), 1);
        assert!(pulls[0].merge_commit.is_some());
        let text = self.text_on_main();
        assert!(text.contains(self.planted.right), "{text}");
    }

    pub(super) fn text_on_main(&self) -> String {
        let file = self.planted.repository.file("main", self.planted.file);
        String::from_utf8(file.unwrap().unwrap()).unwrap()
    }
}

fn rules(differences: &[Difference]) -> Vec<String> {
    let mut rules: Vec<String> = differences.iter().map(|it| it.rule.clone()).collect();
    rules.dedup();
    rules
}
