//! What events may follow each other, and that each refers to what it says it refers to.

use std::collections::{BTreeMap, BTreeSet};

use super::super::digest::DigestRef;
use super::super::predicate::{
    Answer, AuthorityRef, ChangeRef, Head, MergeMethod, Project, Target, Verdict,
};
use super::super::role::PredicateType;
use super::super::text::shown;
use super::step::{Answering, Binding, Deciding, Executing, Proposing, Tale};
use super::{Refusal, Rule};
use crate::change::Sha256Digest;

/// What the chain said so far.
#[derive(Default)]
pub(super) struct Story {
    // Boxed, since a map makes room for several at once, and a log has a chain of a few events for each of many incidents.
    proposals: BTreeMap<Sha256Digest, Box<Proposed>>,
    newest: Option<Sha256Digest>,
    decisions: BTreeMap<Sha256Digest, Decided>,
    answers: BTreeMap<Sha256Digest, Box<Answered>>,
    /// What closes the chain, if something does.
    closed: Option<Closed>,
    /// Events that are there and cannot be verified, so that nobody knows what they say.
    unread: BTreeSet<Sha256Digest>,
}

#[derive(Clone, Copy)]
enum Closed {
    Denied,
    Executed,
}

struct Proposed {
    what: Proposing,
    decided: bool,
    /// The last answer about it.
    answer: Option<Sha256Digest>,
}

struct Decided {
    proposal: Sha256Digest,
    verdict: Verdict,
    void: bool,
}

struct Answered {
    proposal: Sha256Digest,
    answer: Answer,
    change: Sha256Digest,
    method: MergeMethod,
    pull_request: u64,
    void: bool,
}

impl Story {
    /// Whether a denial or an execution ended the chain.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Takes an event of which only the digest is known.
    pub(super) fn pass_over(&mut self, digest: Sha256Digest) {
        self.unread.insert(digest);
    }

