//! The order to merge, and what its answers mean.
