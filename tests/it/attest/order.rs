//! What events may follow each other, and what they may refer to. Every statement here is signed by the right key.

use caretaker::attest::chain::{Rule, Verdict as Outcome};
use caretaker::attest::predicate::{
    Answer, AuthorityRef, Class, FileList, MergeMethod, Target, Verdict,
};

use super::ledger::{Ledger, digest, oid, text};

fn files() -> Target {
    Target::Files(FileList {
        sha256: digest("paths").sha256,
        count: 1,
    })
}

/// Proposed and denied before anything was committed.
fn denied() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.propose(|proposal| {
        proposal.target = files();
        (proposal.title, proposal.body) = (None, None);
    });
    ledger.decide(|decision| {
        decision.target = files();
        decision.verdict = Verdict::Deny;
        decision.terminal = true;
        decision.class = Class::Infrastructure;
    });
    ledger
}

/// Proposed, decided to be free, not yet merged.
fn free() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.verdict = Verdict::Free);
    ledger
}

/// Proposed, decided to need approval, and approved.
fn approved() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger
}

fn execute_free(ledger: &mut Ledger) {
    let decision = ledger.decision.unwrap();
    ledger.execute(|execution| execution.authority = Some(AuthorityRef::Decision(decision)));
}

#[test]
fn a_denied_incident_has_exactly_two_events() {
    let mut ledger = denied();
    ledger.assert_valid();
    assert_eq!(ledger.envelopes.len(), 2);
    ledger.admit_gap();
    ledger.assert_valid();
    ledger.propose(|_| ());
    ledger.assert_broken(3, Rule::Order);
}

#[test]
fn a_free_change_needs_no_approval() {
    let mut ledger = free();
    execute_free(&mut ledger);
    ledger.assert_valid();
}

#[test]
fn no_merge_of_ours_without_an_authority() {
    // A decision that asks for approval is none.
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    execute_free(&mut ledger);
    // Break: drop the comparison with `Verdict::Free` in `check_free_decision`.
    ledger.assert_broken(2, Rule::Order);

    // An approval that is not in the chain is none.
    let mut ledger = free();
    ledger.execute(|_| ());
    ledger.assert_broken(2, Rule::Reference);

    // A rejection is none.
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|approval| approval.answer = Answer::Reject);
    ledger.execute(|_| ());
    ledger.assert_broken(3, Rule::Order);

    // A policy decision offered where an approval is expected is none, and the reverse.
    let mut ledger = approved();
    ledger.approval = ledger.decision;
    ledger.execute(|_| ());
    ledger.assert_broken(3, Rule::Reference);
    let mut ledger = approved();
    ledger.decision = ledger.approval;
    execute_free(&mut ledger);
    ledger.assert_broken(3, Rule::Reference);
}

#[test]
fn deny_then_allow_does_not_allow() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.verdict = Verdict::Deny);
    ledger.decide(|decision| decision.verdict = Verdict::Free);
    // Break: drop the `decided` check in `Story::decide`.
    ledger.assert_broken(2, Rule::Order);
    // The second decision gives no authority either.
    execute_free(&mut ledger);
    ledger.assert_broken(3, Rule::Order);
}

#[test]
fn a_denied_proposal_can_be_followed_by_another_one() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.verdict = Verdict::Deny);
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    ledger.assert_valid();
}

#[test]
fn only_the_newest_proposal_is_decided_answered_and_merged() {
    let mut ledger = approved();
    let (proposal, approval) = (ledger.proposal, ledger.approval);
    ledger.propose(|_| ());
    (ledger.proposal, ledger.approval) = (proposal, approval);
    ledger.execute(|_| ());
    ledger.assert_broken(4, Rule::Order);

    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    let superseded = ledger.proposal;
    ledger.propose(|_| ());
    ledger.proposal = superseded;
    ledger.decide(|_| ());
    ledger.assert_broken(2, Rule::Order);
}

#[test]
fn the_decision_is_about_what_was_proposed() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| {
        let Target::Commit { change, .. } = &mut decision.target else {
            unreachable!()
        };
        change.sha256 = digest("another change").sha256;
    });
    ledger.assert_broken(1, Rule::Change);

    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.proposal = digest("elsewhere"));
    ledger.assert_broken(1, Rule::Reference);
}

#[test]
fn the_approval_is_of_what_was_proposed_and_decided() {
    type Bend = fn(&mut caretaker::attest::predicate::Approval);
    let cases: [(Bend, Rule); 11] = [
        (
            |a| a.binding.change = digest("another change"),
            Rule::Change,
        ),
        (|a| a.binding.count = 3, Rule::Change),
        (|a| a.binding.head_commit = oid('f'), Rule::Change),
        (|a| a.binding.head_tree = oid('f'), Rule::Change),
        (|a| a.binding.base_ref = text("release"), Rule::Change),
        (|a| a.binding.title = digest("Another title"), Rule::Change),
        (|a| a.binding.body = digest("Another body"), Rule::Change),
        (
            |a| a.binding.repository_id = super::ledger::label("4712"),
            Rule::Project,
        ),
        (|a| a.proposal = digest("elsewhere"), Rule::Reference),
        (|a| a.decision = digest("elsewhere"), Rule::Reference),
        (|a| a.decision = a.proposal, Rule::Reference),
    ];
    for (bend, rule) in cases {
        let mut ledger = Ledger::new();
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(bend);
        // Break: return no refusals from `check_binding`.
        ledger.assert_broken(2, rule);
        // An approval that does not fit gives no authority.
        ledger.execute(|_| ());
        ledger.assert_broken(3, Rule::Order);
    }
}

