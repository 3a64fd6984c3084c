//! Compares what is live with what was approved, before and after.
