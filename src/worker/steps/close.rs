//! Ending an incident, and tidying up after one that merged nothing.

use super::super::Stepped;
use super::super::notices::notice;
use super::super::work::{Work, expect, unanswered};
use super::landing;
use crate::incident::{ClosedReason, Fact, NoticeEvent, Outcome};

/// Ends the incident. A pull request that somebody merged meanwhile is recorded as that instead: it must neither look as if
/// nothing had landed, nor lose its branch.
pub(super) async fn close(work: Work<'_>, reason: ClosedReason, detail: &str) -> Stepped {
    if let (Some(number), Some(binding)) = (work.snapshot.pull_request(), work.snapshot.binding()) {
        let pull = work.connector.pull(number).await;
        if pull.map_err(|error| unanswered(&error, work.now))?.merged {
            return landing::merged_elsewhere(work, binding).await;
        }
    }
    let mut outcome = Outcome::fact(Fact::Closed {
        reason,
        detail: detail.to_owned(),
    });
    outcome.notices.push(notice(
        NoticeEvent::IncidentClosed,
        format!("{}: {detail}", reason.as_str()),
    ));
    Ok(outcome)
}

/// Closes the pull request with one comment and deletes the branch. Both may be done already.
pub(super) async fn clean_up(work: Work<'_>) -> Stepped {
    let fix = expect(work.snapshot.fix(), "the fix")?;
    if let Some(number) = work.snapshot.pull_request() {
        let (reason, detail) = match work.snapshot.closed() {
            Some((reason, detail)) => (reason.as_str(), detail),
            None => ("closed", ""),
        };
        let comment = format!("Closed by caretaker ({reason}): {detail}");
        let closed = work.connector.close_pull(number, &comment).await;
        closed.map_err(|error| unanswered(&error, work.now))?;
        work.engine.passed("close-pull").await;
    }
    let deleted = work.connector.delete_branch(&fix.branch).await;
    deleted.map_err(|error| unanswered(&error, work.now))?;
    work.engine.passed("delete-branch").await;
    Ok(Outcome::fact(Fact::CleanedUp))
}
