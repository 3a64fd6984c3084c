//! What a program printed, held against the protocol.

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::agent::{Diagnosis, FixSummary, reader};
use crate::change::RepoPath;

/// Largest answer, in bytes.
const LARGEST: usize = 64 << 10;
/// Most files of a diagnosis.
const MOST_FILES: usize = 100;
/// Longest cause, and longest summary of a diagnosis, in bytes.
const LONGEST_PARAGRAPH: usize = 500;
/// Longest summary of a fix, in bytes.
const LONGEST_SUMMARY: usize = 2000;
/// Longest title, in characters.
const LONGEST_TITLE: usize = 72;
/// Longest reason that quotes the answer, in characters.
const LONGEST_REASON: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedDiagnosis {
    cause: String,
    files: Vec<String>,
    confidence: u16,
    summary: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedFix {
    summary: String,
    title: String,
}

/// The answer to `diagnose`, or what is wrong with it.
pub(in crate::agent) fn diagnosis(printed: &[u8]) -> Result<Diagnosis, String> {
    let answer: PrintedDiagnosis =
        document(printed, r#"{"cause","files","confidence","summary"}"#)?;
    if answer.confidence > 1000 {
        return Err(format!(
            "confidence is {}, and must be 0 to 1000",
            answer.confidence
        ));
    }
    Ok(Diagnosis {
        cause: prose("cause", &answer.cause, LONGEST_PARAGRAPH)?,
        files: files(&answer.files)?,
        confidence: answer.confidence,
        summary: prose("summary", &answer.summary, LONGEST_PARAGRAPH)?,
    })
}

/// The answer to `fix`, or what is wrong with it.
pub(in crate::agent) fn fix_summary(printed: &[u8]) -> Result<FixSummary, String> {
    let answer: PrintedFix = document(printed, r#"{"summary","title"}"#)?;
    Ok(FixSummary {
        title: title(&answer.title)?,
        summary: prose("summary", &answer.summary, LONGEST_SUMMARY)?,
    })
}

/// Exactly one JSON document with exactly the expected members.
fn document<'d, T: Deserialize<'d>>(printed: &'d [u8], form: &str) -> Result<T, String> {
    if printed.len() > LARGEST {
        return Err(format!(
            "it printed {} bytes, more than {LARGEST}; print only the JSON document on standard output",
            printed.len()
        ));
    }
    if printed.trim_ascii().is_empty() {
        return Err(format!(
            "it printed nothing; print {form} on standard output"
        ));
    }
    serde_json::from_slice(printed).map_err(|error| {
        format!(
            "it is not the one JSON document {form}: {}",
            shown(&error.to_string())
        )
    })
}

fn files(names: &[String]) -> Result<Vec<RepoPath>, String> {
    if names.is_empty() {
        return Err("files is empty; name the files that are to change".to_owned());
    }
    if names.len() > MOST_FILES {
        return Err(format!(
            "files names {} paths, more than {MOST_FILES}",
            names.len()
        ));
    }
    let mut paths = Vec::with_capacity(names.len());
    for name in names {
        let path: RepoPath = name.parse().map_err(|error| format!("files: {error}"))?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn title(text: &str) -> Result<String, String> {
    let title: String = text.trim().nfc().collect();
    if title.is_empty() {
        return Err("title is empty".to_owned());
    }
    if title.chars().count() > LONGEST_TITLE {
        return Err(format!("title is longer than {LONGEST_TITLE} characters"));
    }
    if title.chars().any(reader::is_hidden) {
        return Err(
            "title has a line break or an invisible character; it must be one plain line"
                .to_owned(),
        );
    }
    Ok(title)
}

/// A text for people: not empty, not too long, nothing in it that hides or reorders text.
fn prose(member: &str, text: &str, longest: usize) -> Result<String, String> {
    let text: String = text.trim().nfc().collect();
    if text.is_empty() {
        return Err(format!("{member} is empty"));
    }
    if text.len() > longest {
        return Err(format!(
            "{member} is {} bytes, more than {longest}",
            text.len()
        ));
    }
    let hidden =
        |character: char| !matches!(character, '\n' | '\t') && reader::is_hidden(character);
    if text.chars().any(hidden) {
        return Err(format!("{member} has control or invisible characters"));
    }
    Ok(text)
}

/// A message that may quote the answer, printable and short.
fn shown(message: &str) -> String {
    let printable = |character| {
        if reader::is_hidden(character) {
            ' '
        } else {
            character
        }
    };
    message
        .chars()
        .map(printable)
        .take(LONGEST_REASON)
        .collect()
}
