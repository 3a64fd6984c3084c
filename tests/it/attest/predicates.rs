//! Every kind of statement: read strictly, signed by its role only, in its own place only.

use caretaker::attest::chain::{Rule, Verdict as Outcome};
use caretaker::attest::dsse::IN_TOTO;
use caretaker::attest::predicate::*;
use caretaker::attest::*;
use caretaker::audit::{DeriveError, LedgerRow};
use serde_json::{Value, json};

use super::examples::*;
use super::ledger::*;
use crate::twin;

#[test]
fn every_kind_is_read_back_as_it_was_written() {
    for statement in examples() {
        let bytes = statement.draft().unwrap();
        assert_eq!(
            twin::statement(&bytes).unwrap(),
            statement,
            "{}",
            statement.predicate_type()
        );
    }
}

/// Every object of a statement, by the way to it.
fn objects(value: &Value, way: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(way.to_owned());
            for (name, member) in members {
                objects(member, &format!("{way}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                objects(item, &format!("{way}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn an_unknown_member_anywhere_is_refused() {
    for statement in examples() {
        let value: Value = serde_json::from_slice(&statement.draft().unwrap()).unwrap();
        let mut ways = Vec::new();
        objects(&value, "", &mut ways);
        assert!(ways.len() > 3);
        for way in ways {
            let mut bent = value.clone();
            let object = bent.pointer_mut(&way).unwrap();
            object["unknown"] = json!(1);
            let refused = twin::statement(&serde_json::to_vec(&bent).unwrap());
            assert!(
                refused.is_err(),
                "{}: {way} takes an unknown member",
                statement.predicate_type()
            );
        }
    }
}

// The line to break is named in `attest::statement`.
#[test]
fn every_digest_of_every_subject_counts() {
    for statement in examples() {
        let kind = statement.predicate_type();
        if matches!(
            kind,
            PredicateType::ContextManifest | PredicateType::TestResult
        ) {
            continue;
        }
        let value: Value = serde_json::from_slice(&statement.draft().unwrap()).unwrap();
        let subjects = value["subject"].as_array().unwrap();
        let mut bent = Vec::new();
        for (index, subject) in subjects.iter().enumerate() {
            for (algorithm, digest) in subject["digest"].as_object().unwrap() {
                let other = "7".repeat(digest.as_str().unwrap().len());
                let mut one = value.clone();
                one["subject"][index]["digest"][algorithm] = json!(other);
                bent.push(one);
                // A second, weak digest beside the right one.
                let mut one = value.clone();
                one["subject"][index]["digest"]["md5"] = json!("0".repeat(32));
                bent.push(one);
            }
            let mut one = value.clone();
            one["subject"].as_array_mut().unwrap().remove(index);
            bent.push(one);
            let mut one = value.clone();
            one["subject"].as_array_mut().unwrap().push(subject.clone());
            bent.push(one);
        }
        for bent in bent {
            let refused = twin::statement(&serde_json::to_vec(&bent).unwrap());
            assert!(
                matches!(refused, Err(StatementError::Subjects { .. })),
                "{kind}: {refused:?}"
            );
        }
    }
}

#[test]
fn a_kind_counts_under_its_role_only() {
    let ledger = Ledger::new();
    for statement in examples() {
        let kind = statement.predicate_type();
        let payload = statement.draft().unwrap();
        for role in Role::ALL {
            let forged = forge(IN_TOTO, &payload, &seed(role));
            let envelope = Envelope::parse(&forged).unwrap();
            match authenticate(&ledger.trust, &envelope) {
                Ok(attested) => {
                    assert_eq!(
                        (attested.role(), role),
                        (kind.role(), kind.role()),
                        "{kind}"
                    );
                }
                Err(refusal) => {
                    assert_eq!(refusal.rule, Rule::Role, "{kind} under the {role}'s key");
                    assert_ne!(role, kind.role());
                }
            }
            let signed = FileSigner::new(role, key(role)).sign(&payload);
            assert_eq!(signed.is_ok(), role == kind.role(), "{kind} by the {role}");
        }
    }
}

#[test]
fn what_is_of_no_incident_has_no_place_in_a_chain() {
    let chain = [
        PredicateType::Proposal,
        PredicateType::PolicyDecision,
        PredicateType::Approval,
        PredicateType::Execution,
        PredicateType::Escalation,
        PredicateType::Gap,
    ];
    for statement in examples() {
        let kind = statement.predicate_type();
        assert_eq!(
            statement.as_event().is_some(),
            chain.contains(&kind),
            "{kind}"
        );
        if chain.contains(&kind) {
            continue;
        }
        let mut ledger = Ledger::new();
        ledger.push_raw(&statement.draft().unwrap(), kind.role());
        let report = ledger.verify();
        assert_eq!(report.verdict, Outcome::Invalid, "{kind}");
        ledger.assert_broken(0, Rule::Kind);
        assert!(
            matches!(
                LedgerRow::derive(&ledger.envelopes[0]),
                Err(DeriveError::Evidence { kind: found }) if found == kind
            ),
            "{kind}"
        );
    }
}

/// The member that a predicate names as wrong.
#[track_caller]
fn refused(made: Result<Statement, StatementError>) -> &'static str {
    match made {
        Err(StatementError::Predicate { error, .. }) => error.member,
        other => panic!("{other:?}"),
    }
}

// The line to break is named in `attest::predicate::proposal`.
#[test]
fn a_session_with_fewer_receipts_than_calls_is_refused() {
    let proposed = |receipts, calls| {
        let mut proposal = Ledger::new().proposal_event();
        let mut session = gated_session();
        (session.receipts.count, session.calls) = (receipts, calls);
        session.scores = None;
        proposal.session = Some(session);
        Statement::event(Event::Proposal(Box::new(proposal)))
    };
    assert!(proposed(3, 2).is_ok());
    assert!(proposed(1, 0).is_ok());
    assert_eq!(refused(proposed(2, 2)), "session.receipts.count");
    assert_eq!(refused(proposed(0, 0)), "receipt.count");
}

// The line to break is named in `attest::predicate::proposal`.
#[test]
fn a_session_with_more_scores_than_receipts_of_calls_is_refused() {
    let proposed = |receipts, scores| {
        let mut proposal = Ledger::new().proposal_event();
        let mut session = gated_session();
        session.receipts.count = receipts;
        session.scores.as_mut().unwrap().count = scores;
        proposal.session = Some(session);
        Statement::event(Event::Proposal(Box::new(proposal)))
    };
    assert!(proposed(6, 5).is_ok());
    assert!(proposed(9_000, 4_096).is_ok());
    for (receipts, scores) in [(6, 0), (6, 6), (9_000, 4_097)] {
        assert_eq!(refused(proposed(receipts, scores)), "session.scores.count");
    }
}

// The line to break is named in `attest::predicate::intent_score`.
#[test]
fn a_score_answers_what_its_thresholds_say() {
    let scored = |bend: fn(&mut IntentScore)| {
        let mut score = intent_score();
        bend(&mut score);
        let evidence = Evidence::IntentScore(Box::new(score));
        Statement::evidence(evidence.subjects().unwrap(), evidence)
    };
    assert!(scored(|_| ()).is_ok());
    assert!(scored(|s| (s.score_micro, s.answer) = (Some(500_000), ScoreAnswer::Allow)).is_ok());
    assert!(scored(|s| (s.score_micro, s.answer) = (Some(499_999), ScoreAnswer::Warn)).is_ok());
    assert!(scored(|s| (s.score_micro, s.answer) = (Some(299_999), ScoreAnswer::Deny)).is_ok());
    assert!(scored(|s| (s.score_micro, s.answer) = (None, ScoreAnswer::Deny)).is_ok());
    let wrong = [
        scored(|s| s.score_micro = Some(499_999)),
        scored(|s| (s.score_micro, s.answer) = (Some(299_999), ScoreAnswer::Warn)),
        scored(|s| s.score_micro = None),
        scored(|s| (s.score_micro, s.answer) = (None, ScoreAnswer::Warn)),
    ];
    for made in wrong {
        assert_eq!(refused(made), "answer");
    }
    assert_eq!(
        refused(scored(|s| s.score_micro = Some(1_000_001))),
        "score_micro"
    );
    assert_eq!(
        refused(scored(|s| s.hard_threshold_micro = 500_001)),
        "hard_threshold_micro"
    );
    assert_eq!(
        refused(scored(|s| s.document.role = Role::Proposer)),
        "document.role"
    );
}

#[test]
fn a_gate_outcome_does_not_contradict_itself() {
    let told = |bend: fn(&mut GateOutcome)| {
        let mut outcome = gate_outcome();
        bend(&mut outcome);
        let evidence = Evidence::GateOutcome(Box::new(outcome));
        Statement::evidence(evidence.subjects().unwrap(), evidence)
    };
    assert_eq!(refused(told(|o| o.reason = None)), "reason");
    assert_eq!(refused(told(|o| o.answer = GateAnswer::Allow)), "stage");
    assert_eq!(refused(told(|o| o.stage = GateStage::AlwaysAllow)), "stage");
    assert_eq!(
        refused(told(|o| o.receipt.as_mut().unwrap().count = 0)),
        "receipt.count"
    );
    assert!(told(|o| o.stage = GateStage::Person).is_ok());
}

#[test]
fn organisation_events_do_not_contradict_themselves() {
    let version = |bend: fn(&mut PolicyVersion)| {
        let mut event = policy_version();
        bend(&mut event);
        refused(Statement::organisation(OrganisationEvent::PolicyVersion(
            Box::new(event),
        )))
    };
    assert_eq!(version(|e| e.event.project = None), "event.project");
    assert_eq!(version(|e| e.previous = None), "previous");
    assert_eq!(version(|e| e.version = 1), "previous");
    assert_eq!(version(|e| (e.version, e.previous) = (0, None)), "previous");
    assert_eq!(version(|e| e.previous = Some(e.policy)), "policy");
    assert_eq!(version(|e| e.event.role = Role::Approver), "event.role");

    let lifted = |bend: fn(&mut Unfreeze)| {
        let mut event = unfreeze();
        bend(&mut event);
        refused(Statement::organisation(OrganisationEvent::Unfreeze(
            Box::new(event),
        )))
    };
    assert_eq!(lifted(|e| e.event.project = None), "event.project");
    assert_eq!(lifted(|e| e.incident = None), "incident");
    assert_eq!(lifted(|e| e.reason = Text::default()), "reason");

    let broken = |bend: fn(&mut BreakGlass)| {
        let mut event = break_glass();
        bend(&mut event);
        refused(Statement::organisation(OrganisationEvent::BreakGlass(
            Box::new(event),
        )))
    };
    assert_eq!(broken(|e| e.event.project = None), "event.project");
    assert_eq!(
        broken(|e| e.binding.repository_id = label("4712")),
        "binding.repository_id"
    );
    assert_eq!(broken(|e| e.overrides = List::default()), "overrides");
    assert_eq!(
        broken(|e| e.overrides = List::first_of([Override::Checks, Override::Checks])),
        "overrides"
    );
    assert_eq!(broken(|e| e.people = List::default()), "people");
    assert_eq!(
        broken(|e| e.people = List::first_of([e.people[0].clone(), e.people[0].clone()])),
        "people"
    );
    assert_eq!(broken(|e| e.reason = Text::default()), "reason");
    assert_eq!(broken(|e| e.expires_at = NOW), "expires_at");
    assert_eq!(
        broken(|e| e.expires_at = e.binding.expires_at.plus_millis(1)),
        "expires_at"
    );

    let enrolled = |bend: fn(&mut Enrolment)| {
        let mut event = enrolment();
        bend(&mut event);
        refused(Statement::organisation(OrganisationEvent::Enrolment(
            Box::new(event),
        )))
    };
    assert_eq!(enrolled(|e| e.principal = Text::default()), "principal");
    assert_eq!(
        enrolled(|e| e.credential.method = IdentityMethod::Link),
        "credential.method"
    );
    assert_eq!(enrolled(|e| e.until = Some(e.from)), "until");
    assert_eq!(enrolled(|e| e.action = EnrolmentAction::Withdraw), "until");
    assert_eq!(
        enrolled(|e| (e.action, e.until) = (EnrolmentAction::Withdraw, None)),
        "reason"
    );
    assert_eq!(
        enrolled(|e| e.voucher = Voucher::Credential(e.credential.sha256.into())),
        "voucher"
    );
}

#[test]
fn a_gap_of_the_first_days_is_still_read() {
    let mut ledger = Ledger::new();
    ledger.admit_gap();
    let payload = String::from_utf8(payload_of(&ledger.envelopes[0])).unwrap();
    assert!(
        payload.contains(r#""detail":"the raw log is gone","evidence":[{"kind":"log","sha256":"#)
    );
    assert!(!payload.contains("reason") && !payload.contains("signed_as"));
    ledger.assert_valid();
}
