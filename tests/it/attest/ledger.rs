//! An organisation with its keys, and ledgers it wrote: what the other tests bend and break.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caretaker::attest::chain::{ChainReport, Expectation, Head, Link, Rule, Verdict as Outcome};
use caretaker::attest::dsse::{IN_TOTO, pae};
use caretaker::attest::predicate::*;
use caretaker::attest::trust_root::{RoleKey, RoleKeys};
use caretaker::attest::*;
use caretaker::audit::{BundleContents, Pin, Rule as BundleRule};
use caretaker::change::{ObjectFormat, Oid, Sha256Digest};
use caretaker::clock::Millis;
use caretaker::id::{EventId, ExecutionId, IncidentId};
use ed25519_dalek::Signer as _;

use crate::twin::verify_bundle;

/// The moment at which everything happens.
pub(crate) const NOW: Millis = Millis(1_800_000_000_000);
const YEAR: i64 = 365 * 24 * 3_600_000;

pub(crate) fn label(text: &str) -> Label {
    Label::new(text).unwrap()
}

pub(crate) fn text(text: &str) -> Text {
    Text::new(text).unwrap()
}

pub(crate) fn digest(text: &str) -> DigestRef {
    Sha256Digest::of(text.as_bytes()).into()
}

pub(crate) fn oid(digit: char) -> Oid {
    digit.to_string().repeat(40).parse().unwrap()
}

/// The seed of a role's key; fixed, so that a test can also sign without the library.
pub(crate) fn seed(role: Role) -> [u8; 32] {
    [role as u8 + 1; 32]
}

pub(crate) fn key(role: Role) -> SecretKey {
    SecretKey::from_seed(&seed(role))
}

pub(crate) fn root_key(number: u8) -> SecretKey {
    SecretKey::from_seed(&[100 + number; 32])
}

pub(crate) fn role_keys() -> RoleKeys {
    let keys = |role| List::first_of([RoleKey::from_public(key(role).public(), Millis(0))]);
    RoleKeys {
        proposer: keys(Role::Proposer),
        policy: keys(Role::Policy),
        approver: keys(Role::Approver),
        executor: keys(Role::Executor),
    }
}

pub(crate) fn root_document() -> TrustRootDocument {
    let until = NOW.plus_millis(YEAR);
    TrustRootDocument::first(
        label("example"),
        Millis(NOW.0 - YEAR),
        until,
        root_key(0).public(),
        role_keys(),
    )
}

pub(crate) fn trust_root() -> TrustRoot {
    TrustRoot::sign(&root_document(), &[&root_key(0)]).unwrap()
}

/// Signs any bytes as any type with any seed and writes the stored form, all without the library under test.
pub(crate) fn forge(payload_type: &str, payload: &[u8], seed: &[u8; 32]) -> Vec<u8> {
    let key = ed25519_dalek::SigningKey::from_bytes(seed);
    let keyid = SecretKey::from_seed(seed).public().keyid();
    let signature = STANDARD.encode(key.sign(&pae(payload_type, payload)).to_bytes());
    let payload = STANDARD.encode(payload);
    let payload_type = serde_json::to_string(payload_type).unwrap();
    format!(
        r#"{{"payload":"{payload}","payloadType":{payload_type},"signatures":[{{"keyid":"{keyid}","sig":"{signature}"}}]}}"#
    )
    .into_bytes()
}

/// The signed bytes of a stored envelope.
pub(crate) fn payload_of(envelope: &[u8]) -> Vec<u8> {
    let json: serde_json::Value = serde_json::from_slice(envelope).unwrap();
    STANDARD.decode(json["payload"].as_str().unwrap()).unwrap()
}

pub(crate) fn digest_of(envelope: &[u8]) -> Sha256Digest {
    Sha256Digest::of(&pae(IN_TOTO, &payload_of(envelope)))
}

