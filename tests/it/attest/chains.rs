//! Chains as bytes: whatever is edited, moved, left out, repeated or signed by another role shows.

use caretaker::attest::chain::{Expectation, Rule, Verdict};
use caretaker::attest::dsse::IN_TOTO;
use caretaker::attest::{Role, verify_chain};
use proptest::prelude::*;

use super::ledger::{Ledger, forge, payload_of, seed};

#[test]
fn an_incident_that_was_proposed_approved_and_merged_verifies() {
    let ledger = Ledger::merged();
    let report = ledger.verify();
    assert_eq!(report.verdict, Verdict::Valid, "{report:#?}");
    let kinds: Vec<String> = report
        .events
        .iter()
        .map(|event| format!("{} by {}", event.kind.unwrap(), event.role.unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            "proposal by proposer",
            "policy-decision by policy",
            "approval by approver",
            "execution by executor"
        ]
    );
}

#[test]
fn nothing_to_verify_is_never_valid() {
    let report = verify_chain(
        &Ledger::new().trust,
        &Expectation::default(),
        Vec::<Vec<u8>>::new(),
    );
    // Break: drop the `position == 0` check in `Walk::finish`.
    assert_eq!(report.verdict, Verdict::CannotVerify);
    assert_eq!(report.failures[0].rule, Rule::Empty);
}

#[test]
fn the_report_is_the_json_of_the_interface() {
    let mut ledger = Ledger::merged();
    ledger.envelopes.remove(1);
    let json = serde_json::to_value(ledger.verify()).unwrap();
    assert_eq!(json["verdict"], "invalid");
    assert_eq!(json["events"][0]["type"], "proposal");
    assert_eq!(json["events"][0]["role"], "proposer");
    assert_eq!(json["events"][0]["verdict"], "valid");
    assert!(
        json["events"][0]["keyid"]
            .as_str()
            .unwrap()
            .starts_with("SHA256:")
    );
    assert!(json["events"][0]["reason"].is_null());
    assert_eq!(json["failures"][0]["rule"], "seq");
    assert_eq!(json["failures"][0]["expected"], "1");
    assert_eq!(json["failures"][0]["found"], "2");
}

