//! Turns failed CI runs into incidents. `classify` says what a run means (`table` prints the same table), `plan` which of the runs
//! count, `poll` reads them from the provider and writes what was observed, `silence` finds workflows that no longer run. `look`
//! does all of that for one project, `pace` says when the next look is due, `round` does so for every project, for as long as
//! caretaker runs.

mod calendar;
mod classify;
pub mod health;
mod look;
mod memory;
mod pace;
mod plan;
mod plausible;
mod poll;
mod record;
mod round;
mod silence;
mod standing;
mod table;
mod workflows;

pub use classify::{Observation, Reading, Success, classify, counts};
pub use memory::Memory;
pub use pace::{Allowance, Shown, next_look};
pub use poll::{NewId, PollReport, WatchError, poll};
pub use record::{Observations, RecordError};
pub use round::{Watch, run};
pub use standing::{Standing, of_error, of_repository};
pub use table::truth_table;
pub use workflows::{Finding, WorkflowFacts, judge};
