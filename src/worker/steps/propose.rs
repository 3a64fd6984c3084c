//! Drafting proposal and decision: about the exact change, or about the files of a refused one.

use super::super::Stepped;
use super::super::drafting::{Drafter, label, text};
use super::super::notices::notice;
use super::super::repository::{Clone, broken};
use super::super::work::{Work, expect};
use super::judge::judge;
use crate::attest::predicate::{
    Agent, Base, ChangeRef, Class as SignedClass, Diagnosis, Failure, FileList, GatedSession, Head,
    MatchedRule, PolicyDecision, Proposal, ReceiptRef, SecondOpinion as SignedOpinion, Target,
    Verdict as SignedVerdict,
};
use crate::attest::{DigestRef, Event, List, Role, Text};
use crate::change::{CHANGE_SET_ALGORITHM, RepoPath, Sha256Digest};
use crate::gate::{Class, Decision, Denied, DeniedPath, Verdict};
use crate::id::{IncidentId, ProposalId};
use crate::incident::{
    DecisionFact, EscalationReason, Fact, FixFact, NoticeEvent, Outcome, SessionFact, StepError,
};

/// A refusal as it is signed: the paths, the class, the lines.
pub(super) struct Refusal {
    denied: Vec<DeniedPath>,
    class: Class,
    lines: Vec<String>,
}

impl Refusal {
    /// Of names alone.
    pub(super) fn of_names(denied: &Denied) -> Self {
        Self {
            denied: denied.paths.clone(),
            class: denied.class,
            lines: denied.signed_reasons().items,
        }
    }

    /// Of an exact change, if it is refused.
    pub(super) fn of_decision(decision: &Decision) -> Option<Self> {
        (decision.verdict() == Verdict::Deny).then(|| Self {
            denied: decision.denied().to_vec(),
            class: decision.class(),
            lines: decision.signed_reasons().items,
        })
    }

    fn rules(&self) -> List<MatchedRule> {
        List::first_of(self.denied.iter().map(|denied| MatchedRule {
            id: Text::clipped("denied"),
            path: Some(Text::clipped(&denied.path.to_string())),
            pattern: Some(Text::clipped(&denied.rule)),
        }))
    }

    /// The members of `gate check --json`.
    fn document(&self) -> serde_json::Value {
        let denied: Vec<_> = self
            .denied
            .iter()
            .map(|denied| serde_json::json!({"path": denied.path.to_string(), "rule": denied.rule, "reason": denied.reason}))
            .collect();
        serde_json::json!({
            "verdict": Verdict::Deny, "class": self.class, "denied": denied, "matched": [], "reasons": self.lines,
        })
    }
}

/// The proposal of an incident; there is one, so its number is the incident's.
pub(super) fn proposal_id(incident: &IncidentId) -> Result<ProposalId, StepError> {
    let number = incident.as_str().trim_start_matches("inc-");
    format!("prp-{number}").parse().map_err(|error| {
        StepError::escalate(
            EscalationReason::LedgerBroken,
            format!("naming the proposal: {error}"),
        )
    })
}

/// Ends the incident at the gate: a proposal of files without a commit, and a final denial.
pub(super) async fn refuse_files(work: Work<'_>, files: &[RepoPath], refusal: &Refusal) -> Stepped {
    let target = Target::Files(file_list(files));
    let proposal = proposal(&work, target.clone(), None).await?;
    let decided = Decided {
        verdict: Verdict::Deny,
        class: refusal.class,
        rules: refusal.rules(),
        reasons: List::first_of(refusal.lines.iter().map(|line| Text::clipped(line))),
        opinion: None,
        document: refusal.document(),
    };
    drafted(work, proposal, target, decided)
}

