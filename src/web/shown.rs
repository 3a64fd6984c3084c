//! Text from outside on its way into a page, and moments, ages and links as people read them.

use std::fmt;

use crate::clock::Millis;

/// Characters of a line, and of a block, that are shown; what is longer is in the evidence store.
const LINE: usize = 400;
const BLOCK: usize = 8_000;

/// Text from outside: bounded, and with every character that hides or reorders text replaced by its escape, so that it cannot
/// say one thing and look like another. The templates escape it for HTML like everything else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shown(String);

impl Shown {
    /// Text on one line: line breaks are shown as escapes, too.
    pub(super) fn line(text: impl fmt::Display) -> Self {
        Self(visible(&text.to_string(), LINE, false))
    }

    /// Text that may have several lines.
    pub(super) fn block(text: &str) -> Self {
        Self(visible(text.trim_end(), BLOCK, true))
    }

    /// Whether there is nothing to show.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn visible(text: &str, most: usize, lines: bool) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    let mut characters = text.chars();
    for character in characters.by_ref().take(most) {
        match character {
            '\n' | '\t' if lines => out.push(character),
            _ if hides(character) => out.extend(character.escape_default()),
            _ => out.push(character),
        }
    }
    let rest = characters.count();
    if rest > 0 {
        out = format!("{out}… ({rest} more characters)");
    }
    out
}

/// Characters that no glyph shows, or that change how their neighbours are shown: controls, direction marks, joiners, tags,
/// fillers and the variation selectors that text can be smuggled in (the two that choose between text and emoji stay).
const fn hides(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A moment, for the element `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(pub(super) Millis);

impl Moment {
    /// To the second, as a person reads it.
    pub(super) fn written(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0.0) {
            Ok(timestamp) => timestamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
            Err(_) => self.0.to_string(),
        }
    }

    /// How long before `now` it was, or how long after it is.
    pub(super) fn distance(self, now: Millis) -> String {
        let millis = now.0.saturating_sub(self.0.0);
        let span = span(millis.unsigned_abs());
        match millis {
            ..0 => format!("in {span}"),
            _ => format!("{span} ago"),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// A span of time in its two largest units.
fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// An address from outside. Only `http` and `https` become something to click on: any other scheme could run here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// Where it leads; none when it is only text.
    pub(super) href: Option<String>,
    /// What is shown.
    pub(super) text: Shown,
}

impl Link {
    pub(super) fn new(address: &str, text: impl fmt::Display) -> Self {
        let href = url::Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.username().is_empty());
        Self {
            href: href.map(String::from),
            text: Shown::line(text),
        }
    }

    /// An address that is its own text.
    pub(super) fn plain(address: &str) -> Self {
        Self::new(address, address)
    }
}
