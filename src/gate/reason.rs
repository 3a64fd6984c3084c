//! Why a decision came out as it did: a tree for people and tools, and a bounded list of lines for signing.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::Verdict;

/// The reason word for "a rule needs this and nobody measured it"; such a change needs approval.
pub const NOT_MEASURED: &str = "not-measured";

/// Most bytes of one signed line (`docs/ledger.md`, sizes).
const LINE_BYTES: usize = 500;

/// What a cut line ends with.
const CUT: &str = "…";

/// Most items of a signed list (`docs/ledger.md`, sizes).
const LIST_ITEMS: usize = 20;

/// One value that a rule looked at. No floats: signed statements carry none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measure {
    /// A count.
    Number(u64),
    /// A word, a path as shown, or a sentence.
    Text(String),
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Measure {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Measure {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Measure {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Measure {
    fn from(number: usize) -> Self {
        Self::Number(u64::try_from(number).unwrap_or(u64::MAX))
    }
}

/// A node of the tree of reasons. A node's outcome is the strictest of its own finding and its children's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The rule: the name of a question (`denied`, `class`, `limits`, …) or the glob of the rules file.
    pub rule: String,
    /// What this rule alone would decide.
    pub outcome: Verdict,
    /// What it looked at, by name.
    pub values: BTreeMap<String, Measure>,
    /// What it is made of.
    pub children: Vec<Self>,
}

impl Reason {
    pub(super) fn new(rule: impl Into<String>, outcome: Verdict) -> Self {
        Self {
            rule: rule.into(),
            outcome,
            values: BTreeMap::new(),
            children: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Measure>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// Adds children; the outcome rises to the strictest of them.
    pub(super) fn because(mut self, children: Vec<Self>) -> Self {
        let strictest = children.iter().map(|child| child.outcome).max();
        self.outcome = strictest.map_or(self.outcome, |outcome| outcome.max(self.outcome));
        self.children = children;
        self
    }

    /// The leaves that decide something, as `question: rule (name value, …)`.
    fn collect_lines(&self, above: Option<&str>, lines: &mut Vec<String>) {
        if self.outcome == Verdict::Free {
            return;
        }
        if self.children.is_empty() {
            let prefix = above.map(|above| format!("{above}: ")).unwrap_or_default();
            lines.push(format!("{prefix}{self}"));
        }
        for child in &self.children {
            child.collect_lines(Some(&self.rule), lines);
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rule)?;
        let shown: Vec<String> = self
            .values
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        if shown.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", shown.join(", "))
        }
    }
}

/// A list short enough to be signed: at most 20 items of at most 500 bytes each, and how many were left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capped {
    /// The first items, in order, composed (NFC).
    pub items: Vec<String>,
    /// Number of items not listed.
    pub rest: u64,
}

impl Capped {
    /// Caps a list.
    pub fn of(lines: impl IntoIterator<Item = String>) -> Self {
        let mut items = Vec::new();
        let mut rest = 0;
        for line in lines {
            if items.len() < LIST_ITEMS {
                items.push(line_of(&line));
            } else {
                rest += 1;
            }
        }
        Self { items, rest }
    }

    pub(super) fn of_reasons(reasons: &[Reason]) -> Self {
        let mut lines = Vec::new();
        for reason in reasons {
            reason.collect_lines(None, &mut lines);
        }
        Self::of(lines)
    }
}

/// Composed text of at most [`LINE_BYTES`] bytes, cut between characters and marked as cut.
fn line_of(text: &str) -> String {
    let composed: String = text.nfc().collect();
    if composed.len() <= LINE_BYTES {
        return composed;
    }
    let mut line = String::new();
    for character in composed.chars() {
        if line.len() + character.len_utf8() > LINE_BYTES - CUT.len() {
            break;
        }
        line.push(character);
    }
    line + CUT
}
