//! What an answer means: the expectations of a check against what came back.

use serde_json::Value;

use super::state::Outcome;
use crate::attest::text::shown;
use crate::change::Oid;
use crate::clock::Millis;
use crate::config::{CommitSource, Expectation, HealthCheck};
use crate::probe::{Answer, ProbeError};

/// How much of a body is read, in bytes.
pub(super) const BODY_BYTES: usize = 256 * 1024;
/// Redirects that are followed.
pub(super) const REDIRECTS: u32 = 5;
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// What one question came to. Never [`Outcome::OurOutage`]: a single endpoint cannot tell.
pub fn judge(check: &HealthCheck, asked: &Result<Answer, ProbeError>, now: Millis) -> Outcome {
    let answer = match asked {
        Ok(answer) => answer,
        Err(error) => {
            return Outcome::Failed {
                reason: error.to_string(),
                commit: None,
            };
        }
    };
    let document = check.reads_body().then(|| document(&answer.body)).flatten();
    let commit = commit(check, answer, document.as_ref());
    let problem = status(&check.expect, answer)
        .or_else(|| latency(&check.expect, answer))
        .or_else(|| body(&check.expect, answer))
        .or_else(|| json(&check.expect, document.as_ref()));
    match problem {
        Some(reason) => Outcome::Failed { reason, commit },
        None => Outcome::Passed {
            latency: u64::try_from(answer.latency.as_millis()).unwrap_or(u64::MAX),
            certificate_days: answer
                .certificate_ends
                .map(|ends| ends.0.saturating_sub(now.0).div_euclid(DAY)),
            commit,
        },
    }
}

/// The body as JSON; `serde_json` bounds its depth.
fn document(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

fn status(expect: &Expectation, answer: &Answer) -> Option<String> {
    let status = answer.status;
    (!expect.status.include(status)).then(|| format!("status {status}, expected {}", expect.status))
}

fn latency(expect: &Expectation, answer: &Answer) -> Option<String> {
    let most = expect.latency?;
    (answer.latency > most.duration()).then(|| {
        format!(
            "it took {} ms, expected at most {most}",
            answer.latency.as_millis()
        )
    })
}

fn body(expect: &Expectation, answer: &Answer) -> Option<String> {
    let pattern = expect.body_matches.as_ref()?;
    let text = String::from_utf8_lossy(&answer.body);
    (!pattern.matches(&text))
        .then(|| format!("the body does not match {}", shown(pattern.as_str())))
}

fn json(expect: &Expectation, document: Option<&Value>) -> Option<String> {
    if expect.json.is_empty() {
        return None;
    }
    let Some(document) = document else {
        return Some("the body is not JSON".to_owned());
    };
    expect.json.iter().find_map(|expected| {
        let found = expected.path.find(document);
        let path = shown(&expected.path.to_string());
        match (&expected.equals, found) {
            (_, None) => Some(format!("there is no {path} in the body")),
            (None, Some(Value::Null)) => Some(format!("{path} is null")),
            (None, Some(_)) => None,
            (Some(wanted), Some(found)) => (!equal(wanted, found)).then(|| {
                let (found, wanted) = (shown(&found.to_string()), shown(&wanted.to_string()));
                format!("{path} is {found}, expected {wanted}")
            }),
        }
    })
}

/// Whether two values are the same; 1 and 1.0 are.
fn equal(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(wanted), Value::Number(found)) => {
            let either_is_float = wanted.is_f64() || found.is_f64();
            wanted == found || either_is_float && wanted.as_f64() == found.as_f64()
        }
        _ => wanted == found,
    }
}

/// The commit that the endpoint says it runs. Anything but a complete object id says nothing.
fn commit(check: &HealthCheck, answer: &Answer, document: Option<&Value>) -> Option<Oid> {
    let text = match check.commit.as_ref()? {
        CommitSource::Header(name) => answer.headers.get(name.as_str())?.to_str().ok()?,
        CommitSource::Json(path) => path.find(document?)?.as_str()?,
    };
    text.trim().parse().ok()
}
