//! One sound statement of every kind.

use caretaker::attest::predicate::*;
use caretaker::attest::*;
use caretaker::clock::Millis;
use caretaker::id::EventId;

use super::ledger::*;

pub(super) fn organisation_block(role: Role) -> OrganisationBlock {
    OrganisationBlock {
        id: EventId::new(NOW, [4; 10]),
        project: Some(project()),
        role,
        occurred_at: NOW,
        trust_root: trust_root().reference(),
        producer: producer(),
    }
}

fn document() -> EvidenceBlock {
    let ledger = Ledger::new();
    evidence_block(
        Role::Policy,
        &ledger.incident,
        ledger.trust.newest().reference(),
    )
}

pub(crate) fn gate_outcome() -> GateOutcome {
    GateOutcome {
        document: document(),
        session: label("task-1"),
        call: 3,
        door: Door::Hook,
        advisory: false,
        tool: text("Bash"),
        arguments: digest("{\"command\":\"git push\"}"),
        answer: GateAnswer::Deny,
        stage: GateStage::Shell,
        reason: Some(text("git push is not a call of this session")),
        policy: digest("the session's policy"),
        token: Some(digest("the token")),
        receipt: Some(ReceiptRef {
            sha256: digest("the receipt").sha256,
            count: 4,
        }),
    }
}

pub(crate) fn gated_session() -> GatedSession {
    GatedSession {
        id: label("inc-1-fix"),
        policy: digest("the session's policy"),
        tokens: digest("its tokens"),
        receipts: ReceiptRef {
            sha256: digest("the last receipt").sha256,
            count: 6,
        },
        calls: 3,
        record: digest("the receipts"),
        outcomes: digest("the outcomes"),
        scores: Some(ScoreList {
            sha256: digest("the scores").sha256,
            count: 2,
        }),
        completion: digest("the checks"),
        advisory: false,
    }
}

pub(crate) fn intent_score() -> IntentScore {
    IntentScore {
        document: document(),
        session: label("task-1"),
        call: 3,
        intent: digest("mend the sum"),
        action: digest("Bash: cargo test"),
        embedder: Embedder {
            id: label("embedded"),
            model: text("all-MiniLM-L6-v2"),
            dimensions: 384,
            weights: Some(digest("weights")),
        },
        score_micro: Some(612_345),
        threshold_micro: 500_000,
        hard_threshold_micro: 300_000,
        answer: ScoreAnswer::Allow,
        reason: Some(text("score 0.612 above threshold 0.500")),
        receipt: None,
    }
}

pub(super) fn policy_version() -> PolicyVersion {
    PolicyVersion {
        event: organisation_block(Role::Policy),
        version: 2,
        policy: digest("the new rules"),
        bytes: 812,
        previous: Some(digest("the rules")),
        intent_document: Some(digest("the intent")),
        changed_by: text("local:ada"),
    }
}

pub(super) fn unfreeze() -> Unfreeze {
    Unfreeze {
        event: organisation_block(Role::Approver),
        frozen_because: text("commit c landed, which is not what was approved"),
        incident: Some(Ledger::new().incident),
        escalation: Some(digest("the escalation")),
        person: Approver {
            principal: text("mailto:owner@example.org"),
        },
        method: IdentityMethod::Passkey,
        evidence: List::first_of([EvidenceRef {
            kind: label("assertion"),
            sha256: digest("the assertion").sha256,
        }]),
        reason: text("the commit was ours by hand and is fine"),
    }
}

pub(super) fn break_glass() -> BreakGlass {
    let person = |principal: &str| Person {
        approver: Approver {
            principal: text(principal),
        },
        method: IdentityMethod::Ssh,
        evidence: List::first_of([EvidenceRef {
            kind: label("sshsig"),
            sha256: digest(principal).sha256,
        }]),
    };
    BreakGlass {
        event: organisation_block(Role::Approver),
        incident: Ledger::new().incident,
        overrides: List::first_of([Override::Denial, Override::Checks]),
        binding: bound_change(),
        proposal: digest("the proposal"),
        decision: digest("the denial"),
        people: List::first_of([
            person("mailto:owner@example.org"),
            person("mailto:second@example.org"),
        ]),
        reason: text("the shop is down"),
        expires_at: NOW.plus_seconds(600),
    }
}

pub(super) fn enrolment() -> Enrolment {
    Enrolment {
        event: OrganisationBlock {
            project: None,
            ..organisation_block(Role::Approver)
        },
        action: EnrolmentAction::Enrol,
        principal: text("mailto:owner@example.org"),
        credential: Credential {
            method: IdentityMethod::Passkey,
            id: text("3q2-7w"),
            sha256: digest("the public key").sha256,
            algorithm: Some(label("ES256")),
        },
        from: NOW,
        until: Some(Millis(NOW.0 + 1)),
        voucher: Voucher::RootKey(root_key(0).public().keyid()),
        evidence: List::default(),
        reason: None,
    }
}

/// One of every kind, in the order of [`PredicateType::ALL`].
pub(super) fn examples() -> Vec<Statement> {
    let mut ledger = Ledger::merged();
    ledger.escalate(|_| ());
    ledger.admit_gap();
    let signed = ledger.envelopes.iter().chain(&ledger.documents[..2]);
    let mut statements: Vec<Statement> = signed
        .map(|envelope| Statement::parse(&payload_of(envelope)).unwrap())
        .collect();
    let evidence = [
        Evidence::GateOutcome(Box::new(gate_outcome())),
        Evidence::IntentScore(Box::new(intent_score())),
    ];
    for document in evidence {
        let subjects = document.subjects().unwrap();
        statements.push(Statement::evidence(subjects, document).unwrap());
    }
    let events = [
        OrganisationEvent::PolicyVersion(Box::new(policy_version())),
        OrganisationEvent::Unfreeze(Box::new(unfreeze())),
        OrganisationEvent::BreakGlass(Box::new(break_glass())),
        OrganisationEvent::Enrolment(Box::new(enrolment())),
    ];
    for event in events {
        statements.push(Statement::organisation(event).unwrap());
    }
    let place = |statement: &Statement| {
        let kind = statement.predicate_type();
        PredicateType::ALL.iter().position(|one| *one == kind)
    };
    statements.sort_by_key(place);
    let kinds: Vec<_> = statements.iter().map(Statement::predicate_type).collect();
    assert_eq!(kinds, PredicateType::ALL, "one of every kind");
    statements
}
