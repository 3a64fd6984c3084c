//! An incident as it goes, told by committing what a worker's steps would commit.

use caretaker::approve::{ApprovalRequest, Binding, Consumption, MergeMethod, TokenHash};
use caretaker::attest::predicate as signed;
use caretaker::attest::{Event, List, Role, Text};
use caretaker::change::{
    ChangeDocument, ChangeSet, FileChange, Mode, ObjectFormat, RepoPath, Sha256Digest, Side,
};
use caretaker::clock::Millis;
use caretaker::config::rules_from_yaml;
use caretaker::gate::{Class, Measured, Rules, SecondOpinion, Verdict, evaluate};
use caretaker::id::{ApprovalId, ExecutionId, IncidentId};
use caretaker::incident::{
    DiagnosisFact, EscalationReason, EvidenceDocument, Fact, Failure, FailureKind, FixFact,
    NewLink, Outcome, Reproduction, SignedEnvelope, Snapshot,
};
use caretaker::reconcile::Difference;
use caretaker::store::{Claim, Commit, Observed, Project};

use super::runs::plain;
use super::scene::{LEASE, NOW, Scene, after, oid, owner};
use super::statements::bound;

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
    pub(super) project: Project,
    pub(super) snapshot: Snapshot,
    pub(super) at: Millis,
    claim: Claim,
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
            detail: None,
        };
        let observed = scene.store.observe(project, &failure, None, &incident, NOW);
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
    pub(super) async fn step(&mut self, outcome: Outcome) {
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
                repeated: Vec::new(),
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
            manifest: self.manifest().digest(),
            session: None,
        };
        self.step(Outcome {
            evidence: vec![self.manifest()],
            ..Outcome::fact(Fact::Diagnosed(diagnosis))
        })
        .await;
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
            patch: None,
            session: None,
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
            checkpoint: None,
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
}
