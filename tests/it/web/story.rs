//! An incident as it goes, told by committing what a worker's steps would commit.

use std::collections::BTreeMap;

use caretaker::approve::{ApprovalRequest, Binding, Consumption, MergeMethod, TokenHash};
use caretaker::attest::dsse::{Envelope, IN_TOTO, pae};
use caretaker::attest::predicate as signed;
use caretaker::attest::{DigestRef, Event, Evidence, Label, List, Role, Statement, Subject, Text};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, Oid, RepoPath, Sha256Digest, Side,
};
use caretaker::clock::Millis;
use caretaker::config::rules_from_yaml;
use caretaker::gate::{Class, Measured, Rules, SecondOpinion, Verdict, evaluate};
use caretaker::id::{ApprovalId, EventId, ExecutionId, IncidentId, ProposalId};
use caretaker::incident::{
    DecisionFact, DiagnosisFact, Draft, EscalationReason, EvidenceDocument, Fact, Failure,
    FailureKind, FixFact, NewLink, Outcome, Reproduction, SignedEnvelope, Snapshot,
};
use caretaker::reconcile::Difference;
use caretaker::store::{Claim, Commit, Observed, Project};
use caretaker::workspace::red_green::{TestEvidence, TestStatus};

use super::scene::{LEASE, NOW, Scene, after, oid, owner};

/// Everything in a story that is not ours: a test may put anything here.
#[derive(Clone)]
pub(super) struct Words {
    pub(super) job: String,
    pub(super) cause: String,
    pub(super) remark: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) path: String,
    pub(super) tail: String,
    pub(super) pull_url: String,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            job: "test".to_owned(),
            cause: "A delivery that is due today counts as late, because the comparison includes the day itself.".to_owned(),
            remark: "scripted: this coder plays back a prepared diagnosis and a prepared fix".to_owned(),
            title: "A delivery that is due today is not late".to_owned(),
            body: "The comparison with the due day now excludes the day itself.\n\nA test holds the boundary.".to_owned(),
            path: "src/deadline.rs".to_owned(),
            tail: "running 4 tests\ntest deadline::tests::due_today_is_not_late ... FAILED\n\ntest result: FAILED. 3 passed; 1 failed".to_owned(),
            pull_url: "https://github.example/example/parcel/pull/7".to_owned(),
        }
    }
}

/// One incident on its way.
pub(super) struct Story<'a> {
    pub(super) scene: &'a Scene,
    pub(super) incident: IncidentId,
    pub(super) words: Words,
    project: Project,
    claim: Claim,
    snapshot: Snapshot,
    at: Millis,
}

/// What a decision drafts.
struct Proposed {
    proposal: Sha256Digest,
    decision: Sha256Digest,
}

impl<'a> Story<'a> {
    /// A failed run becomes an incident.
    pub(super) async fn begin(scene: &'a Scene, words: Words) -> Self {
        Self::begin_in(scene, &scene.project, words).await
    }

    pub(super) async fn begin_in(scene: &'a Scene, project: &Project, words: Words) -> Self {
        let incident = IncidentId::new(NOW, scene.fresh());
        let failure = Failure {
            kind: FailureKind::Code,
            workflow_id: 7,
            workflow: Some("ci".to_owned()),
            scope: "push".to_owned(),
            base_ref: "main".to_owned(),
            job: Some(words.job.clone()),
            job_id: Some(9),
            run_id: 1_042,
            attempt: 1,
            commit: oid(0xb1),
            url: Some("https://github.example/example/parcel/actions/runs/1042".to_owned()),
        };
        let observed = scene.store.observe(project, &failure, &incident, NOW);
        assert_eq!(observed.await.unwrap(), Observed::Opened(incident.clone()));
        let claim = scene.store.claim("worker-1", NOW, LEASE).await.unwrap();
        let claim = claim.unwrap();
        assert_eq!(claim.incident, incident);
        let scope = scene.store.within(&project.organisation);
        let snapshot = scope.snapshot(&incident, NOW).await.unwrap().unwrap();
        Self {
            scene,
            incident,
            words,
            project: project.clone(),
            claim,
            snapshot,
            at: NOW,
        }
    }

