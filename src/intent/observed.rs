//! One line of an audit stream, as far as it tells of a score.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::decision::Decision;
use super::score::Score;

/// Longest line that is read, in bytes; events are far shorter.
pub const LONGEST_LINE: usize = 256 * 1024;

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// An action was scored.
    Scored(Score, Decision),
    /// An action was decided on without a score: an outage, an exempt tool.
    Unscored(Decision),
    /// Another event.
    Other,
    /// Not a line of an audit stream.
    Unreadable,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default)]
    fields: Value,
}

/// Reads one line, without its line feed. Signatures are not looked at: `caretaker audit verify` is for that.
pub fn observed(line: &[u8]) -> Observed {
    if line.len() > LONGEST_LINE {
        return Observed::Unreadable;
    }
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return Observed::Unreadable;
    };
    if line.event != "intent_alignment" {
        return Observed::Other;
    }
    let decision = match line.fields.get("decision").and_then(Value::as_str) {
        Some("allow") => Decision::Allow,
        Some("warn") => Decision::Warn,
        Some("deny") => Decision::Deny,
        _ => return Observed::Unreadable,
    };
    match line.fields.get("score") {
        Some(Value::Number(number)) => {
            let cosine = number.as_f64().filter(|score| (-1.0..=1.0).contains(score));
            match cosine.and_then(Score::from_cosine) {
                Some(score) => Observed::Scored(score, decision),
                None => Observed::Unreadable,
            }
        }
        _ => Observed::Unscored(decision),
    }
}
