//! Brings log bytes to the text that a person would have seen.

use std::str::Chars;

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

use super::hidden::{Unseen, unseen};

/// Most characters of one line that are kept.
const LINE_LIMIT: usize = 2000;

/// What was taken out of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedCharacters {
    /// Terminal escape sequences (CSI, OSC, DCS and the like), each counted once.
    pub escape_sequences: u64,
    /// Control characters outside of sequences; carriage returns are not counted.
    pub controls: u64,
    /// Characters that change the direction of text.
    pub bidirectional: u64,
    /// Tag characters and supplementary variation selectors.
    pub tags: u64,
    /// Characters that take no room.
    pub zero_width: u64,
    /// Joiners and presentation selectors of emoji.
    pub emoji_joiners: u64,
    /// Other format characters, private use, non-characters.
    pub other: u64,
}

impl RemovedCharacters {
    /// How many of them serve only to hide or reorder text.
    pub const fn hiding(&self) -> u64 {
        self.bidirectional + self.tags + self.zero_width
    }

    fn count(&mut self, reason: Unseen) {
        *match reason {
            Unseen::Control => &mut self.controls,
            Unseen::Bidirectional => &mut self.bidirectional,
            Unseen::Tag => &mut self.tags,
            Unseen::ZeroWidth => &mut self.zero_width,
            Unseen::EmojiJoiner => &mut self.emoji_joiners,
            Unseen::Other => &mut self.other,
        } += 1;
    }
}

/// A log as text in NFC, without anything a person could not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanLog {
    /// The text; every line ends with a line feed.
    pub text: String,
    /// What was taken out.
    pub removed: RemovedCharacters,
    /// Lines that were longer than 2,000 characters.
    pub cut_lines: u64,
}

/// Cleans the pieces in order; a piece ends a line. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn clean(pieces: &[&[u8]]) -> CleanLog {
    let mut log = CleanLog {
        text: String::new(),
        removed: RemovedCharacters::default(),
        cut_lines: 0,
    };
    for piece in pieces {
        for line in piece.split(|byte| *byte == b'\n') {
            clean_line(&String::from_utf8_lossy(line), &mut log);
        }
    }
    log
}

/// Appends one line. Escape sequences end with the line at the latest: one that a terminal would carry on over the next lines
/// loses only its introducer, so that nothing can be hidden by leaving it open.
fn clean_line(raw: &str, log: &mut CleanLog) {
    let mut line = Line::default();
    let mut rest = without_timestamp(raw).chars();
    while let Some(character) = rest.next() {
        match character {
            '\r' => line.returned = true,
            '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                log.removed.escape_sequences += 1;
                skip_sequence(character, &mut rest);
            }
            _ => match unseen(character) {
                Some(reason) => log.removed.count(reason),
                None => line.push(character),
            },
        }
    }
    log.cut_lines += u64::from(line.cut);
    if is_nfc(&line.text) {
        log.text.push_str(&line.text);
    } else {
        log.text.extend(line.text.nfc());
    }
    log.text.push('\n');
}

/// A line as a terminal shows it: what follows a carriage return replaces what stood before.
#[derive(Default)]
struct Line {
    text: String,
    characters: usize,
    cut: bool,
    returned: bool,
}

impl Line {
    fn push(&mut self, character: char) {
        if self.returned {
            *self = Self::default();
        }
        if self.characters == LINE_LIMIT {
            self.cut = true;
        } else {
            self.text.push(character);
            self.characters += 1;
        }
    }
}

/// The line without the byte order mark and the time that GitHub Actions puts before it: `2026-07-16T08:12:33.1234567Z `.
fn without_timestamp(line: &str) -> &str {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let bytes = line.as_bytes();
    let is_time = bytes.len() >= 20
        && bytes[..19]
            .iter()
            .zip(b"0000-00-00T00:00:00")
            .all(|(found, form)| match form {
                b'0' => found.is_ascii_digit(),
                _ => found == form,
            });
    if !is_time {
        return line;
    }
    let fraction = line[19..].strip_prefix('.').unwrap_or(&line[19..]);
    let after = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
    match after.strip_prefix('Z') {
        Some(text) => text.strip_prefix(' ').unwrap_or(text),
        None => line,
    }
}

/// Moves `rest` behind the escape sequence that `introducer` began (ECMA-48, 5.4 and 8.3).
///
/// Every look ahead stops at the next control character, so that a row of open sequences costs linear time.
fn skip_sequence(introducer: char, rest: &mut Chars<'_>) {
    let kind = match introducer {
        '\u{1b}' => match rest.clone().next() {
            Some(second @ ' '..='~') => {
                rest.next();
                second
            }
            _ => return,
        },
        '\u{9b}' => '[',
        _ => ']',
    };
    match kind {
        '[' => skip_control_sequence(rest),
        ']' | 'P' | 'X' | '^' | '_' => skip_control_string(rest),
        ' '..='/' => {
            skip_while(rest, |character| matches!(character, ' '..='/'));
            skip_one(rest, |character| matches!(character, '0'..='~'));
        }
        _ => {}
    }
}

/// Parameters, intermediates, one final character; whatever of them is there.
fn skip_control_sequence(rest: &mut Chars<'_>) {
    skip_while(rest, |character| matches!(character, '0'..='?'));
    skip_while(rest, |character| matches!(character, ' '..='/'));
    skip_one(rest, |character| matches!(character, '@'..='~'));
}

/// An operating system command, device control string and the like up to its terminator, if that stands on this line.
fn skip_control_string(rest: &mut Chars<'_>) {
    let mut ahead = rest.clone();
    skip_while(&mut ahead, |character| !character.is_control());
    let ended = match ahead.next() {
        Some('\u{7}' | '\u{9c}') => true,
        Some('\u{1b}') => ahead.next() == Some('\\'),
        _ => false,
    };
    if ended {
        *rest = ahead;
    }
}

fn skip_while(rest: &mut Chars<'_>, belongs: impl Fn(char) -> bool) {
    while skip_one(rest, &belongs) {}
}

fn skip_one(rest: &mut Chars<'_>, belongs: impl Fn(char) -> bool) -> bool {
    let mut ahead = rest.clone();
    let found = ahead.next().is_some_and(belongs);
    if found {
        *rest = ahead;
    }
    found
}
