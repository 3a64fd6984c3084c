//! What statuses and headers mean, and how a body becomes a value.

use http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::budget::{Heard, Limited};
use super::call::Unanswered;
use super::transport::{Answer, Broken};
use super::wire;
use crate::change::Oid;
use crate::clock::Millis;
use crate::connector::ConnectorError;

/// How long to wait for a limit that does not say how long.
const UNSTATED_WAIT_SECONDS: i64 = 60;
/// The longest wait that is believed. No limit of the provider lasts longer than an hour, and who believed a moment given in
/// milliseconds would look away for good.
const LONGEST_WAIT_SECONDS: i64 = 60 * 60;
/// How many characters of the provider's words are kept.
const WORDS_LIMIT: usize = 500;

/// Whether the answer is a limit: 429, or 403 with the headers or the words of one. A plain 403 is a permission that is
/// missing.
pub(super) fn limit(answer: &Answer, now: Millis) -> Option<Limited> {
    if !matches!(
        answer.status,
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    ) {
        return None;
    }
    let limited = |seconds: Option<i64>, why: &str| {
        let bounded = |seconds: i64| now.plus_seconds(seconds.clamp(1, LONGEST_WAIT_SECONDS));
        Some(Limited {
            until: seconds.map(bounded),
            why: format!("{why} ({}: {})", answer.status.as_u16(), words(answer)),
        })
    };
    if let Some(wait) = answer.header("retry-after") {
        return limited(wait.trim().parse().ok(), "the provider asks to wait");
    }
    if answer.header("x-ratelimit-remaining").map(str::trim) == Some("0") {
        // One that is over already, by this machine's clock, says nothing of how long to wait.
        let left = reset(answer)
            .map(|reset| reset.saturating_sub(now.0.div_euclid(1000)))
            .filter(|left| *left > 0);
        return limited(left, "the requests of this hour are spent");
    }
    let words = words(answer).to_ascii_lowercase();
    let said = answer.status == StatusCode::TOO_MANY_REQUESTS
        || words.contains("rate limit")
        || words.contains("abuse detection");
    if said {
        return limited(None, "too much was asked in a short time");
    }
    None
}

/// When to come back, if the answer is a limit.
pub(super) fn limited_until(answer: &Answer, now: Millis) -> Option<Millis> {
    let limited = limit(answer, now)?;
    let unstated = now.plus_seconds(UNSTATED_WAIT_SECONDS);
    Some(limited.until.unwrap_or(unstated))
}

/// Unix seconds.
fn reset(answer: &Answer) -> Option<i64> {
    answer.header("x-ratelimit-reset")?.trim().parse().ok()
}

/// What an answer tells the budget.
pub(super) fn heard(answer: &Answer, now: Millis) -> Heard {
    let number = |name: &str| answer.header(name)?.trim().parse().ok();
    // Searches and the like are counted apart.
    let counted = matches!(answer.header("x-ratelimit-resource"), None | Some("core"));
    let unchanged = answer.status == StatusCode::NOT_MODIFIED;
    Heard {
        limit: number("x-ratelimit-limit").filter(|_| counted),
        remaining: number("x-ratelimit-remaining").filter(|_| counted),
        resets_at: reset(answer).map(|seconds| Millis(seconds.saturating_mul(1000))),
        unchanged,
        success: unchanged || answer.status.is_success(),
        limited: limit(answer, now),
    }
}

/// The error that an unsuccessful answer is. One that is a limit does not come here: whoever sent the request has taken it for one.
pub(super) fn refusal(action: &str, address: &str, answer: &Answer) -> ConnectorError {
    let action = action.to_owned();
    let status = answer.status;
    let reason = format!("{}: {}", status.as_u16(), words(answer));
    match status {
        StatusCode::UNAUTHORIZED => ConnectorError::Unauthorised { action, reason },
        StatusCode::FORBIDDEN => ConnectorError::Forbidden { action, reason },
        StatusCode::NOT_FOUND => ConnectorError::Absent {
            action,
            address: address.to_owned(),
        },
        _ if status.is_server_error() => ConnectorError::Unreachable {
            action,
            address: address.to_owned(),
            reason,
        },
        StatusCode::NOT_MODIFIED => ConnectorError::Refused {
            action,
            reason: "304: the provider says that nothing has changed since an answer that was never asked about".to_owned(),
        },
        StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS => ConnectorError::Refused {
            action,
            reason: format!(
                "{reason}; the provider blocks the repository, which only its owner can settle with it; pause the project meanwhile"
            ),
        },
        _ if status.is_redirection() => ConnectorError::Refused {
            action,
            reason: format!(
                "{}: the provider points elsewhere, which is not followed; if the repository was renamed or transferred, register it under its new name",
                status.as_u16()
            ),
        },
        _ => ConnectorError::Refused { action, reason },
    }
}

