//! Workflow runs.

use std::collections::HashMap;

use http::{Method, StatusCode};

use super::answer::{bounded, decoded_leniently, nonsense, object_id, page, required};
use super::api::{Api, page_tail};
use super::transport::Answer;
use super::wire::{self, Item};
use crate::clock::Millis;
use crate::connector::{ConnectorError, RunView, RunsPage};

/// How many runs that were left out are named.
const NAMED: usize = 10;
/// Longest name of a workflow or a branch, in bytes; no branch is longer, since it is a file's path in git.
const NAME_LIMIT: usize = 4_096;
/// Longest account of what is wrong with a run, in bytes.
const FAULT_LIMIT: usize = 300;
/// Longest word of the provider's, in bytes.
const WORD_LIMIT: usize = 64;

/// One page of runs, newest first.
pub(super) async fn runs(api: &Api, number: u32) -> Result<RunsPage, ConnectorError> {
    let action = format!("reading page {number} of the runs of {}", api.full_name());
    let tail = page_tail("/actions/runs", number);
    let registered = api.registered_number();
    let page = api
        .watched_here(&action, &tail, |answer| {
            let page = understood(&action, registered, answer)?;
            let weight = weight(&page);
            Ok((page, weight))
        })
        .await?;
    Ok(RunsPage::clone(&page))
}

/// One run as it is now.
pub(super) async fn run(api: &Api, run: u64) -> Result<RunView, ConnectorError> {
    let action = format!("reading run {run} of {}", api.full_name());
    let tail = format!("/actions/runs/{run}");
    let answer = api.answer(&action, &tail).await?;
    if answer.status != StatusCode::OK {
        return Err(api.refused(&action, &tail, &answer));
    }
    let found = decoded_leniently(&action, &answer.body)?;
    let view = run_view(&action, api.registered_number(), found)?;
    if view.id != run {
        return Err(nonsense(&action, "it is about another run"));
    }
    Ok(view)
}

/// Asks for another attempt of a run's failed jobs.
pub(super) async fn rerun_failed(api: &Api, run: u64) -> Result<(), ConnectorError> {
    let action = format!("running run {run} of {} again", api.full_name());
    let tail = format!("/actions/runs/{run}/rerun-failed-jobs");
    let answer = api
        .change_or_unreachable(&action, Method::POST, &tail, None)
        .await?;
    if answer.status.is_success() {
        return Ok(());
    }
    Err(api.refused(&action, &tail, &answer))
}

/// Reads runs one by one: an odd one is named and left out, so that it never hides the others. A page of odd ones alone is an
/// error, since an empty page would mean "the end".
fn understood(
    action: &str,
    registered: Option<u64>,
    answer: &Answer,
) -> Result<RunsPage, ConnectorError> {
    let found: wire::Runs = decoded_leniently(action, &answer.body)?;
    let total = found.workflow_runs.len();
    let mut runs: Vec<RunView> = Vec::with_capacity(total);
    let mut places: HashMap<u64, usize> = HashMap::with_capacity(total);
    let mut left_out = Vec::new();
    for item in found.workflow_runs {
        let (id, view) = match item {
            Item::Plain(run) => (run.id, run_view(action, registered, run)),
            Item::Odd { id, fault } => (id, Err(nonsense(action, &fault))),
        };
        match view {
            Ok(view) => match places.get(&view.id).and_then(|place| runs.get_mut(*place)) {
                // Listed twice: the newer attempt is how it stands.
                Some(other) if view.attempt > other.attempt => *other = view,
                Some(_) => {}
                None => {
                    places.insert(view.id, runs.len());
                    runs.push(view);
                }
            },
            Err(fault) => {
                let number = id.map_or_else(|| "without a number".to_owned(), |id| id.to_string());
                let fault = bounded(reason(fault), FAULT_LIMIT);
                left_out.push(format!("run {number}: {fault}"));
            }
        }
    }
    if let (true, Some(first)) = (runs.is_empty(), left_out.first()) {
        return Err(nonsense(
            action,
            &format!("none of its {total} items could be read; the first: {first}"),
        ));
    }
    if !left_out.is_empty() {
        tracing::warn!(count = left_out.len(), total, first = ?left_out.first(), "{action}: odd runs were left out");
    }
    left_out.truncate(NAMED);
    Ok(RunsPage {
        runs: runs.into(),
        left_out: left_out.into(),
    })
}

/// What is wrong, without what was being done.
fn reason(fault: ConnectorError) -> String {
    match fault {
        ConnectorError::Refused { reason, .. } => reason,
        other => other.to_string(),
    }
}

fn run_view(
    action: &str,
    registered: Option<u64>,
    run: wire::Run,
) -> Result<RunView, ConnectorError> {
    let head = run.head_repository.and_then(|repository| repository.id);
    let own = run.repository.and_then(|repository| repository.id);
    // Break it: drop this refusal; `connector::odd::a_run_of_another_repository_is_never_ours` then fails.
    if let (Some(registered), Some(own)) = (registered, own)
        && registered != own
    {
        return Err(nonsense(
            action,
            &format!("it belongs to repository number {own}, not to {registered}"),
        ));
    }
    // Its own repository would tell whether it counts: without it a failure must not pass for one of a fork.
    if own.is_none() && matches!(run.event.as_deref(), Some("push" | "schedule")) {
        // Break it: let it through; `connector::odd::what_cannot_be_judged_is_named` then fails.
        return Err(nonsense(action, "repository is missing"));
    }
    let word = |text| bounded(text, WORD_LIMIT);
    let named = |text| bounded(text, NAME_LIMIT);
    Ok(RunView {
        id: required(action, "id", run.id)?,
        attempt: run.attempt.unwrap_or(1),
        workflow_id: required(action, "workflow_id", run.workflow_id)?,
        workflow: run.name.map(named),
        event: run.event.map(word).unwrap_or_default(),
        branch: run.head_branch.map(named),
        head_commit: object_id(action, "head_sha", run.head_sha.as_deref())?,
        own_repository: own.is_some() && head == own,
        status: run.status.map(word).unwrap_or_default(),
        conclusion: run.conclusion.map(word),
        made_at: moment(run.created_at.as_deref()),
        started_at: moment(run.started_at.or(run.created_at).as_deref()),
        updated_at: moment(run.updated_at.as_deref()),
        url: page(run.html_url).map(|url| bounded(url, usize::MAX)),
    })
}

/// About how many bytes a page takes.
fn weight(page: &RunsPage) -> usize {
    let texts = |run: &RunView| {
        let optional = [&run.workflow, &run.branch, &run.conclusion, &run.url];
        let optional = optional.into_iter().flatten().map(String::len);
        run.event.len() + run.status.len() + optional.sum::<usize>()
    };
    // An allocation takes some more than what is in it.
    let of_run = |run: &RunView| std::mem::size_of::<RunView>() + texts(run) + 6 * 16;
    let left_out: usize = page.left_out.iter().map(|words| words.len() + 40).sum();
    page.runs.iter().map(of_run).sum::<usize>() + left_out
}

/// A moment in RFC 3339; none when it is something else.
fn moment(text: Option<&str>) -> Option<Millis> {
    let timestamp: jiff::Timestamp = text?.parse().ok()?;
    Some(Millis(timestamp.as_millisecond()))
}
