//! Where in a JSON document something stands: `$`, then any number of `.name`, `["any name"]` and `[number]`. Exactly one place:
//! no wildcards, no filters, no recursion.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, de};
use serde_json::Value;

/// Longest path, in bytes.
const PATH_BYTES: usize = 200;

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no path into JSON; write one as in $.build.commit, $.parts[0].state or $[\"a name\"]"
)]
pub struct JsonPathError;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Place(usize),
}

/// A path into a JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

impl JsonPath {
    /// What stands there, if anything does.
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.steps
            .iter()
            .try_fold(document, |place, step| match step {
                Step::Member(name) => place.as_object()?.get(name),
                Step::Place(number) => place.as_array()?.get(*number),
            })
    }
}

impl FromStr for JsonPath {
    type Err = JsonPathError;

    fn from_str(text: &str) -> Result<Self, JsonPathError> {
        if text.len() > PATH_BYTES {
            return Err(JsonPathError);
        }
        let mut rest = text.strip_prefix('$').ok_or(JsonPathError)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = step(rest).ok_or(JsonPathError)?;
            steps.push(step);
            rest = after;
        }
        Ok(Self {
            text: text.to_owned(),
            steps,
        })
    }
}

/// The first step of a text, and what follows.
fn step(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
        let end = rest.find(|letter| !plain(letter)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        return (!name.is_empty()).then(|| (Step::Member(name.to_owned()), rest));
    }
    let rest = text.strip_prefix('[')?;
    if rest.starts_with('"') {
        // A JSON string, with its escapes.
        let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let name = names.next()?.ok()?;
        let rest = rest.get(names.byte_offset()..)?.strip_prefix(']')?;
        return Some((Step::Member(name), rest));
    }
    let (number, rest) = rest.split_once(']')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| number.parse().ok()).flatten()?;
    Some((Step::Place(number), rest))
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for JsonPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for JsonPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
