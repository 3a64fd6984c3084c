//! How watching a project goes: what the watch wrote down at its last looks, for people to read.

use sqlx::any::AnyRow;

use super::{StoreError, value};
use crate::clock::Millis;
use crate::connector::Condition;
use crate::id::ProjectId;

/// What is known of the watch over one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchState {
    /// The project.
    pub project: ProjectId,
    /// When it is looked at next.
    pub next_at: Millis,
    /// When it was looked at last, whether or not the provider answered.
    pub looked_at: Option<Millis>,
    /// When the provider answered last.
    pub answered_at: Option<Millis>,
    /// How the repository can be reached.
    pub condition: Condition,
    /// Since when.
    pub since: Option<Millis>,
    /// The provider's words about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub mend: Option<String>,
    /// How old the newest failure was when it was seen, in milliseconds.
    pub lag: Option<i64>,
    /// Requests sent since `counted_from`.
    pub requests: u64,
    /// Those of them that were answered with "not modified".
    pub unchanged: u64,
    /// Since when requests are counted.
    pub counted_from: Millis,
    /// What is left of the credential's limits, as JSON.
    pub budget: Option<String>,
}

pub(super) fn from_row(row: &AnyRow) -> Result<WatchState, StoreError> {
    let moment = |column| Ok::<_, StoreError>(value::optional_integer(row, column)?.map(Millis));
    Ok(WatchState {
        project: value::parsed(row, "project")?,
        next_at: Millis(value::integer(row, "next_at")?),
        looked_at: moment("looked_at")?,
        answered_at: moment("answered_at")?,
        condition: value::word(row, "condition")?,
        since: moment("since")?,
        detail: value::optional_text(row, "detail")?,
        mend: value::optional_text(row, "mend")?,
        lag: value::optional_integer(row, "lag")?,
        requests: value::count(row, "requests")?,
        unchanged: value::count(row, "unchanged")?,
        counted_from: Millis(value::integer(row, "counted_from")?),
        budget: value::optional_text(row, "budget")?,
    })
}
