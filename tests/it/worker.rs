//! The worker against a real forge: real git, real HTTP, real tests in the sandbox, real signatures.

pub(crate) mod acting_as_app;
mod anchoring;
mod below;
mod builtin;
mod crash;
mod credential;
mod cut;
mod fix;
mod flake;
mod gated;
mod memory;
mod peers;
mod remains;
mod retention;
mod scored;
mod shared;
pub(crate) mod sums;
mod tampering;
pub(crate) mod world;