#[test]
fn nothing_is_approved_that_was_denied() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.verdict = Verdict::Deny);
    ledger.answer(|_| ());
    ledger.assert_broken(2, Rule::Order);
}

#[test]
fn a_rejection_is_final_and_a_later_answer_replaces_an_approval() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|_| ());
    ledger.answer(|approval| approval.answer = Answer::Reject);
    ledger.answer(|_| ());
    ledger.assert_broken(3, Rule::Order);

    let mut ledger = approved();
    let first = ledger.approval;
    ledger.answer(|approval| approval.answer = Answer::Reject);
    ledger.assert_valid();
    ledger.approval = first;
    ledger.execute(|_| ());
    // Break: drop the comparison with the last answer in `check_approval`.
    ledger.assert_broken(4, Rule::Order);
}

#[test]
fn what_landed_is_what_was_approved() {
    let mut ledger = approved();
    ledger.execute(|execution| {
        execution.approved_change = Some(digest("another change"));
        execution.observed_change = digest("another change");
    });
    // Break: drop the comparison of `observed_change` in `check_approval` and that of `approved` in `execute`.
    ledger.assert_broken(3, Rule::Change);

    let mut ledger = free();
    let decision = ledger.decision.unwrap();
    ledger.execute(|execution| {
        execution.authority = Some(AuthorityRef::Decision(decision));
        execution.approved_change = Some(digest("another change"));
        execution.observed_change = digest("another change");
    });
    ledger.assert_broken(2, Rule::Change);

    let mut ledger = approved();
    ledger.execute(|execution| execution.method = MergeMethod::Rebase);
    ledger.assert_broken(3, Rule::Change);
    let mut ledger = approved();
    ledger.execute(|execution| execution.pull_request = 13);
    ledger.assert_broken(3, Rule::Change);
}

#[test]
fn nothing_but_escalations_and_gaps_follows_an_execution() {
    let mut ledger = Ledger::merged();
    ledger.escalate(|escalation| escalation.blocks = false);
    ledger.admit_gap();
    ledger.assert_valid();
    assert_eq!(ledger.verify().gaps, [5]);
    ledger.execute(|_| ());
    ledger.assert_broken(6, Rule::Order);
    let mut ledger = Ledger::merged();
    ledger.propose(|_| ());
    ledger.assert_broken(4, Rule::Order);
}

#[test]
fn a_blocking_escalation_voids_what_was_allowed_before_it() {
    let mut ledger = approved();
    ledger.escalate(|_| ());
    ledger.assert_valid();
    ledger.execute(|_| ());
    // Break: drop `answered.void = true` in `Story::escalate`.
    ledger.assert_broken(4, Rule::Order);

    let mut ledger = free();
    ledger.escalate(|_| ());
    execute_free(&mut ledger);
    ledger.assert_broken(3, Rule::Order);

    // Asked again, the person may approve again.
    let mut ledger = approved();
    ledger.escalate(|_| ());
    ledger.answer(|_| ());
    ledger.execute(|_| ());
    ledger.assert_valid();

    // One that only reports voids nothing.
    let mut ledger = approved();
    ledger.escalate(|escalation| escalation.blocks = false);
    ledger.execute(|_| ());
    ledger.assert_valid();
}

#[test]
fn a_merge_by_somebody_else_is_recorded_without_an_authority() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.execute(|execution| {
        execution.by_us = false;
        execution.authority = None;
        execution.observed_change = digest("whatever they merged");
    });
    ledger.assert_valid();
}

#[test]
fn an_incident_can_begin_and_end_with_an_escalation() {
    let mut ledger = Ledger::new();
    ledger.escalate(|escalation| {
        escalation.proposal = None;
        (escalation.expected, escalation.observed) = (None, None);
    });
    ledger.assert_valid();
    let mut ledger = Ledger::new();
    ledger.escalate(|escalation| escalation.proposal = Some(digest("elsewhere")));
    ledger.assert_broken(0, Rule::Reference);
}

#[test]
fn an_event_id_occurs_once() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    let first = ledger.block(caretaker::attest::Role::Proposer).id;
    ledger.decide(|decision| decision.event.id = first.clone());
    ledger.answer(|approval| approval.event.id = first);
    ledger.assert_broken(2, Rule::EventId);
}

#[test]
fn the_place_of_an_event_is_checked_against_where_it_is() {
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.event.seq = 2);
    ledger.assert_broken(1, Rule::Seq);
    let mut ledger = Ledger::new();
    ledger.propose(|_| ());
    ledger.decide(|decision| decision.event.prev = Some(digest("elsewhere")));
    let words = ledger.assert_broken(1, Rule::Prev);
    assert!(
        words.contains(&digest("elsewhere").sha256.to_string()),
        "{words}"
    );
    assert_eq!(ledger.verify().events[0].verdict, Outcome::Valid);
}
