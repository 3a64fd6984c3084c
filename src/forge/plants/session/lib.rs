//! Session tokens that end on time.

pub mod auth;
pub mod greeting;
