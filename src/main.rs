//! The `caretaker` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    caretaker::sandbox::reexec::run_if_requested(std::env::args_os())
        .unwrap_or_else(caretaker::cli::run)
}
