//! Where the stream ends, as its writers remember it: without that, lines could be cut off its end unnoticed.

use std::fmt;
use std::str::FromStr;

use crate::change::Sha256Digest;

/// The end of a stream: whoever keeps one can tell later that nothing was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many events there are.
    pub events: u64,
    /// SHA-256 of the last line without its line feed; zeros before the first.
    pub hash: Sha256Digest,
}

impl Head {
    /// Before the first event.
    pub const START: Self = Self {
        events: 0,
        hash: Sha256Digest::from_bytes([0; 32]),
    };
}

/// `EVENTS:HASH`.
impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.events, self.hash)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!(
                "{:?} is not EVENTS:HASH, a number and 64 hexadecimal digits as `caretaker audit verify` prints them",
                text.chars().take(120).collect::<String>()
            )
        };
        let (events, hash) = text.split_once(':').ok_or_else(refused)?;
        Ok(Self {
            events: events.parse().map_err(|_| refused())?,
            hash: hash.parse().map_err(|_| refused())?,
        })
    }
}
