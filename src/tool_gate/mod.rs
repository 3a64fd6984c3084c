//! What an agent may do, decided for one call of a tool.

pub mod always_allow;
pub mod approval;
pub mod classifier;
pub mod decider;
pub mod profile;