    /// Commits a step, a few seconds after the one before, and signs what it drafts.
    async fn step(&mut self, outcome: Outcome) {
        self.commit(outcome).await;
        while self.snapshot.ledger.appended < self.snapshot.ledger.drafted {
            self.sign_next().await;
        }
    }

    async fn commit(&mut self, outcome: Outcome) {
        self.at = self.at.plus_seconds(3);
        let store = &self.scene.store;
        let commit = store.commit(&self.claim, &self.snapshot, &outcome, self.at, LEASE);
        match commit.await.unwrap() {
            Commit::Done(after) => self.snapshot = *after,
            other => panic!("not committed: {other:?}"),
        }
    }

    async fn sign_next(&mut self) {
        let seq = self.snapshot.ledger.appended;
        let scope = self.scene.store.within(&self.project.organisation);
        let draft = scope.draft(&self.incident, seq).await.unwrap().unwrap();
        let envelope = Scene::sign(draft.role, &draft.statement);
        let outcome = Outcome {
            envelope: Some(SignedEnvelope { seq, envelope }),
            ..Outcome::default()
        };
        self.commit(outcome).await;
    }

    /// The failure shows in the sandbox, the log is read, the coder finds a cause.
    pub(super) async fn investigate(&mut self) {
        let red = self.test_run(oid(0xa1), false);
        let evidence = red[1].digest();
        self.step(Outcome {
            evidence: red.into(),
            ..Outcome::fact(Fact::Reproduced(Reproduction::Red {
                command: vec!["cargo".to_owned(), "test".to_owned()],
                sandbox: "bubblewrap without network".to_owned(),
                evidence,
            }))
        })
        .await;
        let reading = plain(&serde_json::json!({
            "job": 9,
            "extraction": {
                "raw": Sha256Digest::of(b"raw log"),
                "extraction": Sha256Digest::of(b"facts"),
                "bytes": 4_096, "omitted": 0, "hidden_characters": 0,
                "facts": [{"tool": "cargo-test", "kind": "test-failed", "test_name": "deadline::tests::due_today_is_not_late", "file": "src/deadline.rs", "line": 31}],
            },
            "report": {},
        }));
        self.step(Outcome {
            facts: vec![Fact::Extracted {
                evidence: reading.digest(),
                count: 1,
                suspicious: false,
                missing: None,
            }],
            evidence: vec![reading],
            ..Outcome::default()
        })
        .await;
        let diagnosis = DiagnosisFact {
            cause: self.words.cause.clone(),
            files: vec![self.words.path.parse().unwrap()],
            confidence: 920,
            summary: self.words.cause.clone(),
            agent: "scripted".to_owned(),
            model: None,
            remark: self.words.remark.clone(),
            manifest: Sha256Digest::of(b"manifest"),
        };
        self.step(Outcome::fact(Fact::Diagnosed(diagnosis))).await;
    }

    /// The policy refuses the files that the coder means to change.
    pub(super) async fn refuse(&mut self) {
        self.step(Outcome::fact(Fact::Screened { passed: false }))
            .await;
        let target = signed::Target::Files(signed::FileList {
            sha256: Sha256Digest::of(self.words.path.as_bytes()),
            count: 1,
        });
        let document = serde_json::json!({
            "verdict": "deny", "class": "infrastructure",
            "denied": [{"path": self.words.path, "rule": ".github/**", "reason": "the pipeline is changed by people only"}],
            "matched": [], "reasons": [format!("denied: .github/** (path {})", self.words.path)],
        });
        self.decide(target, None, Verdict::Deny, Class::Infrastructure, document)
            .await;
    }

