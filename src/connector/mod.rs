//! The port to a hosting provider.

pub mod github;
