//! The worker against a real forge: real git, real HTTP, real tests in the sandbox, real signatures.

mod crash;
mod fix;
mod shared;
mod sums;
mod tampering;
mod world;
