//! Making the GitHub App that caretaker acts as, and writing down what happens to its tokens.
//!
//! Making it is one page on this machine, one click, and GitHub's way back.
//!
//! The manifest says everything that the App asks for; GitHub shows it and a person confirms there. What comes back is a code,
//! which is exchanged once for the App's private key.

mod flow;
mod manifest;
mod pages;
mod reception;
mod record;

pub use flow::{Flow, FlowError, Receive};
pub use manifest::{Plan, PlanError};
pub use reception::{Created, Places, Reception, ReceptionError};
pub use record::{Recorder, token_recorder};
