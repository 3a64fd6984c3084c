//! Watches health endpoints. `judge` says what an answer means, `state` what it changes, `round` asks whatever is due and tells
//! what happened, `reach` finds out whether an outage is our own.

mod judge;
mod reach;
mod round;
mod state;
mod tell;
mod under_way;

pub use judge::judge;
pub use reach::SelfCheck;
pub use round::{Checked, HealthWatch, HealthWatchError, round, run};
pub use state::{HealthState, Last, LastResult, Outcome, Phase, StateError, Transition, advance};
