//! How often and how late a failed step is tried again: the one place for it.

use std::time::Duration;

/// Attempts at one step before the incident is handed to a person.
const MOST_ATTEMPTS: u32 = 10;
/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backoff {
    /// Try again after this long.
    Wait(Duration),
    /// It was tried as often as allowed.
    Exhausted,
}

/// What follows the failed attempt with this number (from 1), when the step asks for at least `after`. Ten attempts span about
/// eight and a half minutes.
pub(super) fn backoff(attempt: u32, after: Duration) -> Backoff {
    if attempt >= MOST_ATTEMPTS {
        return Backoff::Exhausted;
    }
    Backoff::Wait(pace(attempt).max(after))
}

/// The wait after an attempt, without an end: for steps that must not be given up, such as signing.
pub(super) fn pace(attempt: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    doubled.min(LONGEST_WAIT)
}