    /// The coder's fix is proven, and the gate asks for approval of it.
    pub(super) async fn fix(&mut self) {
        self.step(Outcome::fact(Fact::Screened { passed: true }))
            .await;
        let runs = [
            self.test_run(oid(0xa1), false),
            self.test_run(oid(0xa2), true),
            self.test_run(oid(0xa3), true),
        ];
        let fix = FixFact {
            branch: format!("caretaker/{}-1", self.incident),
            base_commit: oid(0xb1),
            commit: oid(0xc1),
            tree: oid(0xd1),
            change: ChangeDocument::from(&self.change()),
            title: self.words.title.clone(),
            body: self.words.body.clone(),
            lines: Some(14),
            binary: Some(false),
            tests: runs.iter().map(|run| run[1].digest()).collect(),
        };
        self.step(Outcome {
            evidence: runs.into_iter().flatten().collect(),
            ..Outcome::fact(Fact::Fixed(fix))
        })
        .await;
        let change = self.change();
        let rules = b"denied: ['.github/**']\nsensitive: [{glob: 'src/deadline.rs', reason: customers see these dates}]\nlimits: {lines: 200}\n";
        let rules = Rules::compile(rules_from_yaml(rules, "rules").unwrap(), rules).unwrap();
        let decision = evaluate(
            &rules,
            &Measured {
                lines: Some(14),
                binary: Some(0),
                opinion: SecondOpinion::NotMeasured,
                ..Measured::nothing_but(&change)
            },
        );
        assert_eq!(decision.verdict(), Verdict::Approve);
        let fix = self.snapshot.fix().unwrap().clone();
        let target = signed::Target::Commit {
            change: signed::ChangeRef {
                algorithm: Text::new("caretaker/change-set/v1").unwrap(),
                object_format: ObjectFormat::Sha1,
                sha256: fix.change.digest,
                count: fix.change.count as u64,
            },
            head: signed::Head {
                commit: fix.commit,
                tree: fix.tree,
            },
        };
        let document = serde_json::to_value(decision.document()).unwrap();
        let (verdict, class) = (decision.verdict(), decision.class());
        self.decide(target, Some(&fix), verdict, class, document)
            .await;
    }

    /// The pull request is open and the owner is asked through a link with this token.
    pub(super) async fn ask(&mut self, token: TokenHash, seconds: i64) {
        let commit = oid(0xc1);
        self.step(Outcome::fact(Fact::Pushed { commit })).await;
        self.step(Outcome::fact(Fact::Opened {
            number: 7,
            url: self.words.pull_url.clone(),
        }))
        .await;
        let request = self.request(after(seconds));
        let link = NewLink {
            approval: ApprovalId::new(NOW, self.scene.fresh()),
            token,
            request: request.digest(),
            principal: owner(),
            issued_at: self.at,
            expires_at: after(seconds),
        };
        let sent = Fact::LinkSent {
            approval: link.approval.clone(),
        };
        let evidence = EvidenceDocument {
            media_type: "application/json",
            bytes: request.to_bytes(),
        };
        self.step(Outcome {
            facts: vec![Fact::Requested {
                request: Box::new(request),
            }],
            evidence: vec![evidence],
            link: Some(link),
            ..Outcome::default()
        })
        .await;
        self.step(Outcome::fact(sent)).await;
        self.rest(after(seconds), "waiting for the owner").await;
    }

    /// The approver signs the answer that was given through the link.
    pub(super) async fn sign_the_answer(&mut self) {
        let scope = self.scene.store.within(&self.project.organisation);
        self.at = self.scene.clock_now();
        let snapshot = scope.snapshot(&self.incident, self.at).await.unwrap();
        self.snapshot = snapshot.unwrap();
        let claim = self.scene.store.claim("worker-1", self.at, LEASE).await;
        self.claim = claim.unwrap().unwrap();
        let digest = self.snapshot.consumption().unwrap();
        let (_, record) = scope.evidence(&digest).await.unwrap().unwrap();
        let record: Consumption = serde_json::from_slice(&record).unwrap();
        let request = self.snapshot.request().unwrap().clone();
        let approval = signed::Approval {
            event: self.block(Role::Approver, 0),
            answer: signed::Answer::Approve,
            binding: bound(&request.binding),
            request: request.digest().into(),
            proposal: request.proposal.into(),
            decision: request.decision.into(),
            approver: signed::Approver {
                principal: Text::new(request.principal.as_str()).unwrap(),
            },
            method: signed::IdentityMethod::Link,
            evidence: List::default(),
            token: signed::TokenUse {
                sha256: record.token.0,
                issued_at: record.issued_at,
                expires_at: record.expires_at,
                consumed_at: record.consumed_at,
            },
            comment: record.comment.as_deref().map(Text::clipped),
        };
        let draft = self.draft(Event::Approval(Box::new(approval)), 0);
        let event = draft.pae;
        self.step(Outcome {
            drafts: vec![draft],
            ..Outcome::fact(Fact::ApprovalDrafted { event })
        })
        .await;
    }

