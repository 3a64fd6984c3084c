//! The one request that merges, and what its answer means. It is never sent twice.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::answer::words;
use super::api::Api;
use super::call::Unanswered;
use super::credential::Use;
use super::transport::Answer;
use super::wire;
use crate::change::Oid;
use crate::execute::{MergeAnswer, MergeOrder};

/// Asks once, for exactly what the order says.
pub(super) async fn merge(api: &Api, order: &MergeOrder) -> MergeAnswer {
    let body = json!({
        "sha": order.head_commit().to_string(),
        "merge_method": order.method().as_str(),
        "commit_title": order.title(),
        "commit_message": order.message(),
    });
    ask(api, order.pull_request(), &body).await
}

async fn ask(api: &Api, pull_request: u64, body: &Value) -> MergeAnswer {
    let tail = format!("/pulls/{pull_request}/merge");
    // Break it: send again on a failure; `connector::github::merge::tests::a_merge_is_sent_once_whatever_is_answered` then fails.
    // A change of the executor's is never sent again, not even with another token.
    let api = api.on(Use::Execute);
    match api.change(Method::PUT, &tail, Some(body)).await {
        Ok(answer) => meaning(&answer),
        Err(Unanswered::Broken(error)) => MergeAnswer::Ambiguous(error.to_string()),
        // Neither sent nor, with an answer that is a limit, carried out.
        Err(Unanswered::Limited(wait)) => MergeAnswer::Limited(wait.until),
        Err(Unanswered::NoToken(error)) => MergeAnswer::CredentialExpired(error.to_string()),
    }
}

fn meaning(answer: &Answer) -> MergeAnswer {
    let reason = || format!("{}: {}", answer.status.as_u16(), words(answer));
    match answer.status {
        StatusCode::OK => merged(answer).map_or_else(
            || {
                MergeAnswer::Ambiguous(
                    "200, but without the complete id of a merged commit".to_owned(),
                )
            },
            MergeAnswer::Merged,
        ),
        StatusCode::CONFLICT => MergeAnswer::HeadMoved(words(answer)),
        StatusCode::METHOD_NOT_ALLOWED => MergeAnswer::NotAllowed(words(answer)),
        StatusCode::UNAUTHORIZED => MergeAnswer::CredentialExpired(reason()),
        status if status.is_client_error() || status.is_redirection() => {
            MergeAnswer::Refused(reason())
        }
        _ => MergeAnswer::Ambiguous(reason()),
    }
}

fn merged(answer: &Answer) -> Option<Oid> {
    let body: wire::Merged = serde_json::from_slice(&answer.body).ok()?;
    if body.merged == Some(false) {
        return None;
    }
    body.sha?.parse().ok()
}

#[cfg(test)]
mod tests;
