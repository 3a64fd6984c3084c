//! What a status other than 200 means: whether asking again may help, and when.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::Value;

use super::Class;
use crate::https;

/// Words with which providers say that a limit of money or of the day is reached, which no pause of ours outlasts.
const SPENT: [&str; 5] = [
    // OpenAI, and those that speak its form.
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    // Anthropic.
    "enforced_spend_limit_reached",
    "billing_error",
];

/// What a refused request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whether asking again may help.
    pub class: Class,
    /// What happened and the mend, without a word of the provider's.
    pub detail: String,
}

/// Classifies an answer with a status other than 200. `after` is what `Retry-After` says, `body` the beginning of its body, of which
/// nothing is repeated.
pub fn refusal(status: StatusCode, after: Option<Duration>, body: &[u8]) -> Refusal {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let spent = status == StatusCode::TOO_MANY_REQUESTS && is_spent(&said);
    let mend = match status.as_u16() {
        _ if spent => "its limit of money or of the day is reached; raise it there",
        401 | 403 => "is the key right?",
        402 => "its limit of money is reached; raise it there",
        404 => "are base_url and the model's name right?",
        413 => "the conversation is too long for it",
        429 => "it wants fewer requests",
        300..=399 => "redirects are not followed; set base_url to where it is",
        500..=599 => "it is failing",
        _ => {
            "does it have this model, does the model call tools, and does it take conversations of this length?"
        }
    };
    let class = if spent || !https::may_pass(status) {
        // Break it: retry everything; `agent::model_asking::what_may_pass_is_asked_again_and_nothing_else_is`.
        Class::Permanent
    } else {
        match after.into_iter().chain(retry_info(&said)).max() {
            Some(wait) => Class::Wait(wait),
            None => Class::Retry,
        }
    };
    Refusal {
        class,
        detail: format!("it answered with status {}; {mend}", status.as_u16()),
    }
}

fn is_spent(said: &Value) -> bool {
    let error = &said["error"];
    let words = [
        &error["code"],
        &error["type"],
        &error["details"]["error_code"],
    ];
    let by_word = words
        .iter()
        .filter_map(|word| word.as_str())
        .any(|word| SPENT.contains(&word));
    by_word || details(said).any(is_of_the_day)
}

/// Gemini names the quota; one of the day has that in its name.
fn is_of_the_day(detail: &Value) -> bool {
    let violations = detail["violations"].as_array().into_iter().flatten();
    let mut quotas = violations.filter_map(|violation| violation["quotaId"].as_str());
    quotas.any(|quota| quota.contains("PerDay"))
}

/// Gemini says in the body when to come back: `"retryDelay": "34.5s"`.
fn retry_info(said: &Value) -> Option<Duration> {
    details(said)
        .filter_map(|detail| detail["retryDelay"].as_str()?.strip_suffix('s'))
        .filter_map(|seconds| Duration::try_from_secs_f64(seconds.parse().ok()?).ok())
        .max()
}

fn details(said: &Value) -> impl Iterator<Item = &Value> {
    said["error"]["details"].as_array().into_iter().flatten()
}
