//! Workflows that fall silent: disabled ones, and scheduled ones that do not run.

use serde::{Deserialize, Serialize};

use super::calendar;
use crate::clock::Millis;
use crate::connector::WorkflowView;

/// How late a scheduled run may be, in milliseconds. GitHub delays scheduled runs under load, and drops some.
const GRACE: i64 = 3_600_000;

/// What is known of one workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowFacts {
    /// Its name.
    pub name: Option<String>,
    /// Its file.
    pub path: String,
    /// The provider's word for its state.
    pub state: String,
    /// The cron expressions of its file.
    pub schedules: Vec<String>,
    /// When its newest scheduled run began.
    pub scheduled_at: Option<i64>,
    /// Since when it is watched.
    pub watched_since: i64,
    /// Why it counts as silent, while it does.
    pub silent: Option<String>,
}

/// What a look at a workflow shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It has fallen silent, for this reason.
    Silent(String),
    /// It is heard of again.
    Heard,
}

/// What follows for one workflow from how it is now; `known` is nothing at the first look. `scheduled_at` is when its newest
/// scheduled run began, as far as that was seen.
pub fn judge(
    known: Option<&WorkflowFacts>,
    view: &WorkflowView,
    schedules: Vec<String>,
    scheduled_at: Option<Millis>,
    now: Millis,
) -> (WorkflowFacts, Option<Finding>) {
    let before = known.and_then(|known| known.silent.clone());
    // What is still to come would hide for ever that no run comes any more.
    // Break it: take it as it is said (`watch::silence::a_run_that_begins_in_the_far_future_hides_no_absence`).
    let past = |at: i64| at.min(now.0);
    let seen = scheduled_at.map(|at| past(at.0));
    let mut facts = WorkflowFacts {
        name: view.name.clone(),
        path: view.path.clone(),
        state: view.state.clone(),
        schedules,
        scheduled_at: seen.max(known.and_then(|known| known.scheduled_at).map(past)),
        watched_since: known.map_or(now.0, |known| past(known.watched_since)),
        silent: None,
    };
    facts.silent = disabled(known, view).or_else(|| absent(&facts, now));
    let finding = match (before, &facts.silent) {
        (None, Some(reason)) => Some(Finding::Silent(reason.clone())),
        (Some(_), None) => Some(Finding::Heard),
        _ => None,
    };
    (facts, finding)
}

/// Why a workflow that does not run counts as silent. One that a person had disabled before it was watched does not, nor one
/// whose file is gone.
fn disabled(known: Option<&WorkflowFacts>, view: &WorkflowView) -> Option<String> {
    let word = view.state.as_str();
    if matches!(word, "" | "active" | "deleted" | "disabled_fork") {
        return None;
    }
    let inactivity = word == "disabled_inactivity";
    let was_watched = known.is_some_and(|known| known.state == "active" || known.silent.is_some());
    (inactivity || was_watched).then(|| format!("the workflow is {}", word.replace('_', " ")))
}

/// Why a scheduled workflow that is active counts as silent.
fn absent(facts: &WorkflowFacts, now: Millis) -> Option<String> {
    if facts.state != "active" {
        return None;
    }
    let last = facts
        .scheduled_at
        .unwrap_or(i64::MIN)
        .max(facts.watched_since);
    let expected = facts
        .schedules
        .iter()
        .filter_map(|cron| calendar::next_after(cron, Millis(last)))
        .min()?;
    let late = now.0.saturating_sub(expected.0) > GRACE;
    late.then(|| format!("its schedule says {expected}, and there was no scheduled run since"))
}