/// Proposes the fix and decides on it.
pub(super) async fn propose(work: Work<'_>) -> Stepped {
    let fix = expect(work.snapshot.fix(), "the fix")?;
    let clone = Clone::of(work.engine, &work.project.id, work.connector)?;
    let judged = judge(&work, &clone, fix.base_commit, fix.commit).await?;
    if judged.change.digest() != fix.change.digest {
        return Err(StepError::escalate(
            EscalationReason::ChangeMismatch,
            "the commit in the trusted repository is not the change that was recorded",
        ));
    }
    let tree = clone.open()?.commit_tree(fix.commit);
    let tree = tree.map_err(|error| broken(&error))?;
    let target = Target::Commit {
        change: ChangeRef {
            algorithm: text(CHANGE_SET_ALGORITHM)?,
            object_format: judged.change.format(),
            sha256: judged.change.digest(),
            count: judged.change.count() as u64,
        },
        head: Head {
            commit: fix.commit,
            tree,
        },
    };
    let proposal = proposal(&work, target.clone(), Some(fix)).await?;
    drafted(work, proposal, target, Decided::by(&judged.decision)?)
}

/// A decision on its way into a statement and a fact.
struct Decided {
    verdict: Verdict,
    class: Class,
    rules: List<MatchedRule>,
    reasons: List<Text>,
    opinion: Option<SignedOpinion>,
    document: serde_json::Value,
}

impl Decided {
    fn by(decision: &Decision) -> Result<Self, StepError> {
        let document = decision.document();
        let matched = document.matched.iter().map(|row| MatchedRule {
            id: Text::clipped(row.list.as_str()),
            path: Some(Text::clipped(&row.path)),
            pattern: Some(Text::clipped(&row.rule)),
        });
        let denied = document.denied.iter().map(|row| MatchedRule {
            id: Text::clipped("denied"),
            path: Some(Text::clipped(&row.path)),
            pattern: Some(Text::clipped(&row.rule)),
        });
        let reasons = decision.signed_reasons().items;
        Ok(Self {
            verdict: document.verdict,
            class: document.class,
            rules: List::first_of(denied.chain(matched)),
            reasons: List::first_of(reasons.iter().map(|line| Text::clipped(line))),
            opinion: None,
            document: serde_json::to_value(&document).map_err(|error| {
                StepError::escalate(
                    EscalationReason::FixUnusable,
                    format!("recording the decision: {error}"),
                )
            })?,
        })
    }
}

/// The word that is signed for a verdict.
pub(super) const fn signed_verdict(verdict: Verdict) -> SignedVerdict {
    match verdict {
        Verdict::Deny => SignedVerdict::Deny,
        Verdict::Approve => SignedVerdict::Approve,
        Verdict::Free => SignedVerdict::Free,
    }
}

/// The word that is signed for a class.
pub(super) const fn signed_class(class: Class) -> SignedClass {
    match class {
        Class::Functional => SignedClass::Functional,
        Class::Data => SignedClass::Data,
        Class::Infrastructure => SignedClass::Infrastructure,
    }
}

/// A proposal without its event block, which is known once it is drafted.
struct Proposed {
    target: Target,
    base: Base,
    title: Option<DigestRef>,
    body: Option<DigestRef>,
    failure: Failure,
    diagnosis: Diagnosis,
    agent: Agent,
    context_manifest: DigestRef,
    tests: List<DigestRef>,
    session: Option<GatedSession>,
}

