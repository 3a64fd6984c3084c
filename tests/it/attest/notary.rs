//! Statements and who signs them.

use caretaker::attest::predicate::*;
use caretaker::attest::text::{MAX_ITEMS, shown};
use caretaker::attest::*;
use caretaker::id::EventId;

use super::ledger::{Ledger, NOW, bound_change, digest, forge, key, label, oid, text};

fn draft(ledger: &Ledger) -> Vec<u8> {
    let event = Event::Proposal(Box::new(ledger.proposal_event()));
    Statement::event(event).unwrap().draft().unwrap()
}

fn manifest(ledger: &Ledger) -> ContextManifest {
    let block = ledger.block(Role::Proposer);
    ContextManifest {
        document: EvidenceBlock {
            id: EventId::new(NOW, [1; 10]),
            incident: block.incident,
            project: block.project,
            role: Role::Proposer,
            occurred_at: NOW,
            trust_root: block.trust_root,
            producer: block.producer,
        },
        items: List::first_of([ContextItem {
            kind: label("log"),
            source: text("https://github.com/example/shop/actions/runs/1"),
            trust: TrustClass::Quarantined,
            sha256: digest("typed facts").sha256,
            bytes: 11,
            raw: Some(digest("raw log")),
        }]),
        count: 1,
        all: None,
        prompt: None,
    }
}