    /// Takes the next event, whose digest is `digest` and which names `project`, and says what does not fit.
    pub(super) fn take(
        &mut self,
        digest: Sha256Digest,
        tale: Tale,
        project: &Project,
    ) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = self.check_open(tale.kind()).into_iter().collect();
        match tale {
            Tale::Proposal(proposal) => self.propose(digest, proposal),
            Tale::PolicyDecision(decision) => refusals.extend(self.decide(digest, &decision)),
            Tale::Approval(approval) => refusals.extend(self.answer(digest, &approval, project)),
            Tale::Execution(execution) => refusals.extend(self.execute(&execution)),
            Tale::Escalation { blocks, proposal } => {
                refusals.extend(self.escalate(blocks, proposal));
            }
            Tale::Gap => {}
        }
        refusals
    }

    /// Nothing but a gap follows a terminal denial, nothing but an escalation or a gap an execution.
    fn check_open(&self, kind: PredicateType) -> Option<Refusal> {
        let (allowed, expected) = match self.closed? {
            Closed::Denied => (
                kind == PredicateType::Gap,
                "the end of the chain after a terminal denial",
            ),
            Closed::Executed => (
                matches!(kind, PredicateType::Gap | PredicateType::Escalation),
                "only escalations and gaps after an execution",
            ),
        };
        (!allowed).then(|| Refusal::invalid(Rule::Order, expected, kind.name()))
    }

    fn propose(&mut self, digest: Sha256Digest, what: Proposing) {
        let proposed = Proposed {
            what,
            decided: false,
            answer: None,
        };
        self.proposals.insert(digest, Box::new(proposed));
        self.newest = Some(digest);
    }

    fn decide(&mut self, digest: Sha256Digest, decision: &Deciding) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = self.check_newest(decision.proposal).into_iter().collect();
        if let Some(proposed) = self.proposals.get_mut(&decision.proposal.sha256) {
            // Deny, then allow: the second decision never counts.
            if std::mem::replace(&mut proposed.decided, true) {
                refusals.push(Refusal::invalid(
                    Rule::Order,
                    "one decision for a proposal",
                    "another one",
                ));
            }
            let target = &proposed.what.target;
            if *target != decision.target {
                let (expected, found) = (described(target), described(&decision.target));
                refusals.push(Refusal::invalid(Rule::Change, expected, found));
            }
        }
        if decision.terminal {
            self.closed = Some(Closed::Denied);
        }
        // One that does not fit gives nobody authority.
        let void = !refusals.is_empty();
        self.decisions.insert(
            digest,
            Decided {
                proposal: decision.proposal.sha256,
                verdict: decision.verdict,
                void,
            },
        );
        refusals
    }

    fn answer(
        &mut self,
        digest: Sha256Digest,
        approval: &Answering,
        project: &Project,
    ) -> Vec<Refusal> {
        let mut refusals: Vec<Refusal> = self.check_newest(approval.proposal).into_iter().collect();
        refusals.extend(self.check_answered_decision(approval));
        if let Some(proposed) = self.proposals.get(&approval.proposal.sha256) {
            let last = proposed.answer.and_then(|last| self.answers.get(&last));
            if last.is_some_and(|last| last.answer == Answer::Reject) {
                refusals.push(Refusal::invalid(
                    Rule::Order,
                    "no answer after a rejection",
                    "another answer",
                ));
            }
            refusals.extend(check_binding(&proposed.what, &approval.binding));
        }
        let repository = &project.repository_id;
        if *repository != approval.binding.repository_id {
            let found = approval.binding.repository_id.as_str();
            refusals.push(Refusal::invalid(
                Rule::Project,
                format!("repository {repository}"),
                found,
            ));
        }
        let answered = Answered {
            proposal: approval.proposal.sha256,
            answer: approval.answer,
            change: approval.binding.change,
            method: approval.binding.merge_method,
            pull_request: approval.binding.pull_request,
            void: !refusals.is_empty(),
        };
        self.answers.insert(digest, Box::new(answered));
        if let Some(proposed) = self.proposals.get_mut(&approval.proposal.sha256) {
            proposed.answer = Some(digest);
        }
        refusals
    }

    /// An answer is to a decision that asks for one, about the same proposal.
    fn check_answered_decision(&self, approval: &Answering) -> Option<Refusal> {
        let named = approval.decision.sha256;
        let Some(decided) = self.decisions.get(&named) else {
            return Some(self.missing("a policy decision", named));
        };
        if decided.proposal != approval.proposal.sha256 {
            let expected = format!("a decision about the proposal {}", approval.proposal.sha256);
            return Some(Refusal::invalid(
                Rule::Reference,
                expected,
                format!("one about {}", decided.proposal),
            ));
        }
        let asks = decided.verdict == Verdict::Approve;
        (!asks).then(|| {
            Refusal::invalid(
                Rule::Order,
                "a decision that asks for approval",
                word(decided.verdict),
            )
        })
    }

    fn execute(&mut self, execution: &Executing) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        if let Some(proposal) = execution.proposal {
            refusals.extend(self.check_known(proposal));
            if execution.by_us {
                refusals.extend(self.check_newest(proposal));
            }
            let proposed = self.proposals.get(&proposal.sha256);
            let proposed = proposed
                .and_then(|proposed| proposed.what.target.change())
                .map(|change| change.sha256);
            let approved = execution.approved_change.map(|change| change.sha256);
            if approved.is_some() && approved != proposed {
                let found = execution
                    .approved_change
                    .map_or_else(String::new, |change| change.sha256.to_string());
                refusals.push(Refusal::invalid(Rule::Change, optional(proposed), found));
            }
        }
        refusals.extend(match execution.authority {
            Some(AuthorityRef::Approval(named)) => self.check_approval(execution, named.sha256),
            Some(AuthorityRef::Decision(named)) => {
                self.check_free_decision(execution, named.sha256)
            }
            // Somebody else merged: there is nothing that could have allowed it.
            None => Vec::new(),
        });
        self.closed = Some(Closed::Executed);
        refusals
    }

    /// No merge of ours without a standing approval of exactly this change.
    fn check_approval(&self, execution: &Executing, named: Sha256Digest) -> Vec<Refusal> {
        let Some(answered) = self.answers.get(&named) else {
            return vec![self.missing("an approval", named)];
        };
        let mut refusals = check_authority(execution, answered.proposal, answered.void);
        if answered.answer != Answer::Approve {
            refusals.push(Refusal::invalid(
                Rule::Order,
                "an answer that approves",
                "a rejection",
            ));
        }
        let last = self
            .proposals
            .get(&answered.proposal)
            .and_then(|proposed| proposed.answer);
        if last != Some(named) {
            refusals.push(Refusal::invalid(
                Rule::Order,
                "the last answer about the proposal",
                named.to_string(),
            ));
        }
        if execution.observed_change != answered.change {
            let found = execution.observed_change.to_string();
            refusals.push(Refusal::invalid(
                Rule::Change,
                answered.change.to_string(),
                found,
            ));
        }
        if (execution.method, execution.pull_request) != (answered.method, answered.pull_request) {
            let expected = format!(
                "{:?} of pull request {}",
                answered.method, answered.pull_request
            );
            let found = format!(
                "{:?} of pull request {}",
                execution.method, execution.pull_request
            );
            refusals.push(Refusal::invalid(Rule::Change, expected, found));
        }
        refusals
    }

    fn check_free_decision(&self, execution: &Executing, named: Sha256Digest) -> Vec<Refusal> {
        let Some(decided) = self.decisions.get(&named) else {
            return vec![self.missing("a policy decision", named)];
        };
        let mut refusals = check_authority(execution, decided.proposal, decided.void);
        if decided.verdict != Verdict::Free {
            refusals.push(Refusal::invalid(
                Rule::Order,
                "a decision that the change is free",
                word(decided.verdict),
            ));
        }
        refusals
    }

    fn escalate(&mut self, blocks: bool, proposal: Option<DigestRef>) -> Option<Refusal> {
        if blocks {
            self.answers
                .values_mut()
                .for_each(|answered| answered.void = true);
            let free = self
                .decisions
                .values_mut()
                .filter(|decided| decided.verdict == Verdict::Free);
            free.for_each(|decided| decided.void = true);
        }
        proposal.and_then(|proposal| self.check_known(proposal))
    }

    /// What is referred to is not there; or it is, and only cannot be verified, which makes nothing else wrong.
    fn missing(&self, what: &str, named: Sha256Digest) -> Refusal {
        let expected = format!("{what} earlier in the chain");
        // Break it: call both invalid; a verifier without the newest trust root then calls an honest chain forged
        // (`attest::chains::what_refers_to_an_event_that_cannot_be_verified_is_not_called_wrong`).
        if self.unread.contains(&named) {
            let found = format!("{named}, which cannot be verified");
            Refusal::unverifiable(Rule::Reference, expected, found)
        } else {
            Refusal::invalid(Rule::Reference, expected, named.to_string())
        }
    }

    fn check_known(&self, proposal: DigestRef) -> Option<Refusal> {
        (!self.proposals.contains_key(&proposal.sha256))
            .then(|| self.missing("a proposal", proposal.sha256))
    }

    /// A newer proposal supersedes an older one.
    fn check_newest(&self, proposal: DigestRef) -> Option<Refusal> {
        self.check_known(proposal).or_else(|| {
            let newest = self.newest.filter(|newest| *newest != proposal.sha256)?;
            let expected = format!("the newest proposal, {newest}");
            Some(Refusal::invalid(
                Rule::Order,
                expected,
                proposal.sha256.to_string(),
            ))
        })
    }
}

