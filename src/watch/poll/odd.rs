//! Runs that do not say what they should.

use crate::clock::Millis;
use crate::connector::RunView;

/// Whether a run has not ended. One with an unknown word for that and a conclusion all the same has not simply not ended.
pub(super) fn is_running(run: &RunView) -> bool {
    match run.status.as_str() {
        "completed" => false,
        "queued" | "in_progress" | "waiting" | "requested" | "pending" => true,
        // Break it: answer true; what failed under a new word then runs for ever
        // (`watch::odd_runs::a_conclusion_under_an_unknown_status_is_told_and_never_a_success`).
        _ => run.conclusion.is_none(),
    }
}

/// Whether it cannot be told of a failure if it counts, since its branch is not named.
pub(super) fn has_no_branch(run: &RunView) -> bool {
    let failed = !matches!(
        run.conclusion.as_deref(),
        None | Some("success" | "cancelled" | "skipped" | "neutral")
    );
    let ours = run.own_repository && matches!(run.event.as_str(), "push" | "schedule");
    ours && failed && run.branch.is_none()
}

/// When a run began. One that says it is still to come began when it was seen first: it would otherwise hide for ever that no run
/// comes any more.
pub(super) fn begun(run: &RunView, was_seen: bool, now: Millis) -> Option<Millis> {
    // Break it: take it as it is said, or for now however often it is seen
    // (`watch::silence::a_run_that_says_it_comes_from_the_future_counts_once`).
    match run.started_at? {
        at if at <= now => Some(at),
        _ => (!was_seen).then_some(now),
    }
}

/// A run in words.
pub(super) fn name(run: &RunView) -> String {
    let workflow = run.workflow.as_deref().unwrap_or("without a name");
    format!(
        "run {} (attempt {}) of workflow {workflow}",
        run.id, run.attempt
    )
}
