//! What a session lists of its calls is followed: each document, by policy, of this session, in order.

use caretaker::attest::chain::Verdict;
use caretaker::attest::dsse::IN_TOTO;
use caretaker::attest::predicate::{GateOutcome, IntentScore, ScoreAnswer};
use caretaker::attest::{Evidence, Role, Statement};
use caretaker::audit::{KeptEvidence, Rule};
use caretaker::change::Sha256Digest;
use caretaker::incident::Stage;

use super::super::attest::examples::{gate_outcome, gated_session, intent_score};
use super::super::attest::ledger::{Ledger, forge, label, payload_of, seed};
use super::bundle::{check, contents, ledger, trust_root};
use super::{assert_failed, assert_valid, kept, stored};

fn signed(evidence: Evidence) -> Vec<u8> {
    let statement = Statement::evidence(evidence.subjects().unwrap(), evidence).unwrap();
    forge(IN_TOTO, &statement.draft().unwrap(), &seed(Role::Policy))
}

fn score(bend: impl FnOnce(&mut IntentScore)) -> Vec<u8> {
    let mut score = intent_score();
    score.session = label("inc-1-fix");
    bend(&mut score);
    signed(Evidence::IntentScore(Box::new(score)))
}

fn outcome(bend: impl FnOnce(&mut GateOutcome)) -> Vec<u8> {
    let mut outcome = gate_outcome();
    outcome.session = label("inc-1-fix");
    bend(&mut outcome);
    signed(Evidence::GateOutcome(Box::new(outcome)))
}

fn list(documents: &[Vec<u8>]) -> Vec<u8> {
    let names: Vec<Sha256Digest> = documents
        .iter()
        .map(|one| Sha256Digest::of(one.as_slice()))
        .collect();
    serde_json::to_vec(&names).unwrap()
}

/// A ledger whose session lists two outcomes and these scores, and all that is kept of it.
fn scored(scores: &[Vec<u8>]) -> (Ledger, Vec<Vec<u8>>) {
    listed(
        &[outcome(|one| one.call = 0), outcome(|one| one.call = 1)],
        scores,
    )
}

fn listed(outcomes: &[Vec<u8>], scores: &[Vec<u8>]) -> (Ledger, Vec<Vec<u8>>) {
    let mut ledger = Ledger::new();
    let (all, measured) = (list(outcomes), list(scores));
    ledger.propose(|proposal| {
        let mut session = gated_session();
        session.outcomes = Sha256Digest::of(all.as_slice()).into();
        let named = session.scores.as_mut().unwrap();
        named.sha256 = Sha256Digest::of(measured.as_slice());
        named.count = scores.len() as u64;
        proposal.session = Some(session);
    });
    ledger.decide(|_| ());
    let mut documents = ledger.documents.clone();
    documents.extend([all, measured]);
    documents.extend(["the receipts", "the checks"].map(|plain| plain.as_bytes().to_vec()));
    documents.extend_from_slice(outcomes);
    documents.extend_from_slice(scores);
    (ledger, documents)
}

#[track_caller]
fn refused(ledger: &Ledger, evidence: KeptEvidence, verdict: Verdict) -> String {
    let mut stored = stored(ledger, Stage::AwaitingApproval);
    stored.evidence = evidence;
    assert_failed(ledger, &stored, verdict, (0, Rule::Evidence))
}

fn two() -> [Vec<u8>; 2] {
    [score(|one| one.call = 0), score(|one| one.call = 1)]
}

#[test]
fn a_session_with_its_outcomes_and_scores_is_valid() {
    let (ledger, documents) = scored(&two());
    let mut row = stored(&ledger, Stage::AwaitingApproval);
    row.evidence = kept(&documents);
    assert_valid(&ledger, &row);
    // What the store is asked for in its second round is what the lists name.
    let lists = kept(&documents[..documents.len() - 4]);
    let wanted = lists.wanted_further();
    for document in &documents[documents.len() - 4..] {
        assert!(wanted.contains(&Sha256Digest::of(document.as_slice())));
    }
}

// The line to break is named in `audit::evidence::listed`.
#[test]
fn a_score_that_was_changed_is_found() {
    let scores = two();
    let (ledger, documents) = scored(&scores);
    let (last, others) = documents.split_last().unwrap();
    let name = Sha256Digest::of(last.as_slice());
    let words = refused(&ledger, kept(others), Verdict::CannotVerify);
    assert!(
        words.contains(&format!("the score {name} of a call")),
        "{words}"
    );
    let mut changed = kept(others);
    changed.add(name, &score(|one| one.score_micro = Some(900_000)));
    let words = refused(&ledger, changed, Verdict::Invalid);
    assert!(words.ends_with("other bytes under that digest"), "{words}");

    // A better score under its own digest, signed by whoever is not policy.
    let better = score(|one| (one.call, one.score_micro) = (1, Some(900_000)));
    let forged = forge(IN_TOTO, &payload_of(&better), &seed(Role::Proposer));
    let (ledger, documents) = scored(&[scores[0].clone(), forged]);
    refused(&ledger, kept(&documents), Verdict::Invalid);
}

