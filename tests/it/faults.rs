//! Faults that other verifiers had and that no other test here looks for; and the page that says which test looks for which.

mod hostile;
pub(crate) mod page;

use caretaker::attest::chain::{Rule, Verdict as Outcome};
use caretaker::attest::dsse::{Envelope, IN_TOTO};
use caretaker::attest::predicate::{AuthorityRef, Verdict};
use caretaker::attest::{Role, Statement};
use caretaker::verifier::{VerifyError, answer_to};
use serde_json::{Value, json};

use super::attest::ledger::{Ledger, digest_of, forge, key, payload_of, seed};

/// Number 1 of the list: a sound statement of another kind, and one that is none, each in the place of the approval.
#[test]
fn a_denial_in_the_place_of_an_approval_is_told_from_garbage() {
    let decided = || {
        let mut ledger = Ledger::new();
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger
    };
    // A denial that verifies, named as the approval.
    let mut ledger = decided();
    ledger.decide(|decision| decision.verdict = Verdict::Deny);
    ledger.approval = ledger.decision;
    ledger.execute(|_| ());
    let words = ledger.assert_broken(3, Rule::Reference);
    assert!(words.starts_with("expected an approval"), "{words}");
    // The denial's words with the approval's type, signed by the approver.
    let mut ledger = decided();
    let decision = String::from_utf8(payload_of(&ledger.envelopes[1])).unwrap();
    let renamed = decision.replace("policy-decision:v1", "approval:v1");
    let named = ledger.push_raw(renamed.as_bytes(), Role::Approver);
    ledger.execute(|execution| execution.authority = Some(AuthorityRef::Approval(named)));
    ledger.assert_broken(2, Rule::Statement);
    ledger.assert_broken(3, Rule::Reference);
    // What is no statement at all, signed by the approver.
    let mut ledger = decided();
    let named = ledger.push_raw(b"{\"answer\":\"approve\"}", Role::Approver);
    ledger.execute(|execution| execution.authority = Some(AuthorityRef::Approval(named)));
    ledger.assert_broken(2, Rule::Statement);
    ledger.assert_broken(3, Rule::Reference);
}

/// Number 6: what is handed out are the bytes that were signed, however they spell the statement; each spelling is another document.
#[test]
fn what_is_used_is_what_was_verified() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    let compact = payload_of(&ledger.envelopes[0]);
    let words = String::from_utf8(compact.clone()).unwrap();
    let value: Value = serde_json::from_slice(&compact).unwrap();
    let spellings = [
        words.replace("\",\"", "\",\r\n\t\""),
        format!("\r\n{words}\r\n"),
        // Members in the order of their names.
        serde_json::to_string(&value).unwrap(),
    ];
    for spelling in spellings {
        assert_ne!(spelling, words);
        let bytes = forge(IN_TOTO, spelling.as_bytes(), &seed(Role::Proposer));
        let envelope = Envelope::parse(&bytes).unwrap();
        let verified = envelope.verify(IN_TOTO, &key(Role::Proposer).public());
        let verified = verified.unwrap();
        assert_eq!(verified.payload(), spelling.as_bytes());
        assert_eq!(verified.digest(), digest_of(&bytes));
        assert_ne!(verified.digest(), digest_of(&ledger.envelopes[0]));
        // The same words to a reader, and no stand-in for the document that the next event names.
        let mut swapped = ledger.clone();
        swapped.decide(|_| ());
        swapped.envelopes[0] = bytes;
        swapped.assert_broken(1, Rule::Prev);
    }
    let mut marked = Ledger::new();
    marked.push_raw(
        &[b"\xef\xbb\xbf".as_slice(), &compact].concat(),
        Role::Proposer,
    );
    marked.assert_broken(0, Rule::Statement);
}

/// Number 10: a right weak digest beside a wrong strong one, and a weak one alone.
#[test]
fn a_weak_digest_decides_nothing() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    let value: Value = serde_json::from_slice(&payload_of(&ledger.envelopes[0])).unwrap();
    let weak = json!("d41d8cd98f00b204e9800998ecf8427e");
    for (subject, digest) in [
        (0, json!({ "md5": weak })),
        (0, json!({ "sha256": "0".repeat(64), "md5": weak })),
        (
            1,
            json!({ "gitCommit": value["subject"][1]["digest"]["gitCommit"] }),
        ),
        (1, json!({})),
    ] {
        let mut bent = value.clone();
        bent["subject"][subject]["digest"] = digest;
        let bytes = serde_json::to_vec(&bent).unwrap();
        assert!(Statement::parse(&bytes).is_err(), "{bent}");
    }
}

/// Number 14: a fault of the verifier itself is an answer, and not a good one.
#[test]
fn a_verifier_that_fails_says_so() {
    let fails = || -> Result<_, VerifyError> { panic!("injected") };
    let (text, code) = answer_to(fails, false);
    assert_eq!(code, 3);
    assert!(text.ends_with("\nverdict: cannot-verify"), "{text}");
    let (text, code) = answer_to(fails, true);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &document["verdict"]), (3, &json!("cannot-verify")));
    assert_eq!(VerifyError::Fault.verdict(), Outcome::CannotVerify);
}