async fn proposal(
    work: &Work<'_>,
    target: Target,
    fix: Option<&FixFact>,
) -> Result<Proposed, StepError> {
    let snapshot = work.snapshot;
    let diagnosis = expect(snapshot.diagnosis(), "the diagnosis")?;
    let mut tests = Vec::new();
    for test in fix.map(|fix| fix.tests.as_slice()).unwrap_or_default() {
        tests.push(work.signed_name(test).await?.into());
    }
    let raw = work.reading().await?.extraction.raw;
    let of = |text: &str| DigestRef::from(Sha256Digest::of(text.as_bytes()));
    Ok(Proposed {
        target,
        base: Base {
            branch: text(&work.rules.document().base.0)?,
            commit: snapshot.failure.commit,
        },
        title: fix.map(|fix| of(&fix.title)),
        body: fix.map(|fix| of(&fix.body)),
        failure: Failure {
            kind: snapshot.failure.kind,
            url: snapshot.failure.url.as_deref().map(Text::clipped),
            evidence: Some(raw.into()),
        },
        diagnosis: Diagnosis {
            sha256: Sha256Digest::of(&serde_json::to_vec(diagnosis).unwrap_or_default()),
            summary: Text::clipped(&diagnosis.summary),
        },
        agent: Agent {
            id: label(&diagnosis.agent)?,
            model: diagnosis.model.as_deref().map(Text::clipped),
        },
        context_manifest: work.signed_name(&diagnosis.manifest).await?.into(),
        tests: List::first_of(tests),
        session: fix
            .and_then(|fix| fix.session.as_ref())
            .map(gated)
            .transpose()?,
    })
}

/// The session as it is signed: how far its receipts go, and what is kept of it.
fn gated(session: &SessionFact) -> Result<GatedSession, StepError> {
    let completion = expect(session.completion, "the checks after the coder's session")?;
    Ok(GatedSession {
        id: label(&session.id)?,
        policy: session.policy.into(),
        tokens: session.tokens.into(),
        receipts: ReceiptRef {
            sha256: session.receipt,
            count: session.receipts,
        },
        calls: session.calls,
        record: session.record.into(),
        outcomes: session.outcomes.into(),
        scores: session.scores,
        completion: completion.into(),
        advisory: session.advisory,
    })
}

/// Drafts both statements and records the decision.
fn drafted(work: Work<'_>, proposed: Proposed, target: Target, decided: Decided) -> Stepped {
    let mut drafter = Drafter::after(work);
    let class = signed_class(decided.class);
    let intent = &work.project.intent;
    let proposal = Proposal {
        event: drafter.block(Role::Proposer)?,
        target: proposed.target,
        base: proposed.base,
        title: proposed.title,
        body: proposed.body,
        failure: proposed.failure,
        diagnosis: proposed.diagnosis,
        agent: proposed.agent,
        context_manifest: proposed.context_manifest,
        tests: proposed.tests,
        intent_document: Some(Sha256Digest::of(intent.as_bytes()).into()),
        class: Some(class),
        session: proposed.session,
    };
    let proposal_event = drafter.draft(Event::Proposal(Box::new(proposal)))?;
    let verdict = decided.verdict;
    let decision = PolicyDecision {
        event: drafter.block(Role::Policy)?,
        proposal: proposal_event.into(),
        target,
        verdict: signed_verdict(verdict),
        terminal: verdict == Verdict::Deny,
        class,
        rules: decided.rules,
        reasons: decided.reasons,
        opinion: decided.opinion,
    };
    let decision_event = drafter.draft(Event::PolicyDecision(Box::new(decision)))?;
    let mut outcome = Outcome::fact(Fact::Decided(DecisionFact {
        proposal: proposal_id(&work.snapshot.incident)?,
        verdict,
        class: decided.class,
        document: decided.document,
        rules: *work.rules.digest(),
        proposal_event,
        decision_event,
    }));
    outcome.drafts = drafter.finish();
    if verdict == Verdict::Deny {
        let text = "policy refuses the change; nothing was pushed and nothing was proposed";
        outcome
            .notices
            .push(notice(NoticeEvent::IncidentBlocked, text));
    }
    Ok(outcome)
}

/// The list as it is signed: each path once, sorted by bytes, followed by a zero byte.
fn file_list(files: &[RepoPath]) -> FileList {
    let mut paths: Vec<&[u8]> = files.iter().map(RepoPath::as_bytes).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut bytes = Vec::new();
    for path in &paths {
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    FileList {
        sha256: Sha256Digest::of(&bytes),
        count: paths.len() as u64,
    }
}