#[test]
fn what_a_list_names_is_the_sessions_own_and_in_order() {
    let other = |bend: fn(&mut IntentScore)| [score(|one| one.call = 0), score(bend)];
    let cases = [
        (
            other(|one| one.session = label("inc-1-diagnosis")),
            "session",
        ),
        (other(|one| one.call = 0), "after that of a later one"),
        (
            [score(|one| one.call = 2), score(|one| one.call = 1)],
            "after that of a later one",
        ),
        ([score(|_| ()), outcome(|_| ())], "another kind"),
        (
            [score(|_| ()), b"no document".to_vec()],
            "no signed document",
        ),
    ];
    for (scores, why) in cases {
        let (ledger, documents) = scored(&scores);
        let words = refused(&ledger, kept(&documents), Verdict::Invalid);
        assert!(words.contains(why), "{why}: {words}");
    }
    let (ledger, documents) = listed(&two(), &two());
    refused(&ledger, kept(&documents), Verdict::Invalid);

    // One fewer than the proposal says: the list is another one, but so is what the proposal counts.
    let (mut ledger, documents) = scored(&two());
    ledger.envelopes.clear();
    let measured = Sha256Digest::of(documents[7].as_slice());
    ledger.propose(|proposal| {
        let mut session = gated_session();
        session.outcomes = Sha256Digest::of(documents[6].as_slice()).into();
        let named = session.scores.as_mut().unwrap();
        (named.sha256, named.count) = (measured, 3);
        proposal.session = Some(session);
    });
    ledger.decide(|_| ());
    let words = refused(&ledger, kept(&documents), Verdict::Invalid);
    assert!(words.ends_with("found 2 of them"), "{words}");
}

#[test]
fn a_denial_without_a_score_is_listed_like_any_other() {
    let unmeasured =
        score(|one| (one.call, one.score_micro, one.answer) = (1, None, ScoreAnswer::Deny));
    let (ledger, documents) = scored(&[score(|one| one.call = 0), unmeasured]);
    let mut row = stored(&ledger, Stage::AwaitingApproval);
    row.evidence = kept(&documents);
    assert_valid(&ledger, &row);
}

#[test]
fn both_verifiers_read_the_same_sessions() {
    let sound = {
        let mut ledger = Ledger::new();
        ledger.propose(|proposal| proposal.session = Some(gated_session()));
        String::from_utf8(payload_of(&ledger.envelopes[0])).unwrap()
    };
    let list = |scores: &str| {
        let written = serde_json::to_string(&gated_session().scores).unwrap();
        assert!(sound.contains(&written), "{sound}");
        sound.replace(&format!("\"scores\":{written},"), scores)
    };
    let digest = "a".repeat(64);
    let counted =
        |count: &str| format!("\"scores\":{{\"sha256\":\"{digest}\",\"count\":{count}}},");
    let cases = [
        (list(""), true),
        (list(&counted("1")), true),
        (list(&counted("5")), true),
        (list(&counted("0")), false),
        (list(&counted("6")), false),
        (list(&counted("-1")), false),
        (list("\"scores\":null,"), false),
        (list(&format!("\"scores\":\"{digest}\",")), false),
        (
            list(&format!(
                "\"scores\":{{\"sha256\":\"{digest}\",\"count\":1,\"more\":1}},"
            )),
            false,
        ),
        (
            list(&format!("\"scores\":{{\"sha256\":\"{digest}\"}},")),
            false,
        ),
    ];
    for (payload, holds) in cases {
        let ledger = ledger(|ledger| {
            ledger.trust = trust_root().into();
            let payload = payload.replace(
                &serde_json::to_string(&Ledger::new().trust.newest().reference()).unwrap(),
                &serde_json::to_string(&ledger.trust.newest().reference()).unwrap(),
            );
            ledger.push_raw(payload.as_bytes(), Role::Proposer);
        });
        let bundle = contents(&ledger).write().unwrap();
        // Asks both.
        let report = check(&bundle).report;
        assert_eq!(
            report.verdict == Verdict::Valid,
            holds,
            "{payload}\n{report:#?}"
        );
    }
}
