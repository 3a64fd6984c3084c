//! When a key counts.

use serde::{Deserialize, Serialize};

use super::super::text::Text;
use crate::clock::Millis;

/// The end of a key before its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Revocation {
    /// When it was revoked.
    pub at: Millis,
    /// The log index from which on it no longer counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_index: Option<u64>,
    /// From when on somebody else may have had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compromised_since: Option<Millis>,
    /// Why.
    pub reason: Text,
}

impl Revocation {
    /// From when on the key's statements do not count.
    pub fn effective_from(&self) -> Millis {
        self.compromised_since
            .map_or(self.at, |since| since.min(self.at))
    }
}

/// The window in which a key counts, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity<'a> {
    /// From when on it counts.
    pub not_before: Millis,
    /// From when on it no longer counts.
    pub not_after: Option<Millis>,
    /// First log index at which it counts.
    pub from_index: Option<u64>,
    /// First log index at which it no longer counts.
    pub until_index: Option<u64>,
    /// How it was revoked.
    pub revoked: Option<&'a Revocation>,
}

impl Validity<'_> {
    /// Whether the window includes a moment, whatever was revoked.
    pub fn includes(&self, moment: Millis) -> bool {
        self.not_before <= moment && self.not_after.is_none_or(|end| moment < end)
    }

    /// Whether what is signed at this moment counts.
    pub fn counts_at(&self, moment: Millis) -> bool {
        self.why_not(moment).is_none()
    }

    /// Why what is signed at this moment does not count, if so: words for a person.
    pub fn why_not(&self, moment: Millis) -> Option<String> {
        let revoked = self.revoked.map(Revocation::effective_from);
        if let Some(from) = revoked.filter(|from| *from <= moment) {
            return Some(format!("revoked from {from}"));
        }
        if self.includes(moment) {
            return None;
        }
        Some(match self.not_after {
            Some(end) if end <= moment => format!("it counted until {end}"),
            _ => format!("it counts from {}", self.not_before),
        })
    }

    /// Whether it includes no moment or no index at all.
    pub(super) fn is_empty(&self) -> bool {
        self.not_after.is_some_and(|end| end <= self.not_before)
            || self
                .until_index
                .is_some_and(|until| until <= self.from_index.unwrap_or(0))
    }
}
