//! The whole program as its users meet it: the built binary, files, an environment, HTTP, signals. Nothing is called inside.

mod bad_input;
mod crash;
mod inbox;
mod job;
mod logging;
mod place;
mod process;