/// One incident's ledger in the making.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) trust: TrustHistory,
    pub(crate) incident: IncidentId,
    pub(crate) envelopes: Vec<Vec<u8>>,
    /// What its events name as evidence.
    pub(crate) documents: Vec<Vec<u8>>,
    pub(crate) proposal: Option<DigestRef>,
    pub(crate) decision: Option<DigestRef>,
    pub(crate) approval: Option<DigestRef>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let trust: TrustHistory = trust_root().into();
        let incident = IncidentId::new(NOW, [7; 10]);
        let documents = evidence(&incident, trust.newest().reference());
        Self {
            trust,
            incident,
            envelopes: Vec::new(),
            documents,
            proposal: None,
            decision: None,
            approval: None,
        }
    }

    /// Proposed, decided to need approval, approved, merged.
    pub(crate) fn merged() -> Self {
        let mut ledger = Self::new();
        ledger.propose(|_| ());
        ledger.decide(|_| ());
        ledger.answer(|_| ());
        ledger.execute(|_| ());
        ledger
    }

    pub(crate) fn link(&self) -> Link {
        self.envelopes.last().map_or(Link::FIRST, |last| {
            Link::after(Head {
                events: self.envelopes.len() as u64,
                digest: digest_of(last),
            })
        })
    }

    pub(crate) fn block(&self, role: Role) -> EventBlock {
        let Link { seq, prev } = self.link();
        let mut entropy = [0; 10];
        entropy[0] = u8::try_from(seq).unwrap();
        EventBlock {
            id: EventId::new(NOW, entropy),
            incident: self.incident.clone(),
            seq,
            prev,
            project: project(),
            role,
            occurred_at: NOW,
            trust_root: self.trust.newest().reference(),
            policy: digest("the rules"),
            producer: producer(),
        }
    }

    /// Writes down an event. The bytes are signed without the notary, so that a test can write what it would refuse.
    pub(crate) fn push(&mut self, event: Event) -> DigestRef {
        let role = event.predicate_type().role();
        let draft = Statement::event(event).unwrap().draft().unwrap();
        self.push_raw(&draft, role)
    }

    pub(crate) fn push_raw(&mut self, payload: &[u8], role: Role) -> DigestRef {
        self.envelopes.push(forge(IN_TOTO, payload, &seed(role)));
        Sha256Digest::of(&pae(IN_TOTO, payload)).into()
    }

    pub(crate) fn proposal_event(&self) -> Proposal {
        Proposal {
            event: self.block(Role::Proposer),
            target: commit_target(),
            base: Base {
                branch: text("main"),
                commit: oid('b'),
            },
            title: Some(digest("Fix the sum")),
            body: Some(digest("It was off by one.")),
            failure: Failure {
                kind: FailureKind::Code,
                url: None,
                evidence: Some(digest("raw log")),
            },
            diagnosis: Diagnosis {
                sha256: digest("diagnosis").sha256,
                summary: text("off by one in sum()"),
            },
            agent: Agent {
                id: label("scripted"),
                model: None,
            },
            context_manifest: digest_of(&self.documents[0]).into(),
            tests: List::first_of([1, 2].map(|test| digest_of(&self.documents[test]).into())),
            intent_document: None,
            class: Some(Class::Functional),
            session: None,
        }
    }

    pub(crate) fn propose(&mut self, bend: impl FnOnce(&mut Proposal)) {
        let mut proposal = self.proposal_event();
        bend(&mut proposal);
        self.proposal = Some(self.push(Event::Proposal(Box::new(proposal))));
    }

    pub(crate) fn decision_event(&self) -> PolicyDecision {
        PolicyDecision {
            event: self.block(Role::Policy),
            proposal: self.proposal.unwrap_or_else(|| digest("no proposal")),
            target: commit_target(),
            verdict: Verdict::Approve,
            terminal: false,
            class: Class::Functional,
            rules: List::default(),
            reasons: List::first_of([text("a second opinion differs")]),
            opinion: None,
        }
    }

    pub(crate) fn decide(&mut self, bend: impl FnOnce(&mut PolicyDecision)) {
        let mut decision = self.decision_event();
        bend(&mut decision);
        self.decision = Some(self.push(Event::PolicyDecision(Box::new(decision))));
    }

    pub(crate) fn approval_event(&self) -> Approval {
        Approval {
            event: self.block(Role::Approver),
            answer: Answer::Approve,
            binding: bound_change(),
            request: digest("request"),
            proposal: self.proposal.unwrap_or_else(|| digest("no proposal")),
            decision: self.decision.unwrap_or_else(|| digest("no decision")),
            approver: Approver {
                principal: text("mailto:owner@example.org"),
            },
            method: IdentityMethod::Link,
            evidence: List::default(),
            token: TokenUse {
                sha256: digest("nonce").sha256,
                issued_at: NOW,
                expires_at: NOW.plus_seconds(3_600),
                consumed_at: NOW.plus_seconds(60),
            },
            comment: None,
        }
    }

    pub(crate) fn answer(&mut self, bend: impl FnOnce(&mut Approval)) {
        let mut approval = self.approval_event();
        bend(&mut approval);
        self.approval = Some(self.push(Event::Approval(Box::new(approval))));
    }

    pub(crate) fn execution_event(&self) -> Execution {
        Execution {
            event: self.block(Role::Executor),
            execution_id: ExecutionId::new(NOW, [9; 10]),
            by_us: true,
            proposal: self.proposal,
            authority: Some(AuthorityRef::Approval(
                self.approval.unwrap_or_else(|| digest("no approval")),
            )),
            method: MergeMethod::Squash,
            pull_request: 12,
            landed: Landed {
                commit: oid('c'),
                tree: oid('d'),
                parent: oid('b'),
            },
            approved_change: Some(digest("change")),
            observed_change: digest("change"),
            before: oid('b'),
            after: oid('c'),
            checkpoint: None,
        }
    }

    pub(crate) fn execute(&mut self, bend: impl FnOnce(&mut Execution)) {
        let mut execution = self.execution_event();
        bend(&mut execution);
        self.push(Event::Execution(Box::new(execution)));
    }

    pub(crate) fn escalate(&mut self, bend: impl FnOnce(&mut Escalation)) {
        let mut escalation = Escalation {
            event: self.block(Role::Executor),
            reason: EscalationReason::ChangeMismatch,
            blocks: true,
            expected: Some(digest("change")),
            observed: Some(digest("another change")),
            detail: None,
            proposal: self.proposal,
            evidence: List::default(),
        };
        bend(&mut escalation);
        self.push(Event::Escalation(Box::new(escalation)));
    }

    pub(crate) fn admit_gap(&mut self) {
        let gap = Gap {
            event: self.block(Role::Executor),
            reason: None,
            detail: text("the raw log is gone"),
            evidence: List::first_of([GoneEvidence {
                kind: label("log"),
                sha256: digest("raw log").sha256,
                signed_as: None,
            }]),
        };
        self.push(Event::Gap(Box::new(gap)));
    }

    /// What the store knows beside the envelopes.
    pub(crate) fn expectation(&self) -> Expectation {
        Expectation {
            incident: Some(self.incident.clone()),
            project: Some(self.block(Role::Proposer).project),
            head: self.envelopes.last().map(|last| Head {
                events: self.envelopes.len() as u64,
                digest: digest_of(last),
            }),
        }
    }

    pub(crate) fn verify(&self) -> ChainReport {
        self.verify_as(&self.expectation())
    }

    /// Verifies the chain, has both verifiers judge a bundle of it, and asserts that all say the same.
    #[track_caller]
    pub(crate) fn verify_as(&self, expectation: &Expectation) -> ChainReport {
        let report = verify_chain(&self.trust, expectation, &self.envelopes);
        let pin = Pin::Root(Box::new(self.trust.newest().clone()));
        let bundled = verify_bundle(&self.bundle(), &pin, None).unwrap();
        // A line break in an envelope makes two lines of it.
        let whole = |envelope: &Vec<u8>| !envelope.contains(&b'\n');
        if self.envelopes.iter().all(whole) {
            let ours: BTreeSet<_> = report
                .failures
                .iter()
                .map(|one| (one.seq, one.rule))
                .collect();
            let failures = bundled.report.failures.iter();
            let found: BTreeSet<_> = failures
                .filter_map(|one| match one.rule {
                    BundleRule::Chain(rule) => Some((one.seq, rule)),
                    _ => None,
                })
                .collect();
            let expected = |(_, rule): &&(u64, Rule)| {
                // What a bundle's verifier does not know.
                !matches!(rule, Rule::Head | Rule::Incident | Rule::Project)
            };
            let missed: Vec<_> = ours.difference(&found).filter(expected).collect();
            let further: Vec<_> = found.difference(&ours).filter(expected).collect();
            assert!(
                missed.is_empty() && further.is_empty(),
                "{report:#?} {bundled:#?}"
            );
        }
        report
    }

    /// A bundle of it, without a log: by that alone it cannot be verified.
    fn bundle(&self) -> Vec<u8> {
        let roots = self.trust.versions();
        let contents = BundleContents {
            trust_roots: roots
                .map(|root| (root.document().version, root.to_bytes().unwrap()))
                .collect(),
            events: self
                .envelopes
                .iter()
                .map(|one| (one.clone(), Vec::new()))
                .collect(),
            ..BundleContents::default()
        };
        contents.write().unwrap()
    }

    /// Asserts that the chain is invalid because of `rule` at `seq`, and returns that failure's words.
    #[track_caller]
    pub(crate) fn assert_broken(&self, seq: u64, rule: Rule) -> String {
        let report = self.verify();
        assert_eq!(report.verdict, Outcome::Invalid, "{report:#?}");
        let failure = report
            .failures
            .iter()
            .find(|failure| failure.seq == seq && failure.rule == rule);
        let failure = failure.unwrap_or_else(|| panic!("no {rule} at {seq}: {report:#?}"));
        format!("expected {}, found {}", failure.expected, failure.found)
    }

    #[track_caller]
    pub(crate) fn assert_valid(&self) {
        let report = self.verify();
        assert_eq!(report.verdict, Outcome::Valid, "{report:#?}");
        assert!(report.failures.is_empty());
    }
}