    /// It is merged, and what landed is what was approved.
    pub(super) async fn land(&mut self) {
        let execution = ExecutionId::new(NOW, [9; 10]);
        self.step(Outcome::fact(Fact::Merging {
            execution: execution.clone(),
            comparisons: 1,
            base_tip: oid(0xb1),
        }))
        .await;
        let answer = format!("merged as {}", oid(0xe1));
        self.step(Outcome::fact(Fact::MergeAsked {
            execution: execution.clone(),
            answer,
        }))
        .await;
        let change = self.change().digest();
        let landed = signed::Execution {
            event: self.block(Role::Executor, 0),
            execution_id: execution.clone(),
            by_us: true,
            proposal: self
                .snapshot
                .decision()
                .map(|decision| decision.proposal_event.into()),
            authority: self
                .snapshot
                .approval_event()
                .map(|event| signed::AuthorityRef::Approval(event.into())),
            method: signed::MergeMethod::Squash,
            pull_request: 7,
            landed: signed::Landed {
                commit: oid(0xe1),
                tree: oid(0xd1),
                parent: oid(0xb1),
            },
            approved_change: Some(change.into()),
            observed_change: change.into(),
            before: oid(0xb1),
            after: oid(0xe1),
            checkpoint: None,
        };
        let draft = self.draft(Event::Execution(Box::new(landed)), 0);
        let event = draft.pae;
        self.step(Outcome {
            drafts: vec![draft],
            ..Outcome::fact(Fact::Landed {
                execution: Some(execution),
                commit: oid(0xe1),
                observed: change,
                matches: true,
                event,
            })
        })
        .await;
        self.end().await;
    }

    /// The pull request is not what was approved any more.
    pub(super) async fn hand_over(&mut self) {
        let approved = self.change().digest();
        let observed = Sha256Digest::of(b"another change");
        let detail = "the pull request has another head than the one that was approved";
        let escalation = signed::Escalation {
            event: self.block(Role::Executor, 0),
            reason: signed::EscalationReason::ChangeMismatch,
            blocks: true,
            expected: Some(approved.into()),
            observed: Some(observed.into()),
            detail: Some(Text::new(detail).unwrap()),
            proposal: self
                .snapshot
                .decision()
                .map(|decision| decision.proposal_event.into()),
            evidence: List::default(),
        };
        let draft = self.draft(Event::Escalation(Box::new(escalation)), 0);
        let difference = |rule: &str, expected: String, found: String| Difference {
            rule: rule.to_owned(),
            expected,
            found,
        };
        self.step(Outcome {
            drafts: vec![draft],
            ..Outcome::fact(Fact::Escalated {
                reason: EscalationReason::ChangeMismatch,
                detail: detail.to_owned(),
                differences: vec![
                    difference("head-commit", oid(0xc1).to_string(), oid(0xc2).to_string()),
                    difference("change", approved.to_string(), observed.to_string()),
                ],
            })
        })
        .await;
        self.end().await;
    }

    /// Nothing more happens by itself.
    pub(super) async fn end(&self) {
        let version = self.snapshot.version;
        let rest = self.scene.store.rest(&self.claim, version, None, "over", 0);
        assert!(rest.await.unwrap());
    }

    pub(super) async fn rest(&self, until: Millis, reason: &str) {
        let version = self.snapshot.version;
        let rest = self
            .scene
            .store
            .rest(&self.claim, version, Some(until), reason, 0);
        assert!(rest.await.unwrap());
    }

