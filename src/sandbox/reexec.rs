//! The hidden subcommands by which our own binary supervises and confines a run, and connects what runs with one socket.
//!
//! They are not for people: the first two read what they are to do from standard input. `main` calls [`run_if_requested`] before
//! anything else, so that no thread, file or connection of the product exists in these processes.

use std::ffi::OsString;
use std::process::ExitCode;

use super::{bridge, confine, supervise};

/// The supervisor's subcommand.
pub(super) const SUPERVISE: &str = "sandbox-supervise";
/// The confined process's subcommand.
pub(super) const CONFINE: &str = "sandbox-exec";
/// The subcommand of the bridge beside a confined program.
pub(super) const BRIDGE: &str = "sandbox-bridge";

/// The confined process's exit code when it could not become the program; the reason is in the report.
pub(super) const NOT_REACHED: u8 = 125;

/// Runs the subcommand that `arguments` (with the program's own name first) ask for, if it is one of the sandbox's.
///
/// Returns the process's exit code, or `None` when the arguments are for the rest of the command line. When the
/// confined process succeeds it becomes the untrusted program and this never returns.
pub fn run_if_requested(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let subcommand = arguments.nth(1)?;
    match subcommand.to_str()? {
        SUPERVISE => Some(supervise::main()),
        CONFINE => Some(confine::main()),
        BRIDGE => Some(bridge::main(arguments)),
        _ => None,
    }
}