/// The signed manifest and two signed test results, then what they name.
fn evidence(incident: &IncidentId, trust_root: TrustRootRef) -> Vec<Vec<u8>> {
    let manifest = ContextManifest {
        document: evidence_block(Role::Proposer, incident, trust_root),
        items: List::default(),
        count: 30,
        all: Some(digest("the whole list")),
        prompt: Some(digest("the prompt")),
    };
    let subject = |name: &str| vec![Subject::sha256(name, digest(name).sha256)];
    let sign = |subjects, evidence| {
        let statement = Statement::evidence(subjects, evidence).unwrap();
        let role = statement.role();
        forge(IN_TOTO, &statement.draft().unwrap(), &seed(role))
    };
    let result = |result, run: &str| TestResult {
        result,
        configuration: List::first_of([ResourceDescriptor {
            name: Some(text("run")),
            uri: None,
            digest: Some(
                [("sha256".to_owned(), digest(run).sha256.to_string())]
                    .into_iter()
                    .collect(),
            ),
            media_type: None,
        }]),
        url: None,
        passed_tests: None,
        warned_tests: None,
        failed_tests: None,
    };
    let red = result(TestOutcome::Failed, "the red run");
    let green = result(TestOutcome::Passed, "the green run");
    vec![
        sign(
            subject("commit"),
            Evidence::ContextManifest(Box::new(manifest)),
        ),
        sign(subject("tree"), Evidence::TestResult(Box::new(red))),
        sign(subject("tree"), Evidence::TestResult(Box::new(green))),
        b"the whole list".to_vec(),
        b"the red run".to_vec(),
        b"the green run".to_vec(),
    ]
}

