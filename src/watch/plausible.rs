//! Whether a success can have done its work: one that comes much faster than the workflow's other ones cannot.

use crate::connector::RunView;

/// Successes of a workflow from which its usual length is told.
const USUAL: usize = 5;
/// A usual length below which nothing is told from the length, in milliseconds.
const SHORTEST: i64 = 30_000;
/// How many times faster than the median of those a success may be.
const FASTER: i64 = 5;

/// Whether a success came so much faster than the workflow's other ones that it cannot have done the same work.
pub(super) fn is_implausible(run: &RunView, runs: &[(RunView, bool)]) -> bool {
    let length = |run: &RunView| Some(run.updated_at?.0 - run.started_at?.0);
    let (Some("success"), Some(own)) = (run.conclusion.as_deref(), length(run)) else {
        return false;
    };
    let mut others: Vec<i64> = runs
        .iter()
        .map(|(other, _)| other)
        .filter(|other| {
            other.id != run.id
                && other.workflow_id == run.workflow_id
                && other.conclusion.as_deref() == Some("success")
        })
        .filter_map(length)
        .collect();
    others.sort_unstable();
    let median = others.get(others.len() / 2).copied().unwrap_or_default();
    others.len() >= USUAL && median >= SHORTEST && own.saturating_mul(FASTER) < median
}
