//! An incident's history, put together from its records alone.

use caretaker::approve::HumanDecision;
use caretaker::audit::{ApprovalRecord, AuditRecord, Entry, Records, timeline};
use caretaker::change::{Oid, Sha256Digest};
use caretaker::clock::Millis;
use caretaker::id::ApprovalId;
use caretaker::incident::{ClosedReason, Fact, Failure, FailureKind, RecordedFact, Reproduction};

use super::super::attest::ledger::{Ledger, NOW};
use super::{Stage, stored};

fn failure() -> Failure {
    Failure {
        kind: FailureKind::Code,
        workflow_id: 7,
        workflow: None,
        scope: "push".to_owned(),
        base_ref: "main".to_owned(),
        job: Some("test".to_owned()),
        job_id: Some(9),
        run_id: 8,
        attempt: 1,
        commit: Oid::from_bytes(&[4; 20]).unwrap(),
        url: None,
        detail: None,
    }
}

fn after(seconds: i64) -> Millis {
    NOW.plus_seconds(seconds)
}

fn recorded(facts: Vec<(i64, Fact)>) -> Vec<RecordedFact> {
    let numbered = facts.into_iter().zip(0..);
    numbered
        .map(|((seconds, fact), ordinal)| RecordedFact {
            ordinal,
            at: after(seconds),
            fact,
        })
        .collect()
}

fn red() -> Fact {
    Fact::Reproduced(Reproduction::Red {
        command: vec!["cargo".to_owned(), "test".to_owned()],
        sandbox: "landlock".to_owned(),
        evidence: Sha256Digest::of(b"run"),
        repeated: Vec::new(),
    })
}

fn link(byte: u8) -> ApprovalRecord {
    ApprovalRecord {
        approval: ApprovalId::new(NOW, [byte; 10]),
        principal: "mailto:owner@example.org".parse().unwrap(),
        issued_at: after(20),
        expires_at: after(3_600),
        used: None,
        revoked_at: None,
    }
}

fn kinds(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.kind.as_str()).collect()
}

#[test]
fn records_of_all_kinds_become_one_story_in_the_order_of_time() {
    let mut ledger = Ledger::new();
    ledger.propose(|proposal| proposal.event.occurred_at = after(15));
    let rows = stored(&ledger, Stage::Gated).rows;
    let facts = recorded(vec![
        (10, red()),
        (
            15,
            Fact::Pushed {
                commit: Oid::from_bytes(&[5; 20]).unwrap(),
            },
        ),
        (
            40,
            Fact::Recovered {
                run_id: 11,
                attempt: 1,
            },
        ),
        (
            40,
            Fact::Closed {
                reason: ClosedReason::Recovered,
                detail: "run 11 of the same job succeeded".to_owned(),
            },
        ),
    ]);
    let revoked = ApprovalRecord {
        revoked_at: Some(after(40)),
        ..link(1)
    };
    let audit = [AuditRecord {
        at: after(12),
        kind: "signing-failed".to_owned(),
        detail: "the proposer signer cannot be reached".to_owned(),
    }];
    let entries = timeline(&Records {
        opened_at: NOW,
        failure: &failure(),
        facts: &facts,
        rows: &rows,
        approvals: &[revoked],
        audit: &audit,
    });
    assert_eq!(
        kinds(&entries),
        [
            "opened",
            "reproduced",
            "signing-failed",
            "pushed",
            "signed",
            "link-made",
            "recovered",
            "closed",
            "link-revoked"
        ]
    );
    assert!(entries.windows(2).all(|pair| pair[0].at <= pair[1].at));
    assert_eq!(
        entries[1].text,
        "fails in the sandbox too: cargo test (landlock)"
    );
    assert_eq!(entries[4].text, "event 0: proposal signed by the proposer");
    let json = serde_json::to_value(&entries[1]).unwrap();
    assert_eq!(
        json,
        serde_json::json!({"at": "2027-01-15T08:00:10Z", "kind": "reproduced", "text": entries[1].text})
    );
}

#[test]
fn a_link_used_without_a_fact_does_not_stay_unseen() {
    let used = ApprovalRecord {
        used: Some((after(30), HumanDecision::Approve)),
        ..link(1)
    };
    let consumed = recorded(vec![(
        30,
        Fact::Consumed {
            approval: used.approval.clone(),
            decision: HumanDecision::Approve,
            evidence: Sha256Digest::of(b"consumption"),
        },
    )]);
    let approvals = [used];
    let with = |facts| {
        timeline(&Records {
            opened_at: NOW,
            failure: &failure(),
            facts,
            rows: &[],
            approvals: &approvals,
            audit: &[],
        })
    };
    assert_eq!(kinds(&with(&consumed)), ["opened", "link-made", "consumed"]);
    assert_eq!(kinds(&with(&[])), ["opened", "link-made", "link-used"]);
}

#[test]
fn foreign_text_is_one_printable_line() {
    let facts = recorded(vec![(
        1,
        Fact::MergeVoid {
            execution: caretaker::id::ExecutionId::new(NOW, [6; 10]),
            reason: format!("a\nb\u{1b}[2J\u{202e}{}", "x".repeat(5_000)),
        },
    )]);
    let entries = timeline(&Records {
        opened_at: NOW,
        failure: &failure(),
        facts: &facts,
        rows: &[],
        approvals: &[],
        audit: &[],
    });
    let text = &entries[1].text;
    assert!(
        !text.contains(['\n', '\u{1b}', '\u{202e}']) && text.len() < 1_000,
        "{text}"
    );
}

#[test]
fn what_is_run_again_is_told_in_words() {
    let command = || vec!["cargo".to_owned(), "test".to_owned()];
    let (sandbox, digest) = (|| "landlock".to_owned(), Sha256Digest::of(b"run"));
    let twice_red = Reproduction::Red {
        command: command(),
        sandbox: sandbox(),
        evidence: digest,
        repeated: vec![digest],
    };
    let flaky = Reproduction::Flaky {
        command: command(),
        sandbox: sandbox(),
        passed: 1,
        failed: 2,
        evidence: vec![digest; 3],
    };
    let (run_id, attempt) = (8, 2);
    let facts = [
        Fact::Reproduced(twice_red),
        Fact::Reproduced(flaky),
        Fact::RerunAsked { run_id, attempt },
        Fact::RerunDeclined {
            reason: "403: no".to_owned(),
        },
        Fact::Recurred {
            run_id,
            attempt,
            job_id: None,
        },
        Fact::Recovered { run_id, attempt },
    ];
    let facts = recorded(facts.map(|fact| (10, fact)).into());
    let entries = timeline(&Records {
        opened_at: NOW,
        failure: &failure(),
        facts: &facts,
        rows: &[],
        approvals: &[],
        audit: &[],
    });
    let line = |entry: &Entry| format!("{}: {}", entry.kind, entry.text);
    let lines: Vec<String> = entries.iter().skip(1).map(line).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    reproduced: fails in the sandbox too, in 2 of 2 runs: cargo test (landlock)
    reproduced: fails in the sandbox too, in 2 of 3 runs: cargo test (landlock)
    rerun-asked: attempt 2 of run 8 is to tell whether it fails again
    rerun-declined: not run again at the provider: 403: no
    recurred: attempt 2 of run 8 failed, too
    recovered: run 8 of the same job succeeded in attempt 2
    ");
}
