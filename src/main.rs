//! The `caretaker` command.

use std::process::ExitCode;

use caretaker::sandbox::reexec;
use caretaker::workspace::git_command::askpass;

fn main() -> ExitCode {
    // These processes are started by our own, one of them to run an untrusted program: nothing may come before.
    askpass::answer_if_asked(std::env::args_os())
        .or_else(|| reexec::run_if_requested(std::env::args_os()))
        .unwrap_or_else(caretaker::cli::run)
}
