//! The one loop: claim an incident, load its snapshot, ask [`crate::incident::next`], run that step, commit.
//!
//! A step never writes the database: it returns an [`Outcome`] or a [`StepError`], and only the loop commits, in one
//! transaction that is conditional on the snapshot's version and the lease. Killed anywhere, the next claim computes the same
//! step from the same facts; every external effect is looked for before it is repeated. Retries are spaced and counted here
//! and nowhere else.

mod anchoring;
mod drafting;
mod engine;
mod escalation;
mod log;
mod notices;
mod repository;
mod retention;
mod retry;
mod run;
mod session;
mod session_record;
mod session_scores;
mod steps;
mod test_runs;
mod tools;
mod work;

pub use anchoring::{Anchoring, Rounds, ShownTo, keep_anchors};
pub use engine::{Connectors, Engine, Failpoint, Settings, Time};
pub use log::{keep_log, log_round};
pub use repository::folder as repository_folder;
pub use retention::{SESSION_DAYS, sweep_evidence, sweep_sessions};
pub use run::{Turn, WorkerError, drain, run, turn};
pub use tools::Tools;

use crate::incident::{Outcome, StepError};

/// What a step comes to.
type Stepped = Result<Outcome, StepError>;