    /// What the owner is asked.
    pub(super) fn request(&self, expires_at: Millis) -> ApprovalRequest {
        let decision = self.snapshot.decision().unwrap();
        let fix = self.snapshot.fix().unwrap();
        ApprovalRequest {
            binding: Binding {
                repository_id: self.project.repository_id.clone(),
                host: self.project.host.clone(),
                pull_request: 7,
                base_ref: "main".to_owned(),
                merge_base: fix.base_commit,
                head_ref: fix.branch.clone(),
                head_commit: fix.commit,
                head_tree: fix.tree,
                change: fix.change.clone(),
                merge_method: MergeMethod::Squash,
                title: fix.title.clone(),
                body: fix.body.clone(),
                expires_at,
            },
            proposal: decision.proposal_event,
            decision: decision.decision_event,
            principal: owner(),
        }
    }

    fn change(&self) -> ChangeSet {
        let side = |byte| Side {
            mode: Mode::Regular,
            oid: oid(byte),
        };
        let entry = |path: &str, old, new| FileChange {
            path: RepoPath::from_bytes(path.as_bytes()).unwrap(),
            old,
            new,
        };
        let entries = vec![
            entry(&self.words.path, side(0x51), side(0x61)),
            entry(
                "tests/deadline.rs",
                Side::absent(ObjectFormat::Sha1),
                side(0x62),
            ),
        ];
        ChangeSet::new(ObjectFormat::Sha1, entries).unwrap()
    }

    async fn decide(
        &mut self,
        target: signed::Target,
        fix: Option<&FixFact>,
        verdict: Verdict,
        class: Class,
        document: serde_json::Value,
    ) {
        let of = |text: &str| DigestRef::from(Sha256Digest::of(text.as_bytes()));
        let signed_class = match class {
            Class::Functional => signed::Class::Functional,
            Class::Data => signed::Class::Data,
            Class::Infrastructure => signed::Class::Infrastructure,
        };
        let proposal = signed::Proposal {
            event: self.block(Role::Proposer, 0),
            target: target.clone(),
            base: signed::Base {
                branch: Text::new("main").unwrap(),
                commit: oid(0xb1),
            },
            title: fix.map(|fix| of(&fix.title)),
            body: fix.map(|fix| of(&fix.body)),
            failure: signed::Failure {
                kind: FailureKind::Code,
                url: None,
                evidence: Some(of("raw log")),
            },
            diagnosis: signed::Diagnosis {
                sha256: of("diagnosis").sha256,
                summary: Text::clipped(&self.words.cause),
            },
            agent: signed::Agent {
                id: Label::new("scripted").unwrap(),
                model: None,
            },
            context_manifest: of("manifest"),
            tests: List::default(),
            intent_document: Some(of(&self.project.intent)),
            class: Some(signed_class),
        };
        let proposal = self.draft(Event::Proposal(Box::new(proposal)), 0);
        let decision = signed::PolicyDecision {
            event: self.block_after(Role::Policy, 1, Some(proposal.pae)),
            proposal: proposal.pae.into(),
            target,
            verdict: match verdict {
                Verdict::Deny => signed::Verdict::Deny,
                Verdict::Approve => signed::Verdict::Approve,
                Verdict::Free => signed::Verdict::Free,
            },
            terminal: verdict == Verdict::Deny,
            class: signed_class,
            rules: List::default(),
            reasons: List::default(),
            opinion: None,
        };
        let decision = self.draft(Event::PolicyDecision(Box::new(decision)), 1);
        let proposed = Proposed {
            proposal: proposal.pae,
            decision: decision.pae,
        };
        self.step(Outcome {
            drafts: vec![proposal, decision],
            ..Outcome::fact(Fact::Decided(DecisionFact {
                proposal: ProposalId::new(NOW, [5; 10]),
                verdict,
                class,
                document,
                rules: self.project.rules_digest,
                proposal_event: proposed.proposal,
                decision_event: proposed.decision,
            }))
        })
        .await;
    }

    fn block(&self, role: Role, further: u64) -> signed::EventBlock {
        self.block_after(role, further, self.snapshot.ledger.head)
    }