#[test]
fn a_statement_has_one_fixed_serialisation() {
    let bytes = draft(&Ledger::new());
    let again = Statement::parse(&bytes).unwrap();
    assert_eq!(again.draft().unwrap(), bytes);
    let words = String::from_utf8(bytes).unwrap();
    let subject = format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"change","digest":{{"sha256":"{}"}}}},{{"name":"head","digest":{{"gitCommit":"{}","gitTree":"{}"}}}}],"predicateType":"urn:caretaker:attestation:proposal:v1","predicate":{{"event":{{"id":""#,
        digest("change").sha256,
        oid('e'),
        oid('d')
    );
    assert!(words.starts_with(&subject), "{words}");
}

#[test]
fn every_kind_of_statement_belongs_to_one_role_and_only_its_signer_signs_it() {
    let ledger = Ledger::new();
    let events = [
        Event::Proposal(Box::new(ledger.proposal_event())),
        Event::PolicyDecision(Box::new(ledger.decision_event())),
        Event::Approval(Box::new(ledger.approval_event())),
        Event::Execution(Box::new(Execution {
            proposal: Some(digest("proposal")),
            ..ledger.execution_event()
        })),
        Event::Gap(Box::new(Gap {
            event: ledger.block(Role::Executor),
            reason: None,
            detail: text("lost"),
            evidence: List::default(),
        })),
    ];
    for event in events {
        let bytes = Statement::event(event.clone()).unwrap().draft().unwrap();
        for role in Role::ALL {
            let signed = FileSigner::new(role, key(role)).sign(&bytes);
            if role == event.predicate_type().role() {
                // The same bytes the stranger's signer makes.
                assert_eq!(
                    signed.unwrap().to_bytes().unwrap(),
                    forge(dsse::IN_TOTO, &bytes, &super::ledger::seed(role))
                );
            } else {
                // Break: drop the comparison of roles in `FileSigner::sign`.
                assert!(
                    matches!(signed, Err(SignError::Role { .. })),
                    "{role}: {signed:?}"
                );
            }
        }
    }
}

#[test]
fn a_signer_refuses_another_statement_at_a_place_it_has_signed() {
    let ledger = Ledger::new();
    let signer = FileSigner::new(Role::Proposer, key(Role::Proposer));
    let first = draft(&ledger);
    let signed = signer.sign(&first).unwrap();
    assert_eq!(
        signer.sign(&first).unwrap(),
        signed,
        "the same bytes are signed again after a crash"
    );
    let mut other = ledger.proposal_event();
    other.diagnosis.summary = text("something else");
    let other = Statement::event(Event::Proposal(Box::new(other)))
        .unwrap()
        .draft()
        .unwrap();
    // Break: return `Ok` at the start of `FileSigner::take_position`.
    assert!(matches!(
        signer.sign(&other),
        Err(SignError::Position { seq: 0, .. })
    ));
}

#[test]
fn a_signer_signs_no_bytes_but_a_statement_in_its_fixed_form() {
    let signer = FileSigner::new(Role::Proposer, key(Role::Proposer));
    let bytes = draft(&Ledger::new());
    let spaced = String::from_utf8(bytes.clone())
        .unwrap()
        .replacen("\":", "\": ", 1);
    assert!(matches!(
        signer.sign(spaced.as_bytes()),
        Err(SignError::NotFixedForm { .. })
    ));
    assert!(matches!(
        signer.sign(b"DSSEv1 1 x 1 y"),
        Err(SignError::Statement { .. })
    ));
    assert!(matches!(
        signer.sign(&bytes[..bytes.len() - 1]),
        Err(SignError::Statement { .. })
    ));
}

#[test]
fn subjects_follow_from_the_predicate() {
    let words = String::from_utf8(draft(&Ledger::new())).unwrap();
    let change = digest("change").sha256.to_string();
    let subject = |words: &str| words.find("],\"predicateType\"").unwrap();
    let extra = format!(r#",{{"name":"more","digest":{{"sha256":"{change}"}}}}"#);
    let at = subject(&words);
    let bad = [
        // Another one, none, one more, one in name only, another digest beside the right one, the weak one alone.
        words.replacen(&change, &digest("another").sha256.to_string(), 1),
        format!("{}{}", &words[..=words.find('[').unwrap()], &words[at..]),
        format!("{}{extra}{}", &words[..at], &words[at..]),
        words.replacen(&format!(r#"{{"sha256":"{change}"}}"#), "{}", 1),
        words.replacen(
            &format!(r#"{{"sha256":"{change}"}}"#),
            &format!(r#"{{"md5":"0","sha256":"{change}"}}"#),
            1,
        ),
        words.replacen(
            &format!(r#"{{"sha256":"{change}"}}"#),
            r#"{"md5":"d41d8cd98f00b204e9800998ecf8427e"}"#,
            1,
        ),
        // The commit is right, the tree is not: every digest has to match.
        words.replacen(
            oid('d').to_string().as_str(),
            oid('f').to_string().as_str(),
            1,
        ),
    ];
    for statement in bad {
        // Break: compare nothing in `Statement::checked`.
        let refused = Statement::parse(statement.as_bytes());
        assert!(
            matches!(refused, Err(StatementError::Subjects { .. })),
            "{statement}: {refused:?}"
        );
    }
}

#[test]
fn a_statement_of_another_kind_is_not_taken_for_this_one() {
    let words = String::from_utf8(draft(&Ledger::new())).unwrap();
    let uri = "urn:caretaker:attestation:proposal:v1";
    for other in [
        "",
        "urn:caretaker:attestation:proposal:v2",
        "urn:caretaker:attestation:proposal:v1 ",
        "URN:caretaker:attestation:proposal:v1",
        "urn:caretaker:attestation:amendment:v1",
    ] {
        let refused = Statement::parse(words.replacen(uri, other, 1).as_bytes());
        assert!(
            matches!(refused, Err(StatementError::PredicateType { .. })),
            "{other}: {refused:?}"
        );
    }
    let approval = words.replacen(uri, "urn:caretaker:attestation:approval:v1", 1);
    assert!(matches!(
        Statement::parse(approval.as_bytes()),
        Err(StatementError::Json(_))
    ));
    let older = words.replacen("Statement/v1", "Statement/v0.1", 1);
    assert!(matches!(
        Statement::parse(older.as_bytes()),
        Err(StatementError::Type { .. })
    ));
}

#[test]
fn predicates_that_contradict_themselves_are_neither_written_nor_read() {
    let ledger = Ledger::new();
    let refused = |event: Event| match Statement::event(event) {
        Err(StatementError::Predicate { error, .. }) => error.member,
        other => panic!("{other:?}"),
    };
    let decision = |bend: fn(&mut PolicyDecision)| {
        let mut decision = ledger.decision_event();
        bend(&mut decision);
        refused(Event::PolicyDecision(Box::new(decision)))
    };
    let files = Target::Files(FileList {
        sha256: digest("paths").sha256,
        count: 1,
    });
    assert_eq!(decision(|decision| decision.terminal = true), "terminal");
    assert_eq!(
        decision(|d| (d.verdict, d.class) = (Verdict::Free, Class::Data)),
        "verdict"
    );
    assert_eq!(decision(|d| d.event.role = Role::Approver), "event.role");
    assert_eq!(
        decision(|d| d.event.prev = Some(digest("before"))),
        "event.prev"
    );
    assert_eq!(decision(|d| d.event.seq = 1), "event.prev");
    assert_eq!(
        refused(Event::PolicyDecision(Box::new(PolicyDecision {
            target: files,
            ..ledger.decision_event()
        }))),
        "target"
    );

    let approval = |bend: fn(&mut Approval)| {
        let mut approval = ledger.approval_event();
        bend(&mut approval);
        refused(Event::Approval(Box::new(approval)))
    };
    // A link used when it had expired, before it was made, or after what it was for had expired.
    assert_eq!(
        approval(|a| a.token.consumed_at = a.token.expires_at),
        "token.consumed_at"
    );
    assert_eq!(
        approval(|a| a.token.consumed_at = caretaker::clock::Millis(0)),
        "token.consumed_at"
    );
    assert_eq!(
        approval(|a| a.binding.expires_at = a.token.consumed_at),
        "binding.expires_at"
    );

    let execution = |bend: fn(&mut Execution)| {
        let mut execution = Execution {
            proposal: Some(digest("proposal")),
            ..ledger.execution_event()
        };
        bend(&mut execution);
        refused(Event::Execution(Box::new(execution)))
    };
    assert_eq!(execution(|e| e.authority = None), "authority");
    assert_eq!(execution(|e| e.by_us = false), "authority");
    assert_eq!(
        execution(|e| e.observed_change = digest("other")),
        "observed_change"
    );
    assert_eq!(execution(|e| e.proposal = None), "proposal");
}

#[test]
fn evidence_documents_are_signed_by_the_proposer_and_are_no_events() {
    let ledger = Ledger::new();
    let subjects = vec![Subject::sha256("diagnosis", digest("diagnosis").sha256)];
    let evidence = Evidence::ContextManifest(Box::new(manifest(&ledger)));
    let statement = Statement::evidence(subjects.clone(), evidence).unwrap();
    let envelope = FileSigner::new(Role::Proposer, key(Role::Proposer))
        .sign(&statement.draft().unwrap())
        .unwrap();
    let attested = authenticate(&ledger.trust, &envelope).unwrap();
    assert_eq!(
        (attested.role(), attested.digest()),
        (Role::Proposer, envelope.digest())
    );
    assert_eq!(attested.statement(), &statement);
    let mut with_evidence = ledger.clone();
    with_evidence.envelopes.push(envelope.to_bytes().unwrap());
    with_evidence.assert_broken(0, chain::Rule::Kind);

    let result = TestResult {
        result: TestOutcome::Failed,
        configuration: List::first_of([ResourceDescriptor {
            name: Some(text("cargo test")),
            uri: None,
            digest: None,
            media_type: None,
        }]),
        url: None,
        passed_tests: None,
        warned_tests: None,
        failed_tests: Some(List::first_of([text("sum_adds")])),
    };
    let statement = Statement::evidence(
        vec![Subject::commit("head", oid('e'), oid('d'))],
        Evidence::TestResult(Box::new(result)),
    )
    .unwrap();
    let bytes = statement.draft().unwrap();
    assert!(String::from_utf8(bytes.clone()).unwrap().ends_with(
        r#""predicateType":"https://in-toto.io/attestation/test-result/v0.1","predicate":{"result":"FAILED","configuration":[{"name":"cargo test"}],"failedTests":["sum_adds"]}}"#
    ));
    assert_eq!(Statement::parse(&bytes).unwrap(), statement);
    let none = Statement::evidence(
        vec![],
        Evidence::ContextManifest(Box::new(manifest(&ledger))),
    );
    assert!(matches!(none, Err(StatementError::Subjects { .. })));
}

#[test]
fn text_is_bounded_and_normalised() {
    assert_eq!(Text::new("e\u{301}").unwrap().as_str(), "é");
    assert_eq!(
        Text::new(&"x".repeat(501)),
        Err(TextError::TooLong { length: 501 })
    );
    assert_eq!(Text::new("a\0b"), Err(TextError::Nul));
    assert_eq!(
        serde_json::from_str::<Text>("\"e\u{301}\"")
            .unwrap_err()
            .to_string()
            .split(" at ")
            .next(),
        Some("text is not in Unicode normal form C")
    );
    let long = Text::clipped(&"ä".repeat(10_000));
    assert!(
        long.as_str().ends_with('…')
            && long.as_str().len() <= Text::MAX_BYTES
            && long.as_str().len() > 490
    );
    assert_eq!(Text::clipped("a\0b").as_str(), "a\u{fffd}b");
    assert_eq!(Text::clipped("short").as_str(), "short");
    assert!(Label::new("").is_err() && Label::new("a b").is_err() && Label::new("ä").is_err());
    assert!(List::new(vec![0; MAX_ITEMS]).is_ok());
    assert_eq!(
        List::new(vec![0; MAX_ITEMS + 1]),
        Err(TextError::TooMany { length: 21 })
    );
    assert_eq!(
        shown("a\u{1b}[2J\u{202e}'\"\\"),
        "a\\u{1b}[2J\\u{202e}'\"\\"
    );
}

#[test]
fn integers_beyond_two_to_the_53_are_not_signed() {
    let ledger = Ledger::new();
    let mut approval = ledger.approval_event();
    approval.binding = BoundChange {
        pull_request: 9_007_199_254_740_992,
        ..bound_change()
    };
    let statement = Statement::event(Event::Approval(Box::new(approval))).unwrap();
    assert!(matches!(
        statement.draft(),
        Err(StatementError::Json(json::JsonError::Number { .. }))
    ));
}
