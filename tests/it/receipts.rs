//! Capability tokens and receipts: what is signed, what is allowed, and what a stranger can check afterwards.

mod canonical;
mod desk;
mod keys;
mod writing;