    fn block_after(
        &self,
        role: Role,
        further: u64,
        prev: Option<Sha256Digest>,
    ) -> signed::EventBlock {
        let seq = self.snapshot.ledger.drafted + further;
        let mut entropy = [0; 10];
        entropy[0] = u8::try_from(seq).unwrap();
        signed::EventBlock {
            id: EventId::new(NOW, entropy),
            incident: self.incident.clone(),
            seq,
            prev: prev.map(Into::into),
            project: signed::Project {
                uri: Text::new(&self.project.url).unwrap(),
                repository_id: Label::new(&self.project.repository_id).unwrap(),
            },
            role,
            occurred_at: self.at,
            trust_root: self.scene.trust.newest().reference(),
            policy: self.project.rules_digest.into(),
            producer: signed::Producer {
                id: Text::new("urn:caretaker:worker").unwrap(),
                version: Label::new("0.1.0").unwrap(),
            },
        }
    }

    fn draft(&self, event: Event, further: u64) -> Draft {
        let role = event.predicate_type().role();
        let statement = Statement::event(event).unwrap().draft().unwrap();
        Draft {
            seq: self.snapshot.ledger.drafted + further,
            role,
            pae: Sha256Digest::of(&pae(IN_TOTO, &statement)),
            statement,
        }
    }

    /// A run's whole record, and its signed result.
    fn test_run(&self, tree: Oid, passed: bool) -> [EvidenceDocument; 2] {
        let run = TestEvidence {
            tree,
            argv: ["cargo", "test", "--no-fail-fast"]
                .map(str::to_owned)
                .into(),
            directory: String::new(),
            status: TestStatus::Exited(if passed { 0 } else { 101 }),
            failed: if passed {
                Vec::new()
            } else {
                vec!["deadline::tests::due_today_is_not_late".to_owned()]
            },
            stdout: Sha256Digest::of(b"stdout"),
            stderr: Sha256Digest::of(b"stderr"),
            tail: if passed {
                "test result: ok. 4 passed; 0 failed".to_owned()
            } else {
                self.words.tail.clone()
            },
            elapsed_ms: 2_340,
        };
        let whole = plain(&run);
        let record = signed::ResourceDescriptor {
            name: Some(Text::new("run").unwrap()),
            uri: None,
            digest: Some(BTreeMap::from([(
                "sha256".to_owned(),
                whole.digest().to_string(),
            )])),
            media_type: None,
        };
        let result = signed::TestResult {
            result: if passed {
                signed::TestOutcome::Passed
            } else {
                signed::TestOutcome::Failed
            },
            configuration: List::first_of([record]),
            url: None,
            passed_tests: None,
            warned_tests: None,
            failed_tests: None,
        };
        let subject = Subject {
            name: "tree".to_owned(),
            digest: BTreeMap::from([("gitTree".to_owned(), tree.to_string())]),
        };
        let statement = Statement::evidence(vec![subject], Evidence::TestResult(Box::new(result)));
        let bytes = Scene::sign(Role::Proposer, &statement.unwrap().draft().unwrap());
        assert!(Envelope::parse(&bytes).is_ok());
        let envelope = EvidenceDocument {
            media_type: "application/vnd.dsse.envelope.v1+json",
            bytes,
        };
        [whole, envelope]
    }
}

fn plain(document: &impl serde::Serialize) -> EvidenceDocument {
    EvidenceDocument {
        media_type: "application/json",
        bytes: serde_json::to_vec(document).unwrap(),
    }
}

fn bound(binding: &Binding) -> signed::BoundChange {
    let of = |text: &str| Sha256Digest::of(text.as_bytes()).into();
    signed::BoundChange {
        repository_id: Label::new(&binding.repository_id).unwrap(),
        host: Label::new(&binding.host).unwrap(),
        pull_request: binding.pull_request,
        base_ref: Text::new(&binding.base_ref).unwrap(),
        merge_base: binding.merge_base,
        head_ref: Text::new(&binding.head_ref).unwrap(),
        head_commit: binding.head_commit,
        head_tree: binding.head_tree,
        count: binding.change.count as u64,
        change: binding.change_digest().into(),
        merge_method: signed::MergeMethod::Squash,
        title: of(&binding.title),
        body: of(&binding.body),
        expires_at: binding.expires_at,
        sha256: binding.digest(),
    }
}
