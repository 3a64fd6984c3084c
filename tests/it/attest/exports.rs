//! What a ledger says, in other programs' formats.

use caretaker::attest::chain::Verdict as Outcome;
use caretaker::attest::dsse::IN_TOTO;
use caretaker::attest::predicate::*;
use caretaker::attest::*;
use caretaker::change::Sha256Digest;
use serde_json::{Value, json};

use super::ledger::*;

fn made(ledger: &Ledger) -> Vec<Export> {
    exports(&ledger.trust, &ledger.expectation(), &ledger.envelopes).unwrap()
}

fn value(export: &Export) -> Value {
    serde_json::from_slice(export.statement()).unwrap()
}

/// How an export names an event of the ledger.
fn input(ledger: &Ledger, seq: usize) -> Value {
    let statement: Value = serde_json::from_slice(&payload_of(&ledger.envelopes[seq])).unwrap();
    let id = statement["predicate"]["event"]["id"].as_str().unwrap();
    let digest = Sha256Digest::of(&ledger.envelopes[seq]);
    json!({"uri": format!("urn:caretaker:event:{id}"), "digest": {"sha256": digest}})
}

#[test]
fn a_merge_is_a_summary_of_the_landed_commit() {
    let ledger = Ledger::merged();
    let exports = made(&ledger);
    let kinds: Vec<_> = exports
        .iter()
        .map(|export| (export.seq(), export.kind().name(), export.role()))
        .collect();
    assert_eq!(
        kinds,
        [
            (1, "verification-summary", Role::Policy),
            (2, "reference-authorization", Role::Approver),
            (3, "verification-summary", Role::Executor),
        ]
    );
    assert_eq!(
        value(&exports[2]),
        json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{
                "name": "landed",
                "digest": {"gitCommit": "c".repeat(40), "gitTree": "d".repeat(40)},
                "annotations": {"sourceRefs": ["refs/heads/main"]},
            }],
            "predicateType": "https://slsa.dev/verification_summary/v1",
            "predicate": {
                "verifier": {"id": "https://example.org/caretaker", "version": {"caretaker": "0.1.0"}},
                "timeVerified": "2027-01-15T08:00:00Z",
                "resourceUri": "git+https://github.com/example/shop",
                "policy": {
                    "uri": format!("urn:caretaker:policy:sha256:{}", digest("the rules").sha256),
                    "digest": {"sha256": digest("the rules").sha256},
                },
                "inputAttestations": [input(&ledger, 0), input(&ledger, 2)],
                "verificationResult": "PASSED",
                "verifiedLevels": ["ORG_SOURCE_CARETAKER_RECONCILED", "ORG_SOURCE_CARETAKER_APPROVED"],
            },
        })
    );
    let decision = value(&exports[0]);
    assert_eq!(
        decision["subject"],
        json!([{"name": "head", "digest": {"gitCommit": "e".repeat(40), "gitTree": "d".repeat(40)}}])
    );
    assert_eq!(
        decision["predicate"]["verifiedLevels"],
        json!(["ORG_SOURCE_CARETAKER_NOT_DENIED"]),
        "that a person still has to approve is no level"
    );
    assert_eq!(
        decision["predicate"]["inputAttestations"],
        json!([input(&ledger, 0)])
    );
}

#[test]
fn an_approval_under_which_something_landed_is_a_reference_authorization() {
    let exports = made(&Ledger::merged());
    assert_eq!(
        value(&exports[1]),
        json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "merge-result", "digest": {"gitTree": "d".repeat(40)}}],
            "predicateType": "https://gittuf.dev/reference-authorization/v0.2",
            "predicate": {
                "targetRef": "refs/heads/main",
                "fromID": "b".repeat(40),
                "targetID": "d".repeat(40),
            },
        })
    );
    // Before anything landed nobody knows the tree; a rejection authorises nothing.
    let mut waiting = Ledger::new();
    waiting.propose(|_| ());
    waiting.decide(|_| ());
    waiting.answer(|_| ());
    assert_eq!(made(&waiting).len(), 1);
    let mut rejected = Ledger::new();
    rejected.propose(|_| ());
    rejected.decide(|_| ());
    rejected.answer(|approval| approval.answer = Answer::Reject);
    assert_eq!(made(&rejected).len(), 1);
}

