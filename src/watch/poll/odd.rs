//! Runs that do not say what they should.

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
