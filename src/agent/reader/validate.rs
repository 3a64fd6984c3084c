//! The judge of what the rules, or any other reader, took from a log.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::path::is_plain;
use super::pattern::Pattern;
use crate::agent::ExtractedFact;

/// Most facts of one log.
pub const FACT_LIMIT: usize = 200;

/// The closed vocabulary: tool and kind.
const VOCABULARY: [(&str, &[&str]); 4] = [
    (
        "cargo-test",
        &[
            "test-failed",
            "documentation-test-failed",
            "panic",
            "missing-panic",
        ],
    ),
    ("cargo-build", &["compile-error"]),
    ("pytest", &["test-failed", "test-error", "raised"]),
    ("unittest", &["test-failed", "test-error", "raised"]),
];

/// Names of tests hold no space, so that no sentence passes for one.
static TEST_NAME: Pattern = Pattern::new(r"^[\w:./\-\[\]$<>#,]+$");
static CODE: Pattern = Pattern::new(r"^(?:[A-Z]{1,4}[0-9]{2,5}|[a-z-]{1,40}/[a-z-]{1,40})$");
static EXCEPTION: Pattern = Pattern::new(r"^[A-Za-z_][A-Za-z0-9_.]{0,80}$");

/// Longest name of a test, in characters.
const LONGEST_TEST_NAME: usize = 160;
/// Longest path, in bytes.
const LONGEST_FILE: usize = 300;

/// Facts that were found and refused, by reason. Repetitions are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Their file is not tracked at the commit.
    pub untracked: u64,
    /// A member is outside of its character set, or of the vocabulary, or does not stand in the log.
    pub unfit: u64,
    /// The log has more than [`FACT_LIMIT`].
    pub beyond_limit: u64,
}

/// Keeps the facts that hold, each once, in order, at most [`FACT_LIMIT`].
pub(super) fn validate(
    found: Vec<ExtractedFact>,
    text: &str,
    tracked: &dyn Fn(&str) -> bool,
) -> (Vec<ExtractedFact>, Dropped) {
    let (mut kept, mut dropped, mut seen) = (Vec::new(), Dropped::default(), HashSet::new());
    for fact in found {
        if !seen.insert(fact.clone()) {
            continue;
        }
        if kept.len() == FACT_LIMIT {
            dropped.beyond_limit += 1;
        } else if !fits(&fact) || !is_verbatim(&fact, text) {
            dropped.unfit += 1;
        } else if !fact
            .file
            .as_deref()
            .is_none_or(|file| is_plain(file) && tracked(file))
        {
            dropped.untracked += 1;
        } else {
            kept.push(fact);
        }
    }
    (kept, dropped)
}

/// Whether every member is of the vocabulary or in its character set, and there is something beside tool and kind.
fn fits(fact: &ExtractedFact) -> bool {
    let known = VOCABULARY
        .iter()
        .any(|(tool, kinds)| *tool == fact.tool && kinds.contains(&fact.kind.as_str()));
    let test_fits =
        |name: &str| TEST_NAME.matches(name) && name.chars().nth(LONGEST_TEST_NAME).is_none();
    let file_fits = |file: &str| !file.is_empty() && file.len() <= LONGEST_FILE;
    let says_something = fact.test_name.is_some() || fact.file.is_some() || fact.code.is_some();
    known
        && says_something
        && fact.test_name.as_deref().is_none_or(test_fits)
        && fact.file.as_deref().is_none_or(file_fits)
        && fact.line.is_none_or(|line| line > 0 && fact.file.is_some())
        && fact.code.as_deref().is_none_or(|code| CODE.matches(code))
        && fact
            .exception
            .as_deref()
            .is_none_or(|exception| EXCEPTION.matches(exception))
}

/// Whether every string stands in the cleaned log as it is.
fn is_verbatim(fact: &ExtractedFact, text: &str) -> bool {
    let strings = [&fact.test_name, &fact.file, &fact.code, &fact.exception];
    strings
        .into_iter()
        .flatten()
        .all(|part| text.contains(part))
}
