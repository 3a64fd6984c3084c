//! Runs an untrusted program (a project's tests, a coder's command) inside a boundary it cannot leave.
//!
//! Three processes stand between caretaker and the program:
//!
//! 1. this process validates a [`Command`], starts the *supervisor* and collects what the program prints;
//! 2. the supervisor (our own binary, `sandbox-supervise`) holds the scratch directory, starts the boundary and kills
//!    every process of the run as soon as its control socket closes, whether caretaker asked for that or died;
//! 3. inside the boundary our own binary again (`sandbox-exec`) takes away capabilities, sets resource limits, Landlock
//!    rules and a seccomp filter on itself, and then becomes the program.
//!
//! The boundary is bubblewrap (own mount, process, network, IPC and user namespaces) with Landlock inside. Where
//! bubblewrap does not work, Landlock and seccomp alone confine the program; what that cannot do is said at
//! [`Mode::Landlock`].

pub mod bridge;
mod bubblewrap;
mod command;
mod confine;
mod detect;
mod error;
mod filter;
mod flock;
mod inherited;
mod mode;
mod outcome;
mod paths;
mod processes;
pub mod reexec;
mod rules;
mod run;
mod scratch;
mod supervise;
mod syscalls;
mod wire;

pub use command::{Command, Limits};
pub use detect::Sandbox;
pub use error::SandboxError;
pub use mode::Mode;
pub use outcome::{Captured, Outcome, Status};
