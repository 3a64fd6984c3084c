//! Turns failed CI runs into incidents. `classify` says what a run means, `plan` which of the runs count, `poll` reads them
//! from the provider and writes what was observed, `round` does so for every project, for as long as caretaker runs.

mod classify;
pub mod health;
mod plan;
mod poll;
mod record;
mod round;

pub use classify::{Observation, Reading, Success, classify, counts};
pub use poll::{Memory, NewId, PollReport, WatchError, poll};
pub use record::{Observations, RecordError};
pub use round::{Watch, run};
