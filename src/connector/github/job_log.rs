//! Job logs: the interface answers with a link that lives for a minute and belongs to another host.

use http::StatusCode;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::answer::{nonsense, unanswered, words};
use super::api::Api;
use super::call::{Opened, Unanswered};
use super::log::Excerpt;
use super::transport::{Answer, Broken, complete, linked, piece};
use crate::connector::{ConnectorError, JobLog};

/// The most of a log that is read, in bytes; logs of more than half of it are cut by the provider itself.
const LOG_LIMIT: u64 = 1 << 30;

/// A job's log, of which at most `cap` bytes are kept.
pub(super) async fn job_log(api: &Api, job: u64, cap: usize) -> Result<JobLog, ConnectorError> {
    let action = format!("reading the log of job {job} of {}", api.full_name());
    match ask(api, &action, job, cap).await? {
        Asked::Log(log) => Ok(log),
        // A link that ran out. Asking once for a new one is worth it; a second one was not old.
        Asked::Expired(_) => match ask(api, &action, job, cap).await? {
            Asked::Log(log) => Ok(log),
            Asked::Expired(error) => Err(error),
        },
    }
}

/// What asking for a log came to.
enum Asked {
    Log(JobLog),
    /// The store does not accept the link.
    Expired(ConnectorError),
}

async fn ask(api: &Api, action: &str, job: u64, cap: usize) -> Result<Asked, ConnectorError> {
    let tail = format!("/actions/jobs/{job}/logs");
    let answer = match api.open(action, &tail).await? {
        Opened::Body(response) => return text(api, action, response, cap).await.map(Asked::Log),
        Opened::Other(answer) => answer,
    };
    match answer.status {
        StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => {
            let link = link(api, action, &answer)?;
            follow(api, action, link, cap).await
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            api.confirm_repository(action).await?;
            Ok(Asked::Log(missing(&answer)))
        }
        _ => Err(api.refused(action, &tail, &answer)),
    }
}

fn link(api: &Api, action: &str, answer: &Answer) -> Result<Url, ConnectorError> {
    let refuse = |reason: &str| Err(nonsense(action, reason));
    let Some(link) = answer.location().and_then(|text| Url::parse(text).ok()) else {
        return refuse("it redirects without a complete address");
    };
    match link.scheme() {
        "https" => Ok(link),
        "http" if api.setting.api.scheme() == "http" => Ok(link),
        "http" => refuse("the link to the log is not encrypted although the interface is"),
        _ => refuse("the link to the log is neither http nor https"),
    }
}

/// Fetches a link with nothing of ours: no credential, no version, no media type.
async fn follow(api: &Api, action: &str, link: Url, cap: usize) -> Result<Asked, ConnectorError> {
    let host = link.host_str().unwrap_or_default().to_owned();
    let lost = |error: Unanswered| unanswered(action, &host, error);
    let caller = &api.caller;
    let begun = caller
        .within(async { Ok(linked(caller.http(), link).await?) })
        .await
        .map_err(lost)?;
    if begun.status().is_success() {
        return text(api, action, begun, cap).await.map(Asked::Log);
    }
    let answer = caller
        .within(async { Ok(complete(begun).await?) })
        .await
        .map_err(lost)?;
    match answer.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(Asked::Log(missing(&answer))),
        status if status.is_redirection() => Err(nonsense(
            action,
            "the link to the log points elsewhere again, which is not followed",
        )),
        status => {
            let refused = ConnectorError::Unreachable {
                action: action.to_owned(),
                address: host.clone(),
                reason: format!("the store of logs answered {}", status.as_u16()),
            };
            if status.is_client_error() {
                Ok(Asked::Expired(refused))
            } else {
                Err(refused)
            }
        }
    }
}

/// Reads a log to its end, the deadline, or where it breaks off. What came is kept, unless nothing did.
async fn text(
    api: &Api,
    action: &str,
    mut response: reqwest::Response,
    cap: usize,
) -> Result<JobLog, ConnectorError> {
    let host = response.url().host_str().unwrap_or_default().to_owned();
    let deadline = Instant::now() + api.caller.deadline();
    let mut excerpt = Excerpt::new(cap);
    let mut read: u64 = 0;
    let cut = loop {
        let next = timeout_at(deadline, piece(&mut response)).await;
        let reason = match next {
            Ok(Ok(Some(bytes))) => {
                excerpt.push(&bytes);
                read = read.saturating_add(bytes.len() as u64);
                if read <= LOG_LIMIT {
                    continue;
                }
                format!("there is more than {LOG_LIMIT} bytes of it")
            }
            Ok(Ok(None)) => break None,
            Ok(Err(broken)) => broken.to_string(),
            Err(_) => format!(
                "it has not ended within {} ms",
                api.caller.deadline().as_millis()
            ),
        };
        break Some(reason);
    };
    if let Some(reason) = &cut {
        if read == 0 {
            let broken = Unanswered::Broken(Broken::Off(reason.clone()));
            return Err(unanswered(action, &host, broken));
        }
        tracing::warn!(read, reason, "{action}: the log is cut");
    }
    let kept = excerpt.finish();
    Ok(JobLog::Text {
        bytes: kept.bytes,
        omitted: kept.omitted,
        cut,
    })
}

fn missing(answer: &Answer) -> JobLog {
    JobLog::Missing {
        reason: format!("{}: {}", answer.status.as_u16(), words(answer)),
    }
}
