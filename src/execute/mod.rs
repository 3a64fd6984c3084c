//! The order to merge, and what its answers mean.

mod order;
mod outcome;

pub use order::{LOG_TRAILER, MergeOrder, OrderError, order};
pub use outcome::{AfterMerge, COMPARISONS_PER_MERGE, MergeAnswer, after};
