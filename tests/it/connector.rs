//! The GitHub connector against answers of every kind: honest, odd, hostile, cut short or absent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod answers;
mod changes;
mod comparison;
mod corpus;
mod demands;
mod landing;
mod listings;
mod logs;
mod provider;
mod setup;
mod world;
