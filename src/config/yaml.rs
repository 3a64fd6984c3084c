//! Strict YAML: bounded in size and depth, duplicate and unknown keys refused, every error with line and column.

use serde::de::DeserializeOwned;
use serde_saphyr::options::MergeKeyPolicy;
use serde_saphyr::{Error, Options};

use super::nearest::suggestion;
use super::source::MAXIMUM_FILE_BYTES;

/// Why a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct YamlError {
    /// The file's name as given.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in characters, from 1.
    pub column: u64,
    /// What is wrong there, and the mend.
    pub problem: String,
}

/// Bounds that no honest file comes near; they keep time and memory small for a hostile one.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 50_000,
            max_events: 200_000,
            max_aliases: 100,
            max_anchors: 100,
            max_documents: 4,
            max_recorded_anchor_events: 20_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 20_000,
            max_replay_stack_depth: 8,
        },
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        with_snippet: false,
    }
}

/// A stranger's YAML as a value, within the same bounds; none when it cannot be read.
pub fn yaml_value(bytes: &[u8]) -> Option<serde_json::Value> {
    read(bytes, "").ok()
}

/// Reads a document.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8], file: &str) -> Result<T, YamlError> {
    let at_start = |problem: String| YamlError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        problem,
    };
    if u64::try_from(bytes.len()).map_or(true, |length| length > MAXIMUM_FILE_BYTES) {
        return Err(at_start(format!(
            "the text is larger than {MAXIMUM_FILE_BYTES} bytes"
        )));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to(), file))?;
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| {
        let place = error.location();
        YamlError {
            file: file.to_owned(),
            line: place.map_or(1, |place| place.line().max(1)),
            column: place.map_or(1, |place| place.column().max(1)),
            problem: describe(error.without_snippet()),
        }
    })
}

/// Reads a document, or its default when the text holds nothing but space and comments.
pub(super) fn read_or_default<T: DeserializeOwned + Default>(
    bytes: &[u8],
    file: &str,
) -> Result<T, YamlError> {
    if is_blank(bytes) {
        Ok(T::default())
    } else {
        read(bytes, file)
    }
}

/// Whether there is nothing but space and comments.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .all(|line| line.is_empty() || line.starts_with(b"#"))
}

fn not_utf8(bytes: &[u8], valid: usize, file: &str) -> YamlError {
    let before = bytes.get(..valid).unwrap_or_default();
    let mut lines = before.split(|byte| *byte == b'\n');
    let last = lines.next_back().unwrap_or_default();
    let (line, column) = (
        lines.count(),
        last.utf8_chunks()
            .map(|chunk| chunk.valid().chars().count())
            .sum(),
    );
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
    YamlError {
        file: file.to_owned(),
        line: number(line),
        column: number(column),
        problem: "this byte is not UTF-8; save the file as UTF-8".to_owned(),
    }
}

/// The problem in our words, with the mend.
fn describe(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField {
            field, expected, ..
        } => {
            format!("unknown key {field:?}; {}", suggestion(field, expected))
        }
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => {
            format!(
                "{variant:?} is not one of the words allowed here; {}",
                suggestion(variant, expected)
            )
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("this one");
            format!("the key {key:?} stands twice; keep one")
        }
        Error::SerdeMissingField { field, .. } => format!("the key {field:?} is missing; add it"),
        Error::SerdeInvalidType {
            unexpected,
            expected,
            ..
        } => {
            // The kind alone: the value may be a secret that was written in the wrong place.
            let found = unexpected
                .split(['"', '`'])
                .next()
                .unwrap_or_default()
                .trim();
            format!("found: {found}; expected {expected}")
        }
        Error::SerdeInvalidValue { expected, .. } => {
            format!("this value cannot be used; expected {expected}")
        }
        Error::InvalidScalar { ty, .. } => format!("this value is not {}", kind(ty)),
        Error::InvalidBooleanStrict { .. } => {
            "this value is not a yes-or-no; write true or false".to_owned()
        }
        Error::Unexpected { expected, .. } => format!("expected {}", shape(expected)),
        Error::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => {
            "expected one word here".to_owned()
        }
        Error::NullIntoString { .. } => {
            "nothing stands here; write a text, or remove the key".to_owned()
        }
        Error::UnknownAnchor { .. } => {
            "a value that starts with * is read as a YAML alias; put it in quotes, as in \"*.pem\""
                .to_owned()
        }
        Error::UnsupportedTag { .. } | Error::TaggedStructFieldName { .. } => {
            "a value that starts with ! is read as a YAML tag; put it in quotes if the ! is meant"
                .to_owned()
        }
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (<<) are not supported; write the keys out".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "the file holds more than one document (---); keep one".to_owned()
        }
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => {
            "the text is nested too deeply or repeats itself too often; write it out plainly"
                .to_owned()
        }
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => describe(error),
        Error::Message { msg, .. } => msg.clone(),
        Error::ExternalMessage { msg, .. } => format!("this is not YAML: {msg}"),
        other => format!("this cannot be read: {other}"),
    }
}

/// The name of a parser's event in words.
fn shape(event: &str) -> &str {
    match event {
        "mapping start" => "keys with values here, as in key: value",
        "sequence start" => "a list here, as in [a, b]",
        "string scalar" => "a text here",
        other => other,
    }
}

/// A Rust type's name in words.
fn kind(name: &str) -> &'static str {
    match name {
        "bool" => "true or false",
        name if name.starts_with(['u', 'i']) => "a whole number that fits here",
        name if name.starts_with('f') => "a number",
        _ => "of the kind expected here",
    }
}
