//! What is expected of an answer.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize, de};
use serde_json::Value;

use super::{JsonPath, Period};

/// Expectations of JSON of one check, at most.
const MOST_EXPECTATIONS: usize = 20;
/// Longest expression, in bytes.
const EXPRESSION_BYTES: usize = 500;
/// Largest compiled expression, in bytes.
const EXPRESSION_MEMORY: usize = 256 * 1024;
/// Longest latency that can be asked for, in milliseconds.
const LONGEST_LATENCY: u64 = 60_000;
/// Days before the end of a certificate from which on people are told, unless the check says otherwise.
const CERTIFICATE_DAYS: u16 = 14;

/// What a good answer is like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expectation {
    /// Its status.
    pub status: Statuses,
    /// What its body matches somewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_matches: Option<Pattern>,
    /// What stands where in its body, which is JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub json: Vec<JsonExpectation>,
    /// From how many days before its certificate ends people are told; 0 is never.
    pub certificate_days: u16,
    /// How long it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Period>,
}

impl Default for Expectation {
    fn default() -> Self {
        Self {
            status: Statuses(vec![(200, 299)]),
            body_matches: None,
            json: Vec::new(),
            certificate_days: CERTIFICATE_DAYS,
            latency: None,
        }
    }
}

impl Expectation {
    pub(super) const fn reads_body(&self) -> bool {
        self.body_matches.is_some() || !self.json.is_empty()
    }

    pub(super) fn problem(&self) -> Option<String> {
        if self.json.len() > MOST_EXPECTATIONS {
            return Some(format!(
                "expect.json has more than {MOST_EXPECTATIONS} entries"
            ));
        }
        let latency = self.latency.map_or(1, |latency| latency.milliseconds());
        (!(1..=LONGEST_LATENCY).contains(&latency))
            .then(|| "expect.latency is not between 1ms and 60s".to_owned())
    }
}

/// What stands at one place of a JSON body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonExpectation {
    /// Where.
    pub path: JsonPath,
    /// What; without it, anything but null.
    #[serde(
        default,
        deserialize_with = "whatever",
        skip_serializing_if = "Option::is_none"
    )]
    pub equals: Option<Value>,
}

/// A value that may be null: `equals: null` expects null, which is not the same as expecting nothing in particular.
fn whatever<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Statuses: single ones and ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StatusesForm", into = "StatusesForm")]
pub struct Statuses(Vec<(u16, u16)>);

/// How statuses are written: `200`, `"200-299"`, or a list of both.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum StatusesForm {
    One(StatusForm),
    Many(Vec<StatusForm>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum StatusForm {
    Number(u16),
    Text(String),
}

impl Statuses {
    /// Whether a status is one of them.
    pub fn include(&self, status: u16) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&status))
    }

    /// Whether a redirect is one of them, so that it is an answer and not followed.
    pub fn include_redirects(&self) -> bool {
        self.0
            .iter()
            .any(|(first, last)| *first < 400 && *last >= 300)
    }
}

impl TryFrom<StatusesForm> for Statuses {
    type Error = String;

    fn try_from(form: StatusesForm) -> Result<Self, String> {
        let many = match form {
            StatusesForm::One(one) => vec![one],
            StatusesForm::Many(many) => many,
        };
        if many.is_empty() || many.len() > 20 {
            return Err("name between 1 and 20 statuses".to_owned());
        }
        many.into_iter()
            .map(range)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn range(form: StatusForm) -> Result<(u16, u16), String> {
    let mend = || "a status is a number from 100 to 599, or a range as in \"200-299\"".to_owned();
    let (first, last) = match form {
        StatusForm::Number(number) => (number, number),
        StatusForm::Text(text) => {
            let (first, last) = text.split_once('-').unwrap_or((&text, &text));
            let number = |text: &str| text.parse::<u16>().map_err(|_| mend());
            (number(first)?, number(last)?)
        }
    };
    if 100 <= first && first <= last && last <= 599 {
        Ok((first, last))
    } else {
        Err(mend())
    }
}

impl From<Statuses> for StatusesForm {
    fn from(statuses: Statuses) -> Self {
        let form = |(first, last)| {
            if first == last {
                StatusForm::Number(first)
            } else {
                StatusForm::Text(format!("{first}-{last}"))
            }
        };
        Self::Many(statuses.0.into_iter().map(form).collect())
    }
}

impl fmt::Display for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (first, last)) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// A regular expression whose time and memory are bounded.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Whether it matches somewhere.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_BYTES {
            return Err(format!(
                "the regular expression is longer than {EXPRESSION_BYTES} bytes"
            ));
        }
        RegexBuilder::new(text)
            .size_limit(EXPRESSION_MEMORY)
            .dfa_size_limit(EXPRESSION_MEMORY)
            .build()
            .map(Self)
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    "the regular expression repeats too much; write it shorter".to_owned()
                }
                _ => "this is no regular expression; quote what is meant literally with \\"
                    .to_owned(),
            })
    }
}

impl Serialize for Pattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
