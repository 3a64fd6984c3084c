//! Test runs and other documents of a story.

use std::collections::BTreeMap;

use caretaker::attest::dsse::Envelope;
use caretaker::attest::predicate as signed;
use caretaker::attest::{Evidence, Label, List, Role, Statement, Subject, Text};
use caretaker::change::{Oid, Sha256Digest};
use caretaker::id::EventId;
use caretaker::incident::EvidenceDocument;
use caretaker::workspace::red_green::{TestEvidence, TestStatus};

use super::scene::{NOW, Scene};
use super::story::Story;

impl Story<'_> {
    /// The signed context manifest; always the same.
    pub(super) fn manifest(&self) -> EvidenceDocument {
        let manifest = signed::ContextManifest {
            document: signed::EvidenceBlock {
                id: EventId::new(NOW, [6; 10]),
                incident: self.incident.clone(),
                project: signed::Project {
                    uri: Text::new(&self.project.url).unwrap(),
                    repository_id: Label::new(&self.project.repository_id).unwrap(),
                },
                role: Role::Proposer,
                occurred_at: NOW,
                trust_root: self.scene.trust.newest().reference(),
                producer: signed::Producer {
                    id: Text::new("urn:caretaker:worker").unwrap(),
                    version: Label::new("0.1.0").unwrap(),
                },
            },
            items: List::default(),
            count: 0,
            all: None,
            prompt: None,
        };
        let subject = Subject::sha256("manifest", Sha256Digest::of(b"manifest"));
        let evidence = Evidence::ContextManifest(Box::new(manifest));
        let statement = Statement::evidence(vec![subject], evidence).unwrap();
        EvidenceDocument {
            media_type: "application/vnd.dsse.envelope.v1+json",
            bytes: Scene::sign(Role::Proposer, &statement.draft().unwrap()),
        }
    }

    /// A run's whole record, and its signed result.
    pub(super) fn test_run(&self, tree: Oid, passed: bool) -> [EvidenceDocument; 2] {
        let run = TestEvidence {
            tree,
            argv: ["cargo", "test", "--no-fail-fast"]
                .map(str::to_owned)
                .into(),
            directory: String::new(),
            status: TestStatus::Exited(if passed { 0 } else { 101 }),
            failed: if passed {
                Vec::new()
            } else {
                vec!["deadline::tests::due_today_is_not_late".to_owned()]
            },
            stdout: Sha256Digest::of(b"stdout"),
            stderr: Sha256Digest::of(b"stderr"),
            tail: if passed {
                "test result: ok. 4 passed; 0 failed".to_owned()
            } else {
                self.words.tail.clone()
            },
            elapsed_ms: 2_340,
        };
        let whole = plain(&run);
        let record = signed::ResourceDescriptor {
            name: Some(Text::new("run").unwrap()),
            uri: None,
            digest: Some(BTreeMap::from([(
                "sha256".to_owned(),
                whole.digest().to_string(),
            )])),
            media_type: None,
        };
        let result = signed::TestResult {
            result: if passed {
                signed::TestOutcome::Passed
            } else {
                signed::TestOutcome::Failed
            },
            configuration: List::first_of([record]),
            url: None,
            passed_tests: None,
            warned_tests: None,
            failed_tests: None,
        };
        let subject = Subject {
            name: "tree".to_owned(),
            digest: BTreeMap::from([("gitTree".to_owned(), tree.to_string())]),
        };
        let statement = Statement::evidence(vec![subject], Evidence::TestResult(Box::new(result)));
        let bytes = Scene::sign(Role::Proposer, &statement.unwrap().draft().unwrap());
        assert!(Envelope::parse(&bytes).is_ok());
        let envelope = EvidenceDocument {
            media_type: "application/vnd.dsse.envelope.v1+json",
            bytes,
        };
        [whole, envelope]
    }
}

/// A document without a signature.
pub(super) fn plain(document: &impl serde::Serialize) -> EvidenceDocument {
    EvidenceDocument {
        media_type: "application/json",
        bytes: serde_json::to_vec(document).unwrap(),
    }
}
