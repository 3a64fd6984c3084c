//! The authority to merge: only what a ledger that verifies says, and only for exactly what it says.

use caretaker::approve::{Authority, AuthorityError, AuthoritySource, Binding, MergeMethod};
use caretaker::attest::Expectation;
use caretaker::attest::chain::Verdict as Outcome;
use caretaker::attest::predicate::{
    self, Answer, AuthorityRef, PolicyDecision, Proposal, Target, Verdict,
};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, RepoPath, Sha256Digest, Side,
};

use super::attest::ledger::{Ledger, NOW, digest, label, oid, text};

fn change() -> ChangeDocument {
    let entry = |path: &str, after| FileChange {
        path: RepoPath::from_bytes(path.as_bytes()).unwrap(),
        old: Side {
            mode: Mode::Regular,
            oid: oid('1'),
        },
        new: Side {
            mode: Mode::Regular,
            oid: oid(after),
        },
    };
    let entries = vec![entry("src/sum.rs", '2'), entry("tests/sum.rs", '3')];
    ChangeDocument::from(&ChangeSet::new(ObjectFormat::Sha1, entries).unwrap())
}

fn binding() -> Binding {
    Binding {
        repository_id: "4711".to_owned(),
        host: "github.com".to_owned(),
        pull_request: 12,
        base_ref: "main".to_owned(),
        merge_base: oid('b'),
        head_ref: "caretaker/fix-sum".to_owned(),
        head_commit: oid('e'),
        head_tree: oid('d'),
        change: change(),
        merge_method: MergeMethod::Squash,
        title: "Fix the sum".to_owned(),
        body: "It was off by one.".to_owned(),
        expires_at: NOW.plus_seconds(7_200),
    }
}

fn fit(target: &mut Target) {
    let Target::Commit { change: found, .. } = target else {
        unreachable!()
    };
    (found.sha256, found.count) = (change().digest, 2);
}

fn propose(ledger: &mut Ledger, bend: impl FnOnce(&mut Proposal)) {
    ledger.propose(|proposal| {
        fit(&mut proposal.target);
        bend(proposal);
    });
}

fn decide(ledger: &mut Ledger, verdict: Verdict) {
    decide_with(ledger, verdict, |_| ());
}

fn decide_with(ledger: &mut Ledger, verdict: Verdict, bend: impl FnOnce(&mut PolicyDecision)) {
    ledger.decide(|decision| {
        fit(&mut decision.target);
        decision.verdict = verdict;
        bend(decision);
    });
}

fn answer(ledger: &mut Ledger, bend: impl FnOnce(&mut predicate::Approval)) {
    ledger.answer(|approval| {
        approval.binding.change = change().digest.into();
        approval.binding.sha256 = binding().digest();
        bend(approval);
    });
}

/// Proposed and put to a person.
fn asked() -> Ledger {
    let mut ledger = Ledger::new();
    propose(&mut ledger, |_| ());
    decide(&mut ledger, Verdict::Approve);
    ledger
}

fn approved() -> Ledger {
    let mut ledger = asked();
    answer(&mut ledger, |_| ());
    ledger
}

fn free() -> Ledger {
    let mut ledger = Ledger::new();
    propose(&mut ledger, |_| ());
    decide(&mut ledger, Verdict::Free);
    ledger
}

fn execute(ledger: &mut Ledger, authority: Option<AuthorityRef>) {
    ledger.execute(|execution| {
        execution.approved_change = Some(change().digest.into());
        execution.observed_change = change().digest.into();
        execution.by_us = authority.is_some();
        execution.authority = authority;
    });
}

fn authority(ledger: &Ledger, binding: &Binding) -> Result<Authority, AuthorityError> {
    let expected = ledger.expectation();
    Authority::from_ledger(&ledger.trust, &expected, &ledger.envelopes, binding)
}

#[track_caller]
fn refusal(ledger: &Ledger) -> AuthorityError {
    // What refuses is the story, not that it does not verify.
    ledger.assert_valid();
    authority(ledger, &binding()).unwrap_err()
}

#[test]
fn a_signed_approval_gives_authority_for_exactly_its_binding() {
    let ledger = approved();
    let authority = authority(&ledger, &binding()).unwrap();
    assert_eq!(authority.binding_digest(), binding().digest());
    assert_eq!(authority.proposal(), ledger.proposal.unwrap().sha256);
    let approval = ledger.approval.unwrap().sha256;
    assert_eq!(*authority.source(), AuthoritySource::Approval(approval));
}

