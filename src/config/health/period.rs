//! A length of time as people write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize, de};

/// Why a text is no length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no length of time; write a whole number with its unit, as in 500ms, 30s, 5m or 1h"
)]
pub struct PeriodError;

/// A length of time: a whole number of ms, s, m or h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(u64);

impl Period {
    /// One minute.
    pub const fn minute() -> Self {
        Self(60_000)
    }

    /// Ten seconds.
    pub const fn ten_seconds() -> Self {
        Self(10_000)
    }

    /// In milliseconds.
    pub const fn milliseconds(&self) -> u64 {
        self.0
    }

    /// As the standard library has it.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

/// Units, largest first, in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl FromStr for Period {
    type Err = PeriodError;

    fn from_str(text: &str) -> Result<Self, PeriodError> {
        let end = text
            .find(|letter: char| !letter.is_ascii_digit())
            .ok_or(PeriodError)?;
        let (number, unit) = text.split_at(end);
        let (_, size) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or(PeriodError)?;
        let number: u64 = number.parse().map_err(|_| PeriodError)?;
        number.checked_mul(*size).map(Self).ok_or(PeriodError)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS
            .iter()
            .find(|(_, size)| self.0.is_multiple_of(*size) && self.0 > 0);
        match whole {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
