//! How a run ended and what it printed.

use std::time::Duration;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It ended by itself with this exit code.
    Exited(i32),
    /// It was ended by this signal. Bubblewrap reports a signal as the exit code 128 + n, as a shell does, so a program
    /// that itself exits with 129 to 192 is taken for a signalled one.
    Signalled(i32),
    /// It was killed because its wall time was used up.
    TimedOut,
    /// It was killed because it printed more than [`super::Limits::output`].
    OutputLimit,
    /// It was killed because it had more than [`super::Limits::processes`] processes. Only where the kernel does not
    /// enforce that limit itself, which is when caretaker runs as root; elsewhere starting one more process fails.
    ProcessLimit,
}

impl Status {
    /// Whether the program ended by itself with exit code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// One output stream, up to the limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes, at most [`super::Limits::output`] of them.
    pub bytes: Vec<u8>,
    /// Whether more was printed than is kept here.
    pub cut: bool,
}

impl Captured {
    /// The bytes as text, with anything that is not UTF-8 replaced.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// What is known after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub status: Status,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// Time on the wall, including the boundary's own start.
    pub elapsed: Duration,
}
