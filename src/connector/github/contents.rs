//! Workflows and files of the repository, as far as watching needs them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::answer::{bounded, decoded, decoded_leniently, nonsense, required};
use super::api::{Api, Page, more_may_follow};
use super::path::{branch_tail, check_branch, encoded};
use super::transport::Answer;
use super::wire::{self, Item};
use crate::connector::{ConnectorError, WorkflowView};

/// How many pages of workflows are read.
const WORKFLOW_PAGES: u32 = 10;
/// Longest name or path of a workflow that is kept, in bytes.
const NAME_LIMIT: usize = 4_096;
/// Longest word for its state, in bytes.
const WORD_LIMIT: usize = 64;

/// Every workflow of the repository that has a number; an odd one does not hide the others.
pub(super) async fn workflows(api: &Api) -> Result<Vec<WorkflowView>, ConnectorError> {
    let action = format!("reading the workflows of {}", api.full_name());
    let understand = |answer: &Answer| listed(&action, answer);
    let tail = "/actions/workflows";
    api.watched_pages(&action, tail, WORKFLOW_PAGES, understand)
        .await
}

fn listed(action: &str, answer: &Answer) -> Result<(Page<WorkflowView>, usize), ConnectorError> {
    let found: wire::Workflows = decoded_leniently(action, &answer.body)?;
    let more = more_may_follow(answer, found.workflows.len());
    let mut workflows = Vec::with_capacity(found.workflows.len());
    for item in found.workflows {
        let workflow = match item {
            Item::Plain(workflow) => workflow,
            Item::Odd { id, fault } => {
                tracing::warn!(id, fault, "{action}: a workflow cannot be read");
                continue;
            }
        };
        let word = |text| bounded(text, WORD_LIMIT);
        let named = |text| bounded(text, NAME_LIMIT);
        // Break it: take any number; no workflow of the project is then written down any more
        // (`connector::odd::odd_workflows_do_not_hide_the_others`).
        let Some(id) = workflow.id.filter(|id| i64::try_from(*id).is_ok()) else {
            let (id, path) = (workflow.id, workflow.path.map(word));
            tracing::warn!(
                id,
                path,
                "{action}: a workflow has no number, or one that no provider counts to; whether it falls silent is not watched"
            );
            continue;
        };
        workflows.push(WorkflowView {
            id,
            name: workflow.name.map(named),
            path: workflow.path.map(named).unwrap_or_default(),
            state: workflow.state.map(word).unwrap_or_default(),
        });
    }
    let of_workflow = |workflow: &WorkflowView| {
        let name = workflow.name.as_ref().map_or(0, String::len);
        std::mem::size_of::<WorkflowView>() + name + workflow.path.len() + 48
    };
    let weight = workflows.iter().map(of_workflow).sum();
    let items = workflows;
    Ok((Page { items, more }, weight))
}

/// A file on a branch; none when it is not there or is no file.
pub(super) async fn file(
    api: &Api,
    branch: &str,
    path: &str,
    cap: usize,
) -> Result<Option<Vec<u8>>, ConnectorError> {
    let action = format!("reading {path} of {}", api.full_name());
    check_branch(&action, branch)?;
    let tail = format!(
        "/contents/{}?ref={}",
        branch_tail(path),
        encoded(&format!("refs/heads/{branch}"))
    );
    let watched = api
        .watched_if_present(&action, &tail, |answer| content(&action, answer))
        .await?;
    let Some(bytes) = watched.and_then(|bytes| (*bytes).clone()) else {
        return Ok(None);
    };
    if bytes.len() > cap {
        let reason = format!("the file has more than {cap} bytes");
        return Err(nonsense(&action, &reason));
    }
    Ok(Some(bytes))
}

fn content(action: &str, answer: &Answer) -> Result<(Option<Vec<u8>>, usize), ConnectorError> {
    // A directory is a list.
    let Ok(content) = decoded::<wire::Content>(action, &answer.body) else {
        return match decoded::<Vec<serde_json::Value>>(action, &answer.body) {
            Ok(_) => Ok((None, 0)),
            Err(error) => Err(error),
        };
    };
    if content.kind.as_deref() != Some("file") {
        return Ok((None, 0));
    }
    if content.encoding.as_deref() != Some("base64") {
        return Err(nonsense(action, "the file is not given as base64"));
    }
    let text: String = required(action, "content", content.text)?
        .split_ascii_whitespace()
        .collect();
    let bytes = BASE64
        .decode(text)
        .map_err(|error| nonsense(action, &format!("the file is not base64 ({error})")))?;
    let weight = bytes.len();
    Ok((Some(bytes), weight))
}
