//! Fixing what a merge must equal, and who is asked.

use super::super::Stepped;
use super::super::work::{Work, expect, plain};
use crate::approve::{ApprovalRequest, Binding};
use crate::gate::Verdict;
use crate::incident::{EscalationReason, Fact, Outcome, StepError};

pub(super) fn bind(work: Work<'_>) -> Stepped {
    let fix = expect(work.snapshot.fix(), "the fix")?;
    let decision = expect(work.snapshot.decision(), "the decision")?;
    let rules = work.rules.document();
    let seconds = i64::try_from(work.engine.settings.link_ttl.as_secs()).unwrap_or(i64::MAX);
    let binding = Binding {
        repository_id: work.project.repository_id.clone(),
        host: work.project.host.clone(),
        pull_request: expect(work.snapshot.pull_request(), "the pull request")?,
        base_ref: rules.base.0.clone(),
        merge_base: fix.base_commit,
        head_ref: fix.branch.clone(),
        head_commit: fix.commit,
        head_tree: fix.tree,
        change: fix.change.clone(),
        merge_method: rules.merge_method,
        title: fix.title.clone(),
        body: fix.body.clone(),
        expires_at: work.now.plus_seconds(seconds),
    };
    match decision.verdict {
        Verdict::Free => Ok(Outcome::fact(Fact::Bound {
            binding: Box::new(binding),
        })),
        Verdict::Approve => {
            let request = ApprovalRequest {
                binding,
                proposal: decision.proposal_event,
                decision: decision.decision_event,
                principal: work.project.owner.clone(),
            };
            let document = plain(&request)?;
            let mut outcome = Outcome::fact(Fact::Requested {
                request: Box::new(request),
            });
            outcome.evidence = vec![document];
            Ok(outcome)
        }
        Verdict::Deny => Err(StepError::escalate(
            EscalationReason::FixUnusable,
            "a refused change cannot be bound",
        )),
    }
}
