//! Which stages may be shown over which signed events.

use crate::approve::Standing;
use crate::attest::Event;
use crate::attest::predicate::Verdict;
use crate::change::Sha256Digest;
use crate::incident::Stage;

/// What the stage needs and the events do not show. `complete`: every drafted statement is signed; while one is not, a
/// stage may be ahead of its signature.
pub(super) fn misfit(
    stage: Stage,
    events: &[(Sha256Digest, Event)],
    complete: bool,
) -> Option<&'static str> {
    let standing = Standing::of(events.iter().map(|(digest, event)| (*digest, event)));
    let executed = standing.execution.is_some();
    let by_us = standing.execution.is_some_and(|execution| execution.by_us);
    let verdict = standing.decision().map(|decision| decision.verdict);
    let (fits, expected) = match stage {
        Stage::Detected | Stage::Reproduced | Stage::Diagnosed => (
            standing.proposal.is_none() && !executed,
            "nothing proposed, nothing merged",
        ),
        Stage::Gated | Stage::Proposed => (
            !executed && (!complete || verdict.is_some_and(|verdict| verdict != Verdict::Deny)),
            "a decision that does not deny, nothing merged",
        ),
        Stage::AwaitingApproval => (
            !executed && (!complete || verdict == Some(Verdict::Approve)),
            "a decision that asks for approval, nothing merged",
        ),
        Stage::Approved => (
            !executed && standing.grant().is_some(),
            "an approval or a decision `free` that stands, nothing merged",
        ),
        Stage::Merging => (
            standing.grant().is_some() && !executed || by_us && !complete,
            "an approval or a decision `free` that stands, no finished merge",
        ),
        Stage::Blocked => (
            !complete && !executed
                || standing
                    .decision()
                    .is_some_and(|decision| decision.terminal),
            "a terminal denial",
        ),
        Stage::Resolved => (by_us, "a merge of ours"),
        Stage::Escalated => (
            !complete || ends_escalated(events),
            "an escalation at the end",
        ),
        Stage::Closed => (!by_us, "no merge of ours"),
    };
    (!fits).then_some(expected)
}

/// Whether the last event is an escalation, gaps aside. An incident handed over before anything was signed has no events,
/// and then nothing is valid anyway.
fn ends_escalated(events: &[(Sha256Digest, Event)]) -> bool {
    let mut last = events
        .iter()
        .rev()
        .map(|(_, event)| event)
        .filter(|event| !matches!(event, Event::Gap(_)));
    last.next()
        .is_none_or(|event| matches!(event, Event::Escalation(_)))
}
