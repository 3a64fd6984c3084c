//! Why nothing was run.

use std::path::PathBuf;

/// Why a program was not run, or not to a known end. None of these says anything about the program itself.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A configuration word that names no mode.
    #[error("sandbox mode {word:?} is unknown: write auto, bubblewrap, landlock or none")]
    UnknownMode {
        /// The word as written.
        word: String,
    },
    /// The required boundary does not work on this machine.
    #[error("cannot confine untrusted programs with {boundary}: {reason}; {mend}")]
    Unavailable {
        /// Which boundary was tried.
        boundary: &'static str,
        /// What the probe said.
        reason: String,
        /// What the operator can do.
        mend: &'static str,
    },
    /// The command itself cannot be run as written.
    #[error("refusing to run a program in the sandbox: {reason}")]
    BadCommand {
        /// What is wrong, and the mend.
        reason: String,
    },
    /// A path that may not be shown to an untrusted program.
    #[error("refusing to show {path:?} to an untrusted program: {reason}")]
    BadPath {
        /// The path as given.
        path: PathBuf,
        /// What is wrong, and the mend.
        reason: String,
    },
    /// The program itself could not be started inside the boundary.
    #[error(
        "the sandbox stands, but {program:?} could not be started in it: {reason}; is it installed and readable there?"
    )]
    NotStarted {
        /// The program's name.
        program: String,
        /// The operating system's reason.
        reason: String,
    },
    /// The boundary could not be set up, so the program was not started.
    #[error("setting up the sandbox failed before the program was started: {reason}")]
    Setup {
        /// What failed.
        reason: String,
    },
    /// The supervisor ended without saying how the program ended.
    #[error(
        "the sandbox supervisor ended without reporting how the program ended ({reason}); the run counts for nothing"
    )]
    Lost {
        /// What was seen instead of the report.
        reason: String,
    },
    /// Talking to the supervisor failed.
    #[error("cannot {action} the sandbox supervisor {launcher:?}: {source}")]
    Supervisor {
        /// What was being done.
        action: &'static str,
        /// The binary that is our supervisor.
        launcher: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
}