/// The block of an evidence document.
pub(crate) fn evidence_block(
    role: Role,
    incident: &IncidentId,
    trust_root: TrustRootRef,
) -> EvidenceBlock {
    EvidenceBlock {
        id: EventId::new(NOW, [8; 10]),
        incident: incident.clone(),
        project: project(),
        role,
        occurred_at: NOW,
        trust_root,
        producer: producer(),
    }
}

pub(crate) fn project() -> Project {
    Project {
        uri: text("https://github.com/example/shop"),
        repository_id: label("4711"),
    }
}

pub(crate) fn producer() -> Producer {
    Producer {
        id: text("https://example.org/caretaker"),
        version: label("0.1.0"),
    }
}

pub(crate) fn commit_target() -> Target {
    Target::Commit {
        change: ChangeRef {
            algorithm: text("caretaker/change-set/v1"),
            object_format: ObjectFormat::Sha1,
            sha256: digest("change").sha256,
            count: 2,
        },
        head: caretaker::attest::predicate::Head {
            commit: oid('e'),
            tree: oid('d'),
        },
    }
}

pub(crate) fn bound_change() -> BoundChange {
    BoundChange {
        repository_id: label("4711"),
        host: label("github.com"),
        pull_request: 12,
        base_ref: text("main"),
        merge_base: oid('b'),
        head_ref: text("caretaker/fix-sum"),
        head_commit: oid('e'),
        head_tree: oid('d'),
        count: 2,
        change: digest("change"),
        merge_method: MergeMethod::Squash,
        title: digest("Fix the sum"),
        body: digest("It was off by one."),
        expires_at: NOW.plus_seconds(7_200),
        sha256: digest("binding").sha256,
    }
}
