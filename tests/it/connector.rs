//! The GitHub connector against answers of every kind: honest, odd, hostile, cut short or absent.
mod access;
mod answers;
mod budget;
mod changes;
mod comparison;
mod corpus;
mod credentials;
mod demands;
mod landing;
mod limits;
mod listings;
mod logs;
mod odd;
pub(crate) mod provider;
mod reports;
mod setup;
mod unchanged;
mod world;
