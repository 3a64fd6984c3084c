//! Workflows and files of the repository, as far as watching needs them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::answer::{bounded, decoded, decoded_leniently, nonsense, required};
use super::api::{Api, Page, more_may_follow};
use super::path::{branch_tail, check_branch, encoded};
use super::transport::Answer;
use super::wire::{self, Item};
use crate::connector::{ConnectorError, WorkflowList, WorkflowView};

/// How many pages of workflows are read.
const WORKFLOW_PAGES: u32 = 10;
/// Longest name or path of a workflow that is kept, in bytes.
const NAME_LIMIT: usize = 4_096;
/// Longest word for its state, in bytes.
const WORD_LIMIT: usize = 64;
/// Longest account of what is wrong with a workflow, in bytes.
const FAULT_LIMIT: usize = 300;

/// How many workflows that were left out are named.
const NAMED: usize = 10;

/// A workflow, or what it is in words and why it cannot be judged.
type Listed = Result<WorkflowView, String>;

/// Every workflow of the repository; an odd one is named, and does not hide the others.
pub(super) async fn workflows(api: &Api) -> Result<WorkflowList, ConnectorError> {
    let action = format!("reading the workflows of {}", api.full_name());
    let understand = |answer: &Answer| listed(&action, answer);
    let tail = "/actions/workflows";
    let all: Vec<Listed> = api
        .watched_pages(&action, tail, WORKFLOW_PAGES, understand)
        .await?;
    let mut list = WorkflowList::default();
    for workflow in all {
        match workflow {
            Ok(workflow) => list.workflows.push(workflow),
            Err(words) => list.left_out.push(words),
        }
    }
    if !list.left_out.is_empty() {
        let (count, first) = (list.left_out.len(), list.left_out.first());
        tracing::warn!(count, first, "{action}: odd workflows were left out");
    }
    list.left_out.truncate(NAMED);
    Ok(list)
}

fn listed(action: &str, answer: &Answer) -> Result<(Page<Listed>, usize), ConnectorError> {
    let found: wire::Workflows = decoded_leniently(action, &answer.body)?;
    let more = more_may_follow(answer, found.workflows.len());
    let items: Vec<Listed> = found.workflows.into_iter().map(understood).collect();
    let of_workflow = |workflow: &Listed| {
        let texts = match workflow {
            Ok(workflow) => workflow.name.as_ref().map_or(0, String::len) + workflow.path.len(),
            Err(words) => words.len(),
        };
        std::mem::size_of::<Listed>() + texts + 48
    };
    let weight = items.iter().map(of_workflow).sum();
    Ok((Page { items, more }, weight))
}

fn understood(item: Item<wire::Workflow>) -> Listed {
    let word = |text| bounded(text, WORD_LIMIT);
    let named = |text| bounded(text, NAME_LIMIT);
    let numbered = |id: Option<u64>| {
        id.map_or_else(
            || "a workflow without a number".to_owned(),
            |id| format!("workflow {id}"),
        )
    };
    let workflow = match item {
        Item::Plain(workflow) => workflow,
        Item::Odd { id, fault } => {
            let fault = bounded(fault, FAULT_LIMIT);
            return Err(format!("{} cannot be read ({fault})", numbered(id)));
        }
    };
    // Break it: take any number; no workflow of the project is then written down any more
    // (`connector::odd::odd_workflows_do_not_hide_the_others`).
    let Some(id) = workflow.id.filter(|id| i64::try_from(*id).is_ok()) else {
        let place = workflow.path.map_or_else(String::new, |path| {
            format!(" ({})", bounded(path, FAULT_LIMIT))
        });
        let why = if workflow.id.is_some() {
            ": no provider counts so far"
        } else {
            ""
        };
        return Err(format!("{}{place}{why}", numbered(workflow.id)));
    };
    Ok(WorkflowView {
        id,
        name: workflow.name.map(named),
        path: workflow.path.map(named).unwrap_or_default(),
        state: workflow.state.map(word).unwrap_or_default(),
    })
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
