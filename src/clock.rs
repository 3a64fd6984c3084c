//! Time as a parameter: whatever needs "now" takes a [`Clock`].

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This moment moved forward by a number of seconds, saturating at the end of time.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1000)))
    }

    /// This moment moved forward by a number of milliseconds, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }
}

/// RFC 3339 in UTC, the form that JSON and pages show; a moment outside the calendar shows its number.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => write!(f, "{timestamp}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// Where "now" comes from.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Millis;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        Millis(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that tests set and move by hand.
#[derive(Debug, Default)]
pub struct FixedClock(std::sync::atomic::AtomicI64);

impl FixedClock {
    /// A clock that stands still at a moment.
    pub const fn at(now: Millis) -> Self {
        Self(std::sync::atomic::AtomicI64::new(now.0))
    }

    /// Moves the clock forward.
    pub fn advance_millis(&self, millis: i64) {
        self.0
            .fetch_add(millis, std::sync::atomic::Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(std::sync::atomic::Ordering::SeqCst))
    }
}