/// Every position of one envelope, so that no byte is left out by chance.
#[test]
fn no_byte_of_an_envelope_can_be_changed() {
    let whole = Ledger::merged();
    for at in 0..whole.envelopes[1].len() {
        let mut ledger = whole.clone();
        ledger.envelopes[1][at] ^= 1;
        // Ours alone; the twin is asked about bytes by chance, below.
        let report = verify_chain(&ledger.trust, &whole.expectation(), &ledger.envelopes);
        assert_eq!(report.verdict, Verdict::Invalid, "byte {at}");
        assert_ne!(report.events[1].verdict, Verdict::Valid, "byte {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    // Break: return `Ok` from `PublicKey::verifies` regardless, or drop the byte comparison in `SignedDocument::parse`.
    #[test]
    fn any_edit_of_any_byte_shows_at_its_event(event in 0_usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let whole = Ledger::merged();
        let mut ledger = whole.clone();
        let at = at.index(ledger.envelopes[event].len());
        prop_assume!(ledger.envelopes[event][at] != byte);
        ledger.envelopes[event][at] = byte;
        let report = ledger.verify_as(&whole.expectation());
        prop_assert_eq!(report.verdict, Verdict::Invalid);
        prop_assert_ne!(report.events[event].verdict, Verdict::Valid);
        // The events before it stay what they were.
        prop_assert!(report.events[..event].iter().all(|event| event.verdict == Verdict::Valid));
    }

    #[test]
    fn any_bytes_put_in_or_taken_out_show(event in 0_usize..4, at in any::<prop::sample::Index>(), put in proptest::collection::vec(any::<u8>(), 0..4)) {
        let whole = Ledger::merged();
        let mut ledger = whole.clone();
        let at = at.index(ledger.envelopes[event].len());
        if put.is_empty() {
            ledger.envelopes[event].remove(at);
        } else {
            ledger.envelopes[event].splice(at..at, put);
        }
        prop_assert_eq!(ledger.verify_as(&whole.expectation()).verdict, Verdict::Invalid);
    }

    // Break: drop the comparison of `block.seq` or of `prev` in `Walk::check_block` (one alone still holds).
    #[test]
    fn two_events_cannot_change_places(one in 0_usize..4, other in 0_usize..4) {
        prop_assume!(one != other);
        let mut ledger = Ledger::merged();
        ledger.envelopes.swap(one, other);
        prop_assert_eq!(ledger.verify().verdict, Verdict::Invalid);
    }

    // Break (for the last event): drop the comparison with the expected head in `Walk::finish`.
    #[test]
    fn no_event_can_be_left_out(event in 0_usize..4) {
        let whole = Ledger::merged();
        let mut ledger = whole.clone();
        ledger.envelopes.remove(event);
        prop_assert_eq!(ledger.verify_as(&whole.expectation()).verdict, Verdict::Invalid);
    }

    #[test]
    fn no_event_can_be_repeated(event in 0_usize..4, at in 0_usize..=4) {
        let whole = Ledger::merged();
        let mut ledger = whole.clone();
        let again = ledger.envelopes[event].clone();
        ledger.envelopes.insert(at, again);
        prop_assert_eq!(ledger.verify().verdict, Verdict::Invalid);
    }

    // Break: drop the comparison of roles in `authenticate`.
    #[test]
    fn no_other_role_can_say_it(event in 0_usize..4, other in 0_usize..4) {
        prop_assume!(event != other);
        let mut ledger = Ledger::merged();
        let payload = payload_of(&ledger.envelopes[event]);
        ledger.envelopes[event] = forge(IN_TOTO, &payload, &seed(Role::ALL[other]));
        ledger.assert_broken(event as u64, Rule::Role);
    }

    #[test]
    fn arbitrary_bytes_are_refused_and_never_crash(bytes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..4)) {
        let ledger = Ledger { envelopes: bytes.clone(), ..Ledger::new() };
        let report = ledger.verify_as(&Expectation::default());
        prop_assert_ne!(report.verdict, Verdict::Valid);
        prop_assert_eq!(report.events.len(), bytes.len());
    }
}

#[test]
fn a_key_that_the_trust_root_does_not_list_counts_for_nothing() {
    let mut ledger = Ledger::merged();
    let payload = payload_of(&ledger.envelopes[2]);
    ledger.envelopes[2] = forge(IN_TOTO, &payload, &[77; 32]);
    ledger.assert_broken(2, Rule::Key);
}

#[test]
fn the_same_statement_signed_as_another_payload_type_counts_for_nothing() {
    for payload_type in [
        "application/json",
        "application/vnd.caretaker.trust-root+json",
    ] {
        let mut ledger = Ledger::merged();
        let payload = payload_of(&ledger.envelopes[2]);
        ledger.envelopes[2] = forge(payload_type, &payload, &seed(Role::Approver));
        // Break: verify with `self.payload_type` in place of the expected type in `verify_threshold`.
        ledger.assert_broken(2, Rule::Signature);
    }
}

#[test]
fn a_whole_chain_of_another_incident_or_project_is_noticed() {
    let mut other = Ledger::merged();
    let mine = Ledger::merged();
    other.incident = caretaker::id::IncidentId::new(super::ledger::NOW, [8; 10]);
    let report = verify_chain(&mine.trust, &other.expectation(), &mine.envelopes);
    assert!(
        report
            .failures
            .iter()
            .any(|failure| failure.rule == Rule::Incident)
    );
    let mut expected = mine.expectation();
    expected.project.as_mut().unwrap().repository_id = super::ledger::label("4712");
    let report = verify_chain(&mine.trust, &expected, &mine.envelopes);
    assert!(
        report
            .failures
            .iter()
            .any(|failure| failure.rule == Rule::Project)
    );
}

#[test]
fn after_an_unreadable_event_the_next_one_cannot_be_linked() {
    let mut ledger = Ledger::merged();
    ledger.envelopes[1] = b"not an envelope".to_vec();
    let report = ledger.verify();
    assert_eq!(report.verdict, Verdict::Invalid);
    let prev = report
        .failures
        .iter()
        .find(|failure| failure.rule == Rule::Prev)
        .unwrap();
    assert_eq!(
        (prev.seq, prev.expected.as_str()),
        (2, "an event before that can be read")
    );
}

#[test]
fn what_a_verifier_prints_cannot_move_the_cursor() {
    let mut ledger = Ledger::merged();
    ledger.envelopes[1] = forge("text/\u{1b}[2J\u{202e}", b"x", &seed(Role::Policy));
    let words = serde_json::to_string(&ledger.verify()).unwrap();
    assert!(!words.contains('\u{1b}') && !words.contains('\u{202e}'));
    let failure = ledger.assert_broken(1, Rule::Signature);
    assert!(failure.contains("\\u{1b}[2J\\u{202e}"), "{failure}");
}

/// A verifier without the version of the trust root that an event names cannot tell whether it counts; what refers to it is
/// not wrong for that.
#[test]
fn what_refers_to_an_event_that_cannot_be_verified_is_not_called_wrong() {
    let mut ledger = Ledger::new();
    ledger.propose(|proposal| proposal.event.trust_root.version = 2);
    ledger.decide(|_| ());
    let report = ledger.verify();
    assert_eq!(report.verdict, Verdict::CannotVerify, "{report:#?}");
    let rules: Vec<_> = report.failures.iter().map(|failure| failure.rule).collect();
    assert_eq!(rules, [Rule::TrustRoot, Rule::Reference]);
}