/// The error that a call without an answer is.
pub(super) fn unanswered(action: &str, address: &str, unanswered: Unanswered) -> ConnectorError {
    match unanswered {
        Unanswered::Broken(Broken::Off(reason)) => ConnectorError::Unreachable {
            action: action.to_owned(),
            address: address.to_owned(),
            reason,
        },
        Unanswered::Broken(broken @ Broken::TooLarge) => nonsense(action, &broken.to_string()),
        Unanswered::Limited(wait) => {
            tracing::debug!(until = %wait.until, why = wait.why, "{action}: held back");
            ConnectorError::Limited {
                action: action.to_owned(),
                until: wait.until,
            }
        }
        Unanswered::NoToken(error) => error,
    }
}

/// The error for an answer that cannot be used.
pub(super) fn nonsense(action: &str, reason: &str) -> ConnectorError {
    ConnectorError::Refused {
        action: action.to_owned(),
        reason: format!("the answer makes no sense: {reason}"),
    }
}

/// The provider's words in a refusal, on one line and of bounded length; never a page of HTML.
pub(super) fn words(answer: &Answer) -> String {
    let usual = || {
        answer
            .status
            .canonical_reason()
            .unwrap_or("no reason given")
            .to_owned()
    };
    let Ok(refusal) = serde_json::from_slice::<wire::Refusal>(&answer.body) else {
        return usual();
    };
    let mut text = refusal.message.unwrap_or_else(usual);
    for detail in details(refusal.errors.as_ref()) {
        text.push_str("; ");
        text.push_str(&detail);
    }
    text.chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .take(WORDS_LIMIT)
        .collect()
}

/// The `errors` member is a list of texts, of objects, or one text.
fn details(errors: Option<&Value>) -> Vec<String> {
    let one = |error: &Value| match error {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => {
            let member = |name: &str| members.get(name).and_then(Value::as_str);
            member("message").map_or_else(
                || {
                    let named: Vec<_> = [member("field"), member("code")]
                        .into_iter()
                        .flatten()
                        .collect();
                    (!named.is_empty()).then(|| named.join(" "))
                },
                |message| Some(message.to_owned()),
            )
        }
        _ => None,
    };
    match errors {
        Some(Value::Array(list)) => list.iter().filter_map(one).take(10).collect(),
        Some(other) => one(other).into_iter().collect(),
        None => Vec::new(),
    }
}

/// A body as a value. Bytes that are not UTF-8 are named as such: a file name may be the cause.
pub(super) fn decoded<T: DeserializeOwned>(action: &str, body: &[u8]) -> Result<T, ConnectorError> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(nonsense(
            action,
            "it is not UTF-8; a name that is not UTF-8 cannot be compared",
        ));
    };
    serde_json::from_str(text)
        .map_err(|error| nonsense(action, &format!("not the JSON expected ({error})")))
}

/// A body as a value, where nothing is compared byte by byte: what is not UTF-8 in it is replaced, since a title that breaks off
/// in the middle of a character must not hide a run.
pub(super) fn decoded_leniently<T: DeserializeOwned>(
    action: &str,
    body: &[u8],
) -> Result<T, ConnectorError> {
    decoded(action, String::from_utf8_lossy(body).as_bytes())
}

/// One item of a list as a value.
pub(super) fn item<T: DeserializeOwned>(action: &str, value: Value) -> Result<T, ConnectorError> {
    serde_json::from_value(value).map_err(|error| {
        nonsense(
            action,
            &format!("an item is not what was expected ({error})"),
        )
    })
}

/// A member that cannot be done without.
pub(super) fn required<T>(
    action: &str,
    member: &str,
    value: Option<T>,
) -> Result<T, ConnectorError> {
    value.ok_or_else(|| nonsense(action, &format!("{member} is missing")))
}

/// A complete object id; an abbreviated one is an error.
pub(super) fn object_id(
    action: &str,
    member: &str,
    text: Option<&str>,
) -> Result<Oid, ConnectorError> {
    required(action, member, text)?
        .parse()
        .map_err(|error| nonsense(action, &format!("{member}: {error}")))
}

/// Longest address of a page that is kept, in bytes.
const ADDRESS_LIMIT: usize = 2_000;

/// An address for people, when it is one.
pub(super) fn page(address: Option<String>) -> Option<String> {
    address.filter(|text| {
        text.len() <= ADDRESS_LIMIT && (text.starts_with("https://") || text.starts_with("http://"))
    })
}

/// A word or a name of the provider's as it is kept: not longer than `limit` bytes.
pub(super) fn bounded(mut text: String, limit: usize) -> String {
    // Break it: keep it whole (`connector::odd::words_of_the_provider_are_kept_no_longer_than_they_can_be`).
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    // Pages of runs are kept for long.
    text.shrink_to_fit();
    text
}
