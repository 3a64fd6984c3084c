//! The stage that is shown rests on what is signed.

use caretaker::attest::chain::Verdict as Outcome;
use caretaker::attest::predicate::{Answer, AuthorityRef, Class, FileList, Target, Verdict};
use caretaker::audit::Rule;
use caretaker::incident::Stage;

use super::super::attest::ledger::{Ledger, digest};
use super::{assert_failed, assert_valid, checked, stored};

const STAGES: [Stage; 12] = [
    Stage::Detected,
    Stage::Reproduced,
    Stage::Diagnosed,
    Stage::Blocked,
    Stage::Gated,
    Stage::Proposed,
    Stage::AwaitingApproval,
    Stage::Approved,
    Stage::Merging,
    Stage::Resolved,
    Stage::Escalated,
    Stage::Closed,
];

fn ledger(steps: &[fn(&mut Ledger)]) -> Ledger {
    let mut ledger = Ledger::new();
    for step in steps {
        step(&mut ledger);
    }
    ledger
}

const PROPOSE: fn(&mut Ledger) = |ledger| ledger.propose(|_| ());
const ASK: fn(&mut Ledger) = |ledger| ledger.decide(|_| ());
const FREE: fn(&mut Ledger) = |ledger| ledger.decide(|decision| decision.verdict = Verdict::Free);
const APPROVE: fn(&mut Ledger) = |ledger| ledger.answer(|_| ());
const REJECT: fn(&mut Ledger) = |ledger| ledger.answer(|approval| approval.answer = Answer::Reject);
const MERGE: fn(&mut Ledger) = |ledger| ledger.execute(|_| ());
const BLOCK: fn(&mut Ledger) = |ledger| ledger.escalate(|_| ());
const REPORT: fn(&mut Ledger) = |ledger| ledger.escalate(|escalation| escalation.blocks = false);
const GAP: fn(&mut Ledger) = Ledger::admit_gap;
const MERGE_FREE: fn(&mut Ledger) = |ledger| {
    let decision = ledger.decision.unwrap();
    ledger.execute(|execution| execution.authority = Some(AuthorityRef::Decision(decision)));
};
const SOMEBODY_MERGES: fn(&mut Ledger) = |ledger| {
    ledger.execute(|execution| (execution.by_us, execution.authority) = (false, None));
};
const DENY: fn(&mut Ledger) = |ledger| {
    ledger.decide(|decision| {
        decision.verdict = Verdict::Deny;
        decision.terminal = true;
        decision.class = Class::Infrastructure;
    });
};
const PROPOSE_FILES: fn(&mut Ledger) = |ledger| {
    ledger.propose(|proposal| {
        proposal.target = files();
        (proposal.title, proposal.body) = (None, None);
    });
};
const DENY_FILES: fn(&mut Ledger) = |ledger| {
    ledger.decide(|decision| {
        decision.target = files();
        decision.verdict = Verdict::Deny;
        decision.terminal = true;
        decision.class = Class::Infrastructure;
    });
};

fn files() -> Target {
    Target::Files(FileList {
        sha256: digest("paths").sha256,
        count: 1,
    })
}

