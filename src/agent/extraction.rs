//! What is taken from an untrusted log.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::change::Sha256Digest;

/// One typed fact. Every string is a verbatim substring of the cleaned log, and `file` is tracked at the commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractedFact {
    /// The tool whose output it is, e.g. `cargo-test`.
    pub tool: String,
    /// What kind of fact, e.g. `test-failed`, `panic`, `compile-error`.
    pub kind: String,
    /// Name of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_name: Option<String>,
    /// Tracked file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Diagnostic code, e.g. `E0308`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Exception type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
}

/// The result of reading one log: both hashes, so that the extraction step itself can be checked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extraction {
    /// SHA-256 of the bytes as fetched (after the size cap).
    pub raw: Sha256Digest,
    /// SHA-256 of the compact JSON of `facts`.
    pub extraction: Sha256Digest,
    /// Bytes that were fetched.
    pub bytes: u64,
    /// Bytes that the cap left out.
    pub omitted: u64,
    /// Why the end of the log could not be fetched, when it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Characters that were removed because they hide or reorder text; more than none makes the log suspicious.
    pub hidden_characters: u64,
    /// At most 200.
    pub facts: Vec<ExtractedFact>,
}

impl Extraction {
    /// The normalised error: which tools said what went wrong where, without line numbers, order or repetition, so that the
    /// same defect has the same signature in every run. None when the log tells nothing.
    pub fn signature(&self) -> Option<Sha256Digest> {
        let without_line = |fact: &ExtractedFact| ExtractedFact {
            line: None,
            ..fact.clone()
        };
        let facts: BTreeSet<String> = self
            .facts
            .iter()
            .filter_map(|fact| serde_json::to_string(&without_line(fact)).ok())
            .collect();
        if facts.is_empty() {
            return None;
        }
        let lines: Vec<String> = facts.into_iter().collect();
        Some(Sha256Digest::of(lines.join("\n").as_bytes()))
    }
}
