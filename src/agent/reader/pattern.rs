//! Patterns that are compiled once and matched in linear time.

use std::sync::OnceLock;

use regex::{Captures, Regex};

/// A pattern fixed in the source. One that does not compile matches nothing: the reader then finds no facts, never wrong ones.
pub(super) struct Pattern {
    source: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) const fn new(source: &'static str) -> Self {
        Self {
            source,
            compiled: OnceLock::new(),
        }
    }

    fn compiled(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| Regex::new(self.source).ok())
            .as_ref()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.compiled().is_some_and(|regex| regex.is_match(text))
    }

    pub(super) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.compiled().and_then(|regex| regex.captures(text))
    }
}

/// The text of a named group, if it took part in the match.
pub(super) fn group<'t>(captures: &Captures<'t>, name: &str) -> Option<&'t str> {
    captures.name(name).map(|found| found.as_str())
}

/// A line number, if it is one: from 1, no leading zero, inside 32 bits.
pub(super) fn line_number(captures: &Captures<'_>) -> Option<u32> {
    let digits = group(captures, "line")?;
    digits.parse().ok().filter(|_| !digits.starts_with('0'))
}
