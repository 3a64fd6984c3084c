//! Decisions by rules that are not the newest ones: a whole log shows them.

use caretaker::attest::chain::Verdict;
use caretaker::attest::predicate::{OrganisationBlock, PolicyVersion, Project};
use caretaker::attest::{DigestRef, FileSigner, OrganisationEvent, Role, Signer as _, Statement};
use caretaker::audit::Rule;
use caretaker::id::{EventId, IncidentId};

use super::super::attest::ledger::{Ledger, NOW, digest, key, producer, project, text, trust_root};
use super::stream::{Log, assert_failed, log_of, verified};

/// The stored envelope that puts rules into force.
fn version(number: u64, rules: &str, previous: Option<&str>, of: Project) -> Vec<u8> {
    let event = PolicyVersion {
        event: OrganisationBlock {
            id: EventId::new(NOW, [7; 10]),
            project: Some(of),
            role: Role::Policy,
            occurred_at: NOW,
            trust_root: trust_root().reference(),
            producer: producer(),
        },
        version: number,
        policy: digest(rules),
        bytes: 812,
        previous: previous.map(digest),
        intent_document: None,
        changed_by: text("local:ada"),
    };
    let event = OrganisationEvent::PolicyVersion(Box::new(event));
    let draft = Statement::organisation(event).unwrap().draft().unwrap();
    let signer = FileSigner::new(Role::Policy, key(Role::Policy));
    signer.sign(&draft).unwrap().to_bytes().unwrap()
}

/// An incident that was merged, decided by these rules.
fn decided_by(log: &mut Log, number: u8, rules: &str) -> u64 {
    let rules: DigestRef = digest(rules);
    let mut ledger = Ledger::new();
    ledger.incident = IncidentId::new(NOW, [200, number, 0, 0, 0, 0, 0, 0, 0, 0]);
    ledger.propose(|proposal| proposal.event.policy = rules);
    ledger.decide(|decision| decision.event.policy = rules);
    ledger.answer(|approval| approval.event.policy = rules);
    ledger.execute(|execution| execution.event.policy = rules);
    let first = log.tree.size();
    ledger.envelopes.iter().for_each(|one| log.append(one));
    first + 1
}

/// Two versions, each with an incident that was decided while it was the newest one.
fn two_versions() -> Log {
    let mut log = Log::default();
    log.append(&trust_root().to_bytes().unwrap());
    log.append(&version(1, "old rules", None, project()));
    decided_by(&mut log, 1, "old rules");
    log.append(&version(2, "new rules", Some("old rules"), project()));
    decided_by(&mut log, 2, "new rules");
    log
}

// The line to break is named in `audit::stream`.
#[test]
fn a_decision_by_rules_that_were_rolled_back_is_named() {
    let mut log = two_versions();
    let (report, memory) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    let place = decided_by(&mut log, 3, "old rules");
    // From the first leaf on, and from where it was verified before.
    for memory in [None, memory] {
        let (report, _) = verified(&log, memory);
        assert_failed(&report, Verdict::Invalid, place, Rule::Policy);
        assert_eq!(report.failures.len(), 1, "{report:#?}");
        let words = report.failures[0].to_string();
        assert!(words.contains("by version 2 of the rules of"), "{words}");
        assert!(
            words.contains(&digest("old rules").sha256.to_string()),
            "{words}"
        );
    }
}

// The line to break is named in `audit::stream::policies`.
#[test]
fn a_version_that_is_logged_again_changes_nothing() {
    let mut log = two_versions();
    let again = log.tree.size();
    log.append(&version(1, "old rules", None, project()));
    let place = decided_by(&mut log, 3, "old rules");
    let (report, _) = verified(&log, None);
    assert_failed(&report, Verdict::Invalid, again, Rule::Policy);
    assert_failed(&report, Verdict::Invalid, place, Rule::Policy);
    for (number, previous) in [(2, "old rules"), (4, "new rules"), (3, "old rules")] {
        let mut log = two_versions();
        let place = log.tree.size();
        log.append(&version(number, "other rules", Some(previous), project()));
        let (report, _) = verified(&log, None);
        assert_failed(&report, Verdict::Invalid, place, Rule::Policy);
    }
}

#[test]
fn a_renamed_repository_is_the_same_and_another_one_is_not() {
    let mut renamed = project();
    let address = renamed.uri.as_str().replace("/example/", "/sample/");
    renamed.uri = text(&format!("{address}-by-another-name"));
    let mut log = two_versions();
    log.append(&version(3, "third rules", Some("new rules"), renamed));
    let place = decided_by(&mut log, 3, "new rules");
    let (report, _) = verified(&log, None);
    assert_failed(&report, Verdict::Invalid, place, Rule::Policy);

    let elsewhere = Project {
        uri: text("https://git.example.net/example/widget"),
        ..project()
    };
    let mut log = two_versions();
    log.append(&version(1, "third rules", None, elsewhere));
    decided_by(&mut log, 3, "new rules");
    let (report, _) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
}

/// What was confirmed before versions were signed stays valid, and so does what was decided by it until the first one.
#[test]
fn nothing_is_demanded_before_the_first_version() {
    let mut log = log_of(3);
    log.append(&version(1, "new rules", None, project()));
    decided_by(&mut log, 1, "new rules");
    let (report, _) = verified(&log, None);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    assert_eq!(report.events, 17);
}
