//! The GitHub connector against answers of every kind: honest, odd, hostile, cut short or absent.
mod access;
mod answers;
mod changes;
mod comparison;
mod corpus;
mod demands;
mod landing;
mod listings;
mod logs;
pub(crate) mod provider;
mod setup;
mod world;
