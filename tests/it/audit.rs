//! A ledger as it is stored: whatever is changed in the table, or in what is known beside it, shows at the next look.

mod archive;
mod bundle;
mod cosigned;
mod evidence;
mod history;
mod policies;
mod rows;
mod scores;
mod seen;
mod stages;
mod stream;
mod timestamps;

use caretaker::attest::chain::{Rule as ChainRule, Verdict};
use caretaker::audit::{
    ChainRecord, KeptEvidence, LedgerRow, LogPlace, Report, Rule, StoredLedger, verify,
};
use caretaker::change::Sha256Digest;
use caretaker::incident::Stage;
use caretaker::log::TreeHash;

use super::attest::ledger::Ledger;

/// The ledger as the store would hold it, with the incident at this stage.
fn stored(ledger: &Ledger, stage: Stage) -> StoredLedger {
    let expected = ledger.expectation();
    let rows = ledger
        .envelopes
        .iter()
        .map(|envelope| LedgerRow::derive(envelope).unwrap());
    StoredLedger {
        incident: ledger.incident.clone(),
        project: expected.project,
        rows: rows.collect(),
        chain: ChainRecord {
            next_seq: ledger.envelopes.len() as u64,
            head: expected.head.map(|head| head.digest),
        },
        places: places(&ledger.envelopes),
        stage,
        drafted: ledger.envelopes.len() as u64,
        evidence: kept(&ledger.documents),
    }
}

/// Where the log would have them.
fn places(envelopes: &[Vec<u8>]) -> Vec<LogPlace> {
    let place = |(seq, envelope): (i64, &Vec<u8>)| LogPlace {
        seq,
        position: 100 + seq,
        hash: Some(TreeHash::of_leaf(envelope).as_bytes().to_vec()),
    };
    (0..).zip(envelopes).map(place).collect()
}

fn kept(documents: &[Vec<u8>]) -> KeptEvidence {
    let mut kept = KeptEvidence::default();
    for document in documents {
        kept.add(Sha256Digest::of(document), document);
    }
    kept
}

/// An incident that was proposed, approved, merged and is done.
fn resolved() -> (Ledger, StoredLedger) {
    let ledger = Ledger::merged();
    let stored = stored(&ledger, Stage::Resolved);
    (ledger, stored)
}

fn checked(ledger: &Ledger, stored: &StoredLedger) -> Report {
    verify(&ledger.trust, stored)
}

#[track_caller]
fn assert_valid(ledger: &Ledger, stored: &StoredLedger) {
    let report = checked(ledger, stored);
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    assert!(report.failures.is_empty());
}

/// Asserts the verdict and that a failure of this rule names this position; returns its words.
#[track_caller]
fn assert_failed(
    ledger: &Ledger,
    stored: &StoredLedger,
    verdict: Verdict,
    (seq, rule): (u64, Rule),
) -> String {
    let report = checked(ledger, stored);
    assert_eq!(report.verdict, verdict, "{report:#?}");
    let failure = report
        .failures
        .iter()
        .find(|failure| failure.seq == seq && failure.rule == rule);
    failure
        .unwrap_or_else(|| panic!("no {rule} at {seq}: {report:#?}"))
        .to_string()
}

#[test]
fn the_report_is_the_json_of_the_interface() {
    let (ledger, mut stored) = resolved();
    stored.rows[2].role = "executor".to_owned();
    let json = serde_json::to_value(checked(&ledger, &stored)).unwrap();
    assert_eq!(json["verdict"], "invalid");
    assert_eq!(json["events"][2]["seq"], 2);
    assert_eq!(json["events"][2]["type"], "approval");
    assert_eq!(json["events"][2]["role"], "approver");
    assert_eq!(json["events"][2]["verdict"], "invalid");
    assert_eq!(
        json["events"][2]["reason"],
        "column: expected role approver, found role executor"
    );
    assert!(
        json["events"][2]["keyid"]
            .as_str()
            .unwrap()
            .starts_with("SHA256:")
    );
    assert_eq!(json["events"][1]["verdict"], "valid");
    assert_eq!(
        json["failures"],
        serde_json::json!([{"seq": 2, "rule": "column", "expected": "role approver", "found": "role executor"}])
    );
    assert!(json.as_object().unwrap().contains_key("checkpoint"));
    assert!(json["checkpoint"].is_null());
}

#[test]
fn nothing_stored_is_never_valid() {
    let ledger = Ledger::new();
    for stage in [Stage::Detected, Stage::Closed, Stage::Escalated] {
        let empty = stored(&ledger, stage);
        assert_failed(
            &ledger,
            &empty,
            Verdict::CannotVerify,
            (0, Rule::Chain(ChainRule::Empty)),
        );
    }
}

#[test]
fn a_ledger_that_admits_a_loss_is_valid_and_says_so() {
    let (mut ledger, _) = resolved();
    ledger.admit_gap();
    let stored = stored(&ledger, Stage::Resolved);
    assert_valid(&ledger, &stored);
    assert_eq!(checked(&ledger, &stored).gaps, [4]);
}