/// An authority counts for its own proposal only, and only while it stands.
fn check_authority(execution: &Executing, proposal: Sha256Digest, void: bool) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let named = execution.proposal.map(|proposal| proposal.sha256);
    if named != Some(proposal) {
        refusals.push(Refusal::invalid(
            Rule::Reference,
            format!("the proposal {proposal}"),
            optional(named),
        ));
    }
    if void {
        let found = "one that does not fit, or that an escalation voided";
        refusals.push(Refusal::invalid(
            Rule::Order,
            "an authority that stands",
            found,
        ));
    }
    refusals
}

/// What was put to the person is what was proposed.
fn check_binding(proposed: &Proposing, binding: &Binding) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut differs = |what: &str, expected: String, found: String| {
        if expected != found {
            refusals.push(Refusal::invalid(
                Rule::Change,
                format!("{what} {}", shown(&expected)),
                shown(&found),
            ));
        }
    };
    match &proposed.target {
        Target::Commit { change, head } => {
            let Head { commit, tree } = head;
            let ChangeRef { sha256, count, .. } = change;
            differs("change", sha256.to_string(), binding.change.to_string());
            differs("entries", count.to_string(), binding.count.to_string());
            differs(
                "head commit",
                commit.to_string(),
                binding.head_commit.to_string(),
            );
            differs("head tree", tree.to_string(), binding.head_tree.to_string());
        }
        Target::Files(files) => differs("files", files.sha256.to_string(), "a commit".to_owned()),
    }
    differs(
        "base",
        proposed.branch.to_string(),
        binding.base_ref.to_string(),
    );
    for (what, expected, found) in [
        ("title", proposed.title, binding.title),
        ("body", proposed.body, binding.body),
    ] {
        if let Some(expected) = expected {
            differs(what, expected.sha256.to_string(), found.sha256.to_string());
        }
    }
    refusals
}

fn optional(digest: Option<Sha256Digest>) -> String {
    digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string())
}

fn described(target: &Target) -> String {
    match target {
        Target::Commit { change, head } => {
            format!("change {} at commit {}", change.sha256, head.commit)
        }
        Target::Files(files) => format!("files {}", files.sha256),
    }
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Deny => "deny",
        Verdict::Approve => "approve",
        Verdict::Free => "free",
    }
}