#[test]
fn a_signed_decision_that_the_change_is_free_gives_authority_for_that_change() {
    let ledger = free();
    let authority = authority(&ledger, &binding()).unwrap();
    let decision = ledger.decision.unwrap().sha256;
    assert_eq!(*authority.source(), AuthoritySource::FreeDecision(decision));
    assert_eq!(authority.binding_digest(), binding().digest());
}

#[test]
fn an_approval_is_for_no_other_binding_in_any_member() {
    type Bend = fn(&mut Binding);
    let cases: [(&str, Bend); 13] = [
        ("repository_id", |b| b.repository_id = "4712".to_owned()),
        ("host", |b| b.host = "github.example".to_owned()),
        ("pull_request", |b| b.pull_request = 13),
        ("base_ref", |b| b.base_ref = "release".to_owned()),
        ("merge_base", |b| b.merge_base = oid('f')),
        ("head_ref", |b| b.head_ref = "caretaker/other".to_owned()),
        ("head_commit", |b| b.head_commit = oid('f')),
        ("head_tree", |b| b.head_tree = oid('f')),
        ("change.digest", |b| {
            let mut entries = ChangeSet::try_from(&b.change).unwrap().entries().to_vec();
            entries[0].new.oid = oid('9');
            let set = ChangeSet::new(ObjectFormat::Sha1, entries).unwrap();
            b.change = ChangeDocument::from(&set);
        }),
        ("merge_method", |b| b.merge_method = MergeMethod::Merge),
        ("title", |b| b.title.push('!')),
        ("body", |b| b.body.push('!')),
        ("expires_at", |b| b.expires_at.0 += 1),
    ];
    let ledger = approved();
    for (named, bend) in cases {
        let mut other = binding();
        bend(&mut other);
        // Break: return no terms from `approved`.
        match authority(&ledger, &other) {
            Err(AuthorityError::OtherBinding { member, .. }) => assert_eq!(member, named),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn every_signed_member_has_to_equal_the_binding_not_the_digest_alone() {
    type Bend = fn(&mut predicate::BoundChange);
    // The others the chain refuses already, because they contradict the proposal.
    let cases: [(&str, Bend); 7] = [
        ("host", |b| b.host = label("github.example")),
        ("pull_request", |b| b.pull_request = 13),
        ("merge_base", |b| b.merge_base = oid('f')),
        ("head_ref", |b| b.head_ref = text("caretaker/other")),
        ("merge_method", |b| {
            b.merge_method = predicate::MergeMethod::Rebase;
        }),
        ("expires_at", |b| b.expires_at.0 += 1),
        // Break: drop the last term of `approved`.
        ("binding", |b| {
            b.sha256 = Sha256Digest::of(b"another binding");
        }),
    ];
    for (named, bend) in cases {
        let mut ledger = asked();
        answer(&mut ledger, |approval| bend(&mut approval.binding));
        match refusal(&ledger) {
            AuthorityError::OtherBinding { member, .. } => assert_eq!(member, named),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn a_free_decision_is_for_no_other_change_head_or_landing() {
    type Bend = fn(&mut Binding);
    let cases: [(&str, Bend); 8] = [
        ("repository_id", |b| b.repository_id = "4712".to_owned()),
        ("head_commit", |b| b.head_commit = oid('f')),
        ("head_tree", |b| b.head_tree = oid('f')),
        ("change.count", |b| {
            let mut entries = ChangeSet::try_from(&b.change).unwrap().entries().to_vec();
            entries.pop();
            let set = ChangeSet::new(ObjectFormat::Sha1, entries).unwrap();
            b.change = ChangeDocument::from(&set);
        }),
        ("base_ref", |b| b.base_ref = "release".to_owned()),
        ("merge_base", |b| b.merge_base = oid('f')),
        ("title", |b| b.title.push('!')),
        ("body", |b| b.body.push('!')),
    ];
    let ledger = free();
    for (named, bend) in cases {
        let mut other = binding();
        bend(&mut other);
        // Break: return no terms from `free`.
        match authority(&ledger, &other) {
            Err(AuthorityError::OtherBinding { member, .. }) => assert_eq!(member, named),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn a_binding_whose_entries_are_not_its_digest_gets_nothing() {
    for ledger in [approved(), free()] {
        let mut forged = binding();
        forged.change.entries[0].new_oid = oid('9');
        // Break: drop the `ChangeSet::try_from` in `from_ledger`; a free change then lands with other entries.
        assert!(matches!(
            authority(&ledger, &forged),
            Err(AuthorityError::Binding(_))
        ));
    }
}

#[test]
fn a_rejection_gives_nothing_also_after_an_approval() {
    let mut ledger = asked();
    answer(&mut ledger, |approval| approval.answer = Answer::Reject);
    assert!(matches!(refusal(&ledger), AuthorityError::Rejected { .. }));
    let mut ledger = approved();
    answer(&mut ledger, |approval| approval.answer = Answer::Reject);
    // Break: keep the first answer in `Standing::take`.
    assert!(matches!(refusal(&ledger), AuthorityError::Rejected { .. }));
}

#[test]
fn a_blocking_escalation_voids_what_came_before_it_and_nothing_after() {
    for mut ledger in [approved(), free()] {
        ledger.escalate(|escalation| escalation.blocks = false);
        assert!(authority(&ledger, &binding()).is_ok());
        ledger.escalate(|_| ());
        // Break: drop `void = true` in `Standing::take`.
        assert_eq!(refusal(&ledger), AuthorityError::Voided);
    }
    let mut ledger = approved();
    ledger.escalate(|_| ());
    answer(&mut ledger, |_| ());
    let again = ledger.approval.unwrap().sha256;
    assert_eq!(
        *authority(&ledger, &binding()).unwrap().source(),
        AuthoritySource::Approval(again)
    );
}

#[test]
fn nobody_asked_nobody_answered_or_denied_gives_nothing() {
    assert_eq!(refusal(&asked()), AuthorityError::Missing);
    let mut ledger = Ledger::new();
    propose(&mut ledger, |_| ());
    assert_eq!(refusal(&ledger), AuthorityError::Missing);
    decide_with(&mut ledger, Verdict::Deny, |decision| {
        decision.terminal = true;
    });
    assert_eq!(refusal(&ledger), AuthorityError::Missing);
}

#[test]
fn a_newer_proposal_supersedes_what_was_allowed() {
    for mut ledger in [approved(), free()] {
        propose(&mut ledger, |_| ());
        // Break: keep decision and answer in `Standing::take` when a proposal comes.
        assert_eq!(refusal(&ledger), AuthorityError::Missing);
    }
}

#[test]
fn what_landed_is_not_merged_again() {
    let mut by_us = approved();
    let approval = by_us.approval.unwrap();
    execute(&mut by_us, Some(AuthorityRef::Approval(approval)));
    let mut by_somebody = approved();
    execute(&mut by_somebody, None);
    let mut freely = free();
    let decision = freely.decision.unwrap();
    execute(&mut freely, Some(AuthorityRef::Decision(decision)));
    for ledger in [by_us, by_somebody, freely] {
        assert!(matches!(refusal(&ledger), AuthorityError::Executed { .. }));
    }
}

#[test]
fn a_ledger_with_any_failure_gives_nothing() {
    let whole = approved();
    let refused = |ledger: &Ledger, expected: &Expectation| {
        let given = Authority::from_ledger(&ledger.trust, expected, &ledger.envelopes, &binding());
        match given {
            Err(AuthorityError::Ledger { verdict, failure }) => {
                assert_ne!(verdict, Outcome::Valid);
                assert!(!failure.is_empty());
            }
            other => panic!("{other:?}"),
        }
    };
    for event in 0..3 {
        let mut ledger = whole.clone();
        ledger.envelopes[event][100] ^= 1;
        // Break: drop `check_sound`.
        refused(&ledger, &whole.expectation());
        let mut ledger = whole.clone();
        ledger.envelopes.remove(event);
        refused(&ledger, &whole.expectation());
    }
    let nothing = Ledger::new();
    refused(&nothing, &whole.expectation());
    let mut other = whole.expectation();
    other.project.as_mut().unwrap().repository_id = label("4712");
    refused(&whole, &other);
    let mut contradicting = asked();
    answer(&mut contradicting, |approval| {
        approval.binding.title = digest("Another title");
    });
    refused(&contradicting, &contradicting.expectation());
}

/// A rejection cut off would leave the approval before it as the last word.
#[test]
fn a_ledger_whose_end_is_not_known_gives_nothing() {
    let whole = approved();
    for forget in [
        (|expected: &mut Expectation| expected.head = None) as fn(&mut Expectation),
        |expected| expected.incident = None,
    ] {
        let mut expected = whole.expectation();
        forget(&mut expected);
        let given = Authority::from_ledger(&whole.trust, &expected, &whole.envelopes, &binding());
        assert_eq!(given, Err(AuthorityError::EndUnknown));
    }
    let mut rejected = whole.clone();
    answer(&mut rejected, |approval| approval.answer = Answer::Reject);
    let expected = rejected.expectation();
    rejected.envelopes.pop();
    let given = Authority::from_ledger(&rejected.trust, &expected, &rejected.envelopes, &binding());
    assert!(matches!(given, Err(AuthorityError::Ledger { .. })));
}
