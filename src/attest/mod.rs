//! Signed statements: envelopes, strict JSON, roles and keys.
//!
//! Statements, the chain and the trust root build on these; see `docs/roadmap.md` for what is not here yet.

pub mod digest;
pub mod dsse;
pub mod json;
pub mod keys;
mod role;
pub mod text;

pub use role::{PredicateType, Role};
