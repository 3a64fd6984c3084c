//! Chain.
