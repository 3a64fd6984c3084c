//! What a proposal's session lists: one signed document a call, each the session's own and in the order of its calls.

use std::collections::BTreeSet;

use super::KeptEvidence;
use crate::attest::chain::Verdict;
use crate::attest::predicate::{MOST_CALLS, Proposal};
use crate::attest::statement::Predicate;
use crate::attest::{Evidence, PredicateType, Statement, TrustHistory, authenticate};
use crate::change::Sha256Digest;

/// A list that a proposal names.
struct Listed {
    what: &'static str,
    kind: PredicateType,
    name: Sha256Digest,
    count: Option<u64>,
}

/// Why a list does not hold: the verdict, what was expected, what was found.
pub(super) type Fault = (Verdict, String, String);

/// The digests of a document that is a list of digests, as long as one of a session may be.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Sha256Digest>> {
    let longest = usize::try_from(MOST_CALLS).unwrap_or(usize::MAX);
    // 64 digits, two quotes and a comma each.
    if bytes.first() != Some(&b'[') || bytes.len() > longest * 67 + 2 {
        return None;
    }
    let list: Vec<Sha256Digest> = serde_json::from_slice(bytes).ok()?;
    (list.len() <= longest).then_some(list)
}

/// The first thing wrong with each list of a proposal. That a list itself is missing is told where its name is looked for.
pub(super) fn faults(
    trust: &TrustHistory,
    kept: &KeptEvidence,
    gone: &BTreeSet<Sha256Digest>,
    proposal: &Proposal,
) -> Vec<Fault> {
    let Some(session) = &proposal.session else {
        return Vec::new();
    };
    let outcomes = Listed {
        what: "outcome",
        kind: PredicateType::GateOutcome,
        name: session.outcomes.sha256,
        count: None,
    };
    let scores = session.scores.map(|scores| Listed {
        what: "score",
        kind: PredicateType::IntentScore,
        name: scores.sha256,
        count: Some(scores.count),
    });
    std::iter::once(outcomes)
        .chain(scores)
        .filter_map(|list| list.fault(trust, kept, gone, proposal))
        .collect()
}

impl Listed {
    fn fault(
        &self,
        trust: &TrustHistory,
        kept: &KeptEvidence,
        gone: &BTreeSet<Sha256Digest>,
        proposal: &Proposal,
    ) -> Option<Fault> {
        let whole = || format!("the list {} of {}s", self.name, self.what);
        let Some(names) = kept.lists.get(&self.name) else {
            let there = kept.plain.contains(&self.name);
            return there.then(|| (Verdict::Invalid, whole(), "no list of digests".to_owned()));
        };
        if self.count.is_some_and(|count| count != names.len() as u64) {
            let found = format!("{} of them", names.len());
            return Some((Verdict::Invalid, whole(), found));
        }
        let mut next = 0;
        for name in names {
            // Break it: go on to the next; `audit::evidence::a_score_that_was_changed_is_found` fails.
            match self.call(trust, kept, gone, proposal, name) {
                Ok(Some(call)) if call < next => {
                    let found = format!("one of call {call} after that of a later one");
                    return Some((Verdict::Invalid, whole(), found));
                }
                Ok(call) => next = call.map_or(next, |call| call.saturating_add(1)),
                Err((verdict, found)) => {
                    return Some((
                        verdict,
                        format!("the {} {name} of a call", self.what),
                        found,
                    ));
                }
            }
        }
        None
    }

    /// The number of the call that a listed document is about; none of one that is admitted to be gone.
    fn call(
        &self,
        trust: &TrustHistory,
        kept: &KeptEvidence,
        gone: &BTreeSet<Sha256Digest>,
        proposal: &Proposal,
        name: &Sha256Digest,
    ) -> Result<Option<u64>, (Verdict, String)> {
        let invalid = |found: &str| Err((Verdict::Invalid, found.to_owned()));
        let Some(envelope) = kept.by_bytes.get(name).and_then(|pae| kept.signed.get(pae)) else {
            return if kept.plain.contains(name) {
                invalid("no signed document")
            } else {
                kept.missing(gone, name).map(|()| None)
            };
        };
        let attested = authenticate(trust, envelope)
            .map_err(|refusal| (refusal.verdict, refusal.to_string()))?;
        let Some((kind, incident, session, call)) = said(attested.statement()) else {
            return invalid("a document of another kind");
        };
        let own = proposal.session.as_ref().map(|session| &session.id) == Some(session);
        if kind != self.kind || *incident != proposal.event.incident || !own {
            return invalid("a document of another kind, incident or session");
        }
        Ok(Some(call))
    }
}

/// Which call of which session a document is about.
fn said(
    statement: &Statement,
) -> Option<(
    PredicateType,
    &crate::id::IncidentId,
    &crate::attest::Label,
    u64,
)> {
    match statement.predicate() {
        Predicate::Evidence(Evidence::GateOutcome(outcome)) => Some((
            PredicateType::GateOutcome,
            &outcome.document.incident,
            &outcome.session,
            outcome.call,
        )),
        Predicate::Evidence(Evidence::IntentScore(score)) => Some((
            PredicateType::IntentScore,
            &score.document.incident,
            &score.session,
            score.call,
        )),
        _ => None,
    }
}