/// Break: answer `None` from `misfit` for any one stage.
#[test]
fn a_ledger_fits_the_stages_it_can_be_at_and_no_other() {
    use Stage::{
        Approved, AwaitingApproval, Blocked, Closed, Escalated, Gated, Merging, Proposed, Resolved,
    };
    let cases: [(&[fn(&mut Ledger)], &[Stage]); 12] = [
        (&[PROPOSE, DENY], &[Blocked, Closed]),
        (&[PROPOSE_FILES, DENY_FILES, GAP], &[Blocked, Closed]),
        (
            &[PROPOSE, ASK],
            &[Gated, Proposed, AwaitingApproval, Closed],
        ),
        (
            &[PROPOSE, ASK, REJECT],
            &[Gated, Proposed, AwaitingApproval, Closed],
        ),
        (
            &[PROPOSE, FREE],
            &[Gated, Proposed, Approved, Merging, Closed],
        ),
        (
            &[PROPOSE, ASK, APPROVE],
            &[Gated, Proposed, AwaitingApproval, Approved, Merging, Closed],
        ),
        (&[PROPOSE, ASK, APPROVE, MERGE], &[Resolved]),
        (&[PROPOSE, FREE, MERGE_FREE, GAP], &[Resolved]),
        (
            &[PROPOSE, ASK, APPROVE, MERGE, REPORT],
            &[Resolved, Escalated],
        ),
        (
            &[PROPOSE, ASK, APPROVE, BLOCK],
            &[Gated, Proposed, AwaitingApproval, Escalated, Closed],
        ),
        (&[PROPOSE, ASK, SOMEBODY_MERGES], &[Closed]),
        (
            &[
                |ledger| ledger.escalate(|escalation| escalation.proposal = None),
                GAP,
            ],
            &[
                Stage::Detected,
                Stage::Reproduced,
                Stage::Diagnosed,
                Escalated,
                Closed,
            ],
        ),
    ];
    for (steps, fitting) in cases {
        let ledger = ledger(steps);
        for stage in STAGES {
            let stored = stored(&ledger, stage);
            if fitting.contains(&stage) {
                assert_valid(&ledger, &stored);
            } else {
                let end = (stored.rows.len() as u64, Rule::Stage);
                let words = assert_failed(&ledger, &stored, Outcome::Invalid, end);
                assert!(words.contains(&format!("stage {stage}: ")), "{words}");
            }
        }
    }
}

#[test]
fn while_work_goes_on_a_draft_may_wait_for_its_signature() {
    let proposed = ledger(&[PROPOSE]);
    let mut waiting = stored(&proposed, Stage::Gated);
    waiting.drafted = 2;
    assert_valid(&proposed, &waiting);
    waiting.drafted = 1;
    assert_failed(&proposed, &waiting, Outcome::Invalid, (1, Rule::Stage));

    // The answer is drafted, not yet signed: not yet approved, whatever a table says.
    let asked = ledger(&[PROPOSE, ASK]);
    let mut waiting = stored(&asked, Stage::AwaitingApproval);
    waiting.drafted = 3;
    assert_valid(&asked, &waiting);
    waiting.stage = Stage::Approved;
    assert_failed(&asked, &waiting, Outcome::Invalid, (2, Rule::Stage));

    // Merged, and the execution is not signed yet.
    let approved = ledger(&[PROPOSE, ASK, APPROVE]);
    let mut waiting = stored(&approved, Stage::Merging);
    waiting.drafted = 4;
    assert_valid(&approved, &waiting);
}

#[test]
fn at_the_end_nothing_waits_for_a_signature() {
    // Refused, and the decision is not signed yet: soon valid, not valid now.
    let proposed = ledger(&[PROPOSE]);
    let mut waiting = stored(&proposed, Stage::Blocked);
    waiting.drafted = 2;
    // Break: drop the second branch of `check_drafts`.
    assert_failed(
        &proposed,
        &waiting,
        Outcome::CannotVerify,
        (1, Rule::Drafts),
    );
    let approved = ledger(&[PROPOSE, ASK, APPROVE]);
    for stage in [Stage::Escalated, Stage::Closed] {
        let mut waiting = stored(&approved, stage);
        waiting.drafted = 4;
        assert_failed(
            &approved,
            &waiting,
            Outcome::CannotVerify,
            (3, Rule::Drafts),
        );
    }
    let mut waiting = stored(&approved, Stage::Resolved);
    waiting.drafted = 4;
    assert_failed(&approved, &waiting, Outcome::Invalid, (3, Rule::Drafts));
}

#[test]
fn an_incident_without_events_is_neither_blocked_nor_approved_nor_resolved() {
    let nothing = Ledger::new();
    for stage in [
        Stage::Blocked,
        Stage::Approved,
        Stage::Merging,
        Stage::Resolved,
    ] {
        assert_failed(
            &nothing,
            &stored(&nothing, stage),
            Outcome::Invalid,
            (0, Rule::Stage),
        );
    }
}

#[test]
fn what_is_not_authentic_is_not_held_against_the_stage() {
    let merged = Ledger::merged();
    let mut stored = stored(&merged, Stage::Resolved);
    stored.rows[3].envelope[40] ^= 1;
    let report = checked(&merged, &stored);
    assert_eq!(report.verdict, Outcome::Invalid);
    assert!(
        report
            .failures
            .iter()
            .all(|failure| failure.rule != Rule::Stage)
    );
}
