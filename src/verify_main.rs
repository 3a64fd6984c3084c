//! The `caretaker-verify` command: the offline verifier alone, small enough for an auditor to read and build.

use std::io::Write as _;
use std::process::ExitCode;

use caretaker::verifier::{Arguments, HELP, answer};

fn main() -> ExitCode {
    let (text, code) = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Arguments::Help) => (HELP.trim_end().to_owned(), 0),
        Ok(Arguments::Verify { request, json }) => answer(&request, json),
        Err(error) => {
            drop(writeln!(std::io::stderr(), "caretaker-verify: {error}"));
            return ExitCode::from(2);
        }
    };
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::from(code),
        // A verdict that nobody could read is none.
        Err(_) => ExitCode::from(3),
    }
}
