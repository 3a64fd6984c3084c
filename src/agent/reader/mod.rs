//! Reading a log that an attacker may have written.
//!
//! The coder never sees log text. What it sees are typed facts, taken by fixed rules, whose every string stands verbatim in the
//! cleaned log, fits a narrow character set and, for files, is tracked at the commit. An attacker who prints into a log can
//! therefore only choose among true names; whatever the facts claim is reproduced before it is acted on.
//!
//! Steps: `selection` (bounds the bytes) → `clean` (what a person could not see goes) → `tool` (whose output is it)
//! → `rules` (that tool's rules only) → `validate` (closed vocabulary, character sets, verbatim, tracked).

mod clean;
mod hidden;
mod path;
mod pattern;
mod rules;
mod selection;
mod tool;
mod validate;

pub use clean::{CleanLog, RemovedCharacters};
pub(super) use hidden::is_hidden;
pub use validate::{Dropped, FACT_LIMIT};

use serde::{Deserialize, Serialize};

use super::{ExtractedFact, Extraction};
use crate::change::Sha256Digest;

/// What was done to a log while it was read, for the record and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadingReport {
    /// The tool whose rules were applied (`cargo`, `pytest`, `unittest`); none when no tool was recognised.
    pub tool: Option<String>,
    /// Fetched bytes that were not looked at because the log is longer than the reader's limits.
    pub unread_bytes: u64,
    /// Lines of which only the first 2,000 characters were kept.
    pub cut_lines: u64,
    /// Characters taken out, by kind.
    pub removed: RemovedCharacters,
    /// Facts that the rules found and the validator refused.
    pub dropped: Dropped,
    /// Whether the log holds characters whose only use is to hide or reorder text.
    pub suspicious: bool,
}

/// Reads one log: `log` as fetched, `omitted` the number of bytes that fetching left out, `tracked` whether a path is tracked
/// at the commit the log belongs to.
///
/// The result depends on nothing but the arguments, so that a stored log can be read again and compared. A log of no known
/// tool gives no facts. Time and memory are bounded by the size limits of `selection`, whatever the bytes are.
pub fn read(
    log: &[u8],
    omitted: u64,
    tracked: &dyn Fn(&str) -> bool,
) -> (Extraction, ReadingReport) {
    let selection = selection::select(log);
    let clean = clean::clean(&selection.pieces);
    let tool = tool::detect(&clean.text);
    let found = tool.map_or_else(Vec::new, |tool| {
        rules::facts_of(tool, &clean.text, &|path| path::tracked_part(path, tracked))
    });
    let (facts, dropped) = validate::validate(found, &clean.text, tracked);
    let extraction = Extraction {
        raw: Sha256Digest::of(log),
        extraction: facts_digest(&facts),
        bytes: log.len() as u64,
        omitted: omitted.saturating_add(selection.unread),
        cut: None,
        hidden_characters: clean.removed.hiding(),
        facts,
    };
    let report = ReadingReport {
        tool: tool.map(|tool| tool.as_str().to_owned()),
        unread_bytes: selection.unread,
        cut_lines: clean.cut_lines,
        removed: clean.removed,
        dropped,
        suspicious: clean.removed.hiding() > 0,
    };
    (extraction, report)
}

/// The text that facts of `log` must stand in: its selected parts, cleaned.
pub fn clean(log: &[u8]) -> CleanLog {
    clean::clean(&selection::select(log).pieces)
}

/// SHA-256 of the compact JSON of `facts`, members in the order in which [`ExtractedFact`] declares them.
pub fn facts_digest(facts: &[ExtractedFact]) -> Sha256Digest {
    // Strings and integers always serialise; an empty text would merely make every comparison fail.
    Sha256Digest::of(&serde_json::to_vec(facts).unwrap_or_default())
}
