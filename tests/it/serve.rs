//! The whole program as its users meet it: the built binary, files, an environment, HTTP, signals. Nothing is called inside.

mod anchored;
mod apart;
mod bad_input;
mod crash;
pub(crate) mod inbox;
mod job;
mod logging;
pub(crate) mod place;
pub(crate) mod process;
