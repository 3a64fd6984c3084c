//! Evidence that is gone, changed or somebody else's shows at the next look.

use caretaker::attest::chain::Verdict;
use caretaker::attest::predicate::{Escalation, EvidenceRef, Gap, GapReason, GoneEvidence};
use caretaker::attest::{Event, List, Role};
use caretaker::audit::Rule;
use caretaker::change::Sha256Digest;
use caretaker::incident::Stage;

use super::super::attest::ledger::{Ledger, digest, digest_of, label, text};
use super::{assert_failed, assert_valid, checked, kept, resolved, stored};

// The line to break is named in `audit::evidence`.
#[test]
fn evidence_that_is_gone_is_noticed() {
    let (ledger, _) = resolved();
    let names = [
        ("the context manifest", digest_of(&ledger.documents[0])),
        ("a test result", digest_of(&ledger.documents[1])),
        ("a test result", digest_of(&ledger.documents[2])),
        (
            "the whole list of a context manifest",
            digest("the whole list").sha256,
        ),
        ("the record of a test run", digest("the red run").sha256),
        ("the record of a test run", digest("the green run").sha256),
    ];
    for (lost, (what, name)) in names.into_iter().enumerate() {
        let mut documents = ledger.documents.clone();
        documents.remove(lost);
        let mut stored = stored(&ledger, Stage::Resolved);
        stored.evidence = kept(&documents);
        let words = assert_failed(&ledger, &stored, Verdict::CannotVerify, (0, Rule::Evidence));
        assert_eq!(
            words,
            format!(
                "event 0: evidence: expected {what} {name}, found nothing in the evidence store, and no gap that says so"
            )
        );
        // The other events stay what they are.
        let report = checked(&ledger, &stored);
        assert!(
            report.events[1..]
                .iter()
                .all(|event| event.verdict == Verdict::Valid)
        );
    }
}

#[test]
fn evidence_with_other_bytes_is_invalid() {
    let (ledger, mut stored) = resolved();
    stored.evidence = kept(&ledger.documents[..5]);
    stored
        .evidence
        .add(digest("the green run").sha256, b"a greener run");
    let words = assert_failed(&ledger, &stored, Verdict::Invalid, (0, Rule::Evidence));
    assert!(
        words.ends_with("found other bytes under that digest"),
        "{words}"
    );
}

#[test]
fn a_signed_document_of_another_kind_or_signer_does_not_count() {
    // The test result stands where the manifest is named: it is what its digest says, and yet not what is said to be there.
    let mut ledger = Ledger::new();
    let result = digest_of(&ledger.documents[1]);
    ledger.propose(|proposal| proposal.context_manifest = result.into());
    ledger.decide(|_| ());
    let words = assert_failed(
        &ledger,
        &stored(&ledger, Stage::AwaitingApproval),
        Verdict::Invalid,
        (0, Rule::Evidence),
    );
    assert!(words.ends_with("found a test-result statement"), "{words}");

    // The same statement under the approver's key.
    let mut ledger = Ledger::new();
    let payload = super::super::attest::ledger::payload_of(&ledger.documents[0]);
    ledger.documents[0] = super::super::attest::ledger::forge(
        caretaker::attest::dsse::IN_TOTO,
        &payload,
        &super::super::attest::ledger::seed(Role::Approver),
    );
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    assert_failed(
        &ledger,
        &stored(&ledger, Stage::AwaitingApproval),
        Verdict::Invalid,
        (0, Rule::Evidence),
    );
}

#[test]
fn what_answers_and_escalations_name_has_to_be_there() {
    let (mut ledger, _) = resolved();
    let shown = EvidenceRef {
        kind: label("comparison"),
        sha256: digest("the comparison").sha256,
    };
    ledger.escalate(|escalation: &mut Escalation| {
        escalation.evidence = List::first_of([shown]);
    });
    let mut row = stored(&ledger, Stage::Escalated);
    assert_failed(&ledger, &row, Verdict::CannotVerify, (4, Rule::Evidence));
    let comparison = b"the comparison".to_vec();
    row.evidence.add(Sha256Digest::of(&comparison), &comparison);
    assert_valid(&ledger, &row);
}

fn gap(ledger: &Ledger, lost: &[usize]) -> Gap {
    let gone = lost.iter().map(|lost| {
        let document = &ledger.documents[*lost];
        GoneEvidence {
            kind: label("document"),
            sha256: Sha256Digest::of(document),
            signed_as: caretaker::attest::Envelope::parse(document)
                .ok()
                .map(|envelope| envelope.digest()),
        }
    });
    Gap {
        event: ledger.block(Role::Executor),
        reason: Some(GapReason::Retention),
        detail: text("kept for 90 days"),
        evidence: List::first_of(gone),
    }
}

#[test]
fn evidence_that_a_signed_gap_names_is_missed_without_harm() {
    let (mut ledger, _) = resolved();
    let event = gap(&ledger, &[1, 4]);
    ledger.push(Event::Gap(Box::new(event)));
    let mut documents = ledger.documents.clone();
    documents.remove(4);
    documents.remove(1);
    let mut row = stored(&ledger, Stage::Resolved);
    row.evidence = kept(&documents);
    assert_valid(&ledger, &row);
    let report = checked(&ledger, &row);
    assert_eq!(report.gaps, [4]);
    assert_eq!(
        report.admissions(),
        [(
            4,
            "2 documents deleted after their time (kept for 90 days)".to_owned()
        )]
    );

    // A gap excuses what it names and nothing else.
    documents.remove(1);
    row.evidence = kept(&documents);
    assert_failed(&ledger, &row, Verdict::CannotVerify, (0, Rule::Evidence));
}

#[test]
fn a_gap_that_is_not_signed_by_the_executor_excuses_nothing() {
    let (mut ledger, _) = resolved();
    let event = gap(&ledger, &[1, 4]);
    let draft = caretaker::attest::Statement::event(Event::Gap(Box::new(event)));
    let draft = draft.unwrap().draft().unwrap();
    ledger.push_raw(&draft, Role::Proposer);
    let mut row = stored(&ledger, Stage::Resolved);
    let mut documents = ledger.documents.clone();
    documents.remove(1);
    row.evidence = kept(&documents);
    // Only authentic events count: whoever can write the table could excuse anything else.
    assert_failed(&ledger, &row, Verdict::Invalid, (0, Rule::Evidence));
}
