//! What a story signs.

use caretaker::approve::Binding;
use caretaker::attest::dsse::{IN_TOTO, pae};
use caretaker::attest::predicate as signed;
use caretaker::attest::{DigestRef, Envelope, Event, Label, List, Role, Statement, Text};
use caretaker::change::Sha256Digest;
use caretaker::gate::{Class, Verdict};
use caretaker::id::{EventId, ProposalId};
use caretaker::incident::{DecisionFact, Draft, Fact, FailureKind, FixFact, Outcome};

use super::scene::{NOW, oid};
use super::story::Story;

impl Story<'_> {
    /// Drafts a proposal and the decision about it.
    pub(super) async fn decide(
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
            context_manifest: Envelope::parse(&self.manifest().bytes)
                .unwrap()
                .digest()
                .into(),
            tests: List::default(),
            intent_document: Some(of(&self.project.intent)),
            class: Some(signed_class),
            session: None,
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
        let (proposal_event, decision_event) = (proposal.pae, decision.pae);
        self.step(Outcome {
            drafts: vec![proposal, decision],
            ..Outcome::fact(Fact::Decided(DecisionFact {
                proposal: ProposalId::new(NOW, [5; 10]),
                verdict,
                class,
                document,
                rules: self.project.rules_digest,
                proposal_event,
                decision_event,
            }))
        })
        .await;
    }

    pub(super) fn block(&self, role: Role, further: u64) -> signed::EventBlock {
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

    pub(super) fn draft(&self, event: Event, further: u64) -> Draft {
        let role = event.predicate_type().role();
        let statement = Statement::event(event).unwrap().draft().unwrap();
        Draft {
            seq: self.snapshot.ledger.drafted + further,
            role,
            pae: Sha256Digest::of(&pae(IN_TOTO, &statement)),
            statement,
        }
    }
}

/// A binding as it is signed.
pub(super) fn bound(binding: &Binding) -> signed::BoundChange {
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