// The line to break is named in `attest::export::slsa`.
#[test]
fn a_denial_is_a_summary_that_failed() {
    let mut ledger = Ledger::new();
    let files = Target::Files(FileList {
        sha256: digest("files").sha256,
        count: 1,
    });
    ledger.propose(|proposal| proposal.target = files.clone());
    ledger.decide(|decision| {
        decision.target = files;
        decision.verdict = Verdict::Deny;
        decision.terminal = true;
    });
    let exports = made(&ledger);
    assert_eq!(exports.len(), 1);
    let denial = value(&exports[0]);
    assert_eq!(denial["predicate"]["verificationResult"], "FAILED");
    assert_eq!(denial["predicate"]["verifiedLevels"], json!(["FAILED"]));
    assert_eq!(
        denial["subject"],
        json!([{"name": "files", "digest": {"sha256": digest("files").sha256}}])
    );
}

#[test]
fn somebody_elses_merge_and_a_free_change() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.verdict = Verdict::Free);
    let mut outside = ledger.clone();
    let decision = ledger.decision.unwrap();
    ledger.execute(|execution| execution.authority = Some(AuthorityRef::Decision(decision)));
    let levels = |ledger: &Ledger| {
        made(ledger)
            .iter()
            .map(|export| value(export)["predicate"]["verifiedLevels"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        levels(&ledger),
        [
            json!([
                "ORG_SOURCE_CARETAKER_NOT_DENIED",
                "ORG_SOURCE_CARETAKER_FREE"
            ]),
            json!([
                "ORG_SOURCE_CARETAKER_RECONCILED",
                "ORG_SOURCE_CARETAKER_FREE"
            ]),
        ]
    );
    outside.execute(|execution| {
        execution.by_us = false;
        execution.authority = None;
    });
    assert_eq!(levels(&outside)[1], json!(["FAILED"]));
}

#[test]
fn no_level_of_slsa_itself_is_claimed() {
    for export in made(&Ledger::merged()) {
        let text = String::from_utf8(export.statement().to_vec()).unwrap();
        assert!(!text.contains("SLSA_"), "{text}");
        if let Some(levels) = value(&export)["predicate"]["verifiedLevels"].as_array() {
            assert!(levels.iter().all(|level| {
                level
                    .as_str()
                    .is_some_and(|level| level.starts_with("ORG_SOURCE_CARETAKER_"))
            }));
        }
    }
}

// The line to break is named in `attest::export`.
#[test]
fn nothing_is_exported_from_a_ledger_that_does_not_verify() {
    let mut ledger = Ledger::merged();
    let expected = ledger.expectation();
    let cut = exports(&ledger.trust, &expected, &ledger.envelopes[..3]);
    assert_eq!(
        cut,
        Err(ExportError::NotValid {
            verdict: Outcome::Invalid
        })
    );
    let nothing: [&[u8]; 0] = [];
    assert_eq!(
        exports(
            &ledger.trust,
            &caretaker::attest::Expectation::default(),
            nothing
        ),
        Err(ExportError::NotValid {
            verdict: Outcome::CannotVerify
        })
    );
    ledger.envelopes.swap(1, 2);
    assert!(exports(&ledger.trust, &expected, &ledger.envelopes).is_err());
}

// The line to break is named in `attest::signer`.
#[test]
fn an_export_is_signed_by_the_role_whose_word_it_is() {
    let ledger = Ledger::merged();
    for export in made(&ledger) {
        for role in Role::ALL {
            let signed = FileSigner::new(role, key(role)).sign_export(&export);
            assert_eq!(signed.is_ok(), role == export.role());
            let Ok(envelope) = signed else { continue };
            let bytes = envelope.to_bytes().unwrap();
            let foreign = ForeignEnvelope::parse(&bytes).unwrap();
            let verified = foreign.verify(IN_TOTO, &[key(role).public()], 1).unwrap();
            assert_eq!(verified.payload(), export.statement());
            // To us it is nothing: it can neither stand in a chain nor be taken for evidence.
            assert!(authenticate(&ledger.trust, &Envelope::parse(&bytes).unwrap()).is_err());
        }
    }
}
