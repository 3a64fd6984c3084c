//! Compares what is live with what was approved: before the merge, and what landed after it.
//!
//! Source: the merge protocol (`docs/reconcile.md`). The rules are pure; a connector fills the views.

mod compare;
mod landed;
mod live;
mod rows;

pub use compare::{Comparison, Demands, Difference, Matched, compare};
pub use landed::{EXECUTION_TRAILER, LandedProof, Landing, prove};
pub use live::{
    CheckRequirement, CheckView, LandedCommit, LandedView, LiveView, PullFile, PullState,
};
