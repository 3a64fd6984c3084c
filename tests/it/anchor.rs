//! Anchors: what somebody outside of the installation says about a checkpoint.

mod attacks;
mod exported;
pub(crate) mod made;
pub(crate) mod openssl;
pub(crate) mod server;
mod timestamp;
mod tokens;
mod witness;
