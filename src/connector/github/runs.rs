//! Workflow runs, their jobs and the jobs' logs.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::{Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::answer::{item, nonsense, object_id, page, required, words};
use super::api::Api;
use super::path::{branch_tail, check_branch, encoded};
use super::transport::{Answer, LogAnswer};
use super::wire;
use crate::clock::Millis;
use crate::connector::{ConnectorError, JobLog, JobView, RunView, RunsPage, WorkflowView};

/// How many pages of jobs are read; a matrix has at most 256 jobs, and a run has few of them.
const JOB_PAGES: u32 = 30;
/// How many pages of workflows are read.
const WORKFLOW_PAGES: u32 = 10;

/// One page of runs, newest first.
pub(super) async fn runs(api: &Api, number: u32) -> Result<RunsPage, ConnectorError> {
    let action = format!("reading page {number} of the runs of {}", api.full_name());
    let (items, _) = api
        .page(&action, "/actions/runs", Some("workflow_runs"), number)
        .await?;
    let runs = understood(&action, items, |action, value| {
        run_view(action, item(action, value)?)
    })?;
    Ok(RunsPage {
        runs: runs.into(),
        unchanged: false,
    })
}

/// One run as it is now.
pub(super) async fn run(api: &Api, run: u64) -> Result<RunView, ConnectorError> {
    let action = format!("reading run {run} of {}", api.full_name());
    let found = api.read(&action, &format!("/actions/runs/{run}")).await?;
    run_view(&action, found)
}

/// Every workflow of the repository.
pub(super) async fn workflows(api: &Api) -> Result<Vec<WorkflowView>, ConnectorError> {
    let action = format!("reading the workflows of {}", api.full_name());
    let tail = "/actions/workflows";
    let items = api
        .pages(&action, tail, Some("workflows"), WORKFLOW_PAGES)
        .await?;
    understood(&action, items, |action, value| {
        let workflow: wire::Workflow = item(action, value)?;
        Ok(WorkflowView {
            id: required(action, "id", workflow.id)?,
            name: workflow.name,
            path: workflow.path.unwrap_or_default(),
            state: workflow.state.unwrap_or_default(),
        })
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
    let Some(content) = api
        .read_if_present::<wire::Content>(&action, &tail)
        .await?
        .filter(|content| content.kind.as_deref() == Some("file"))
    else {
        return Ok(None);
    };
    if content.encoding.as_deref() != Some("base64") {
        return Err(nonsense(&action, "the file is not given as base64"));
    }
    let text: String = required(&action, "content", content.text)?
        .split_ascii_whitespace()
        .collect();
    if text.len() / 4 * 3 > cap {
        return Err(nonsense(
            &action,
            &format!("the file has more than {cap} bytes"),
        ));
    }
    let bytes = BASE64.decode(text);
    bytes
        .map(Some)
        .map_err(|error| nonsense(&action, &format!("the file is not base64 ({error})")))
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

/// The jobs of one attempt.
pub(super) async fn jobs(
    api: &Api,
    run: u64,
    attempt: u64,
) -> Result<Vec<JobView>, ConnectorError> {
    let action = format!(
        "reading the jobs of run {run}, attempt {attempt}, of {}",
        api.full_name()
    );
    let tail = format!("/actions/runs/{run}/attempts/{attempt}/jobs");
    let items = api.pages(&action, &tail, Some("jobs"), JOB_PAGES).await?;
    understood(&action, items, |action, value| {
        job_view(action, item(action, value)?)
    })
}

/// Reads items one by one: an odd one is counted and left out, so that it never hides the others. A list of odd ones alone is
/// an error, since an empty list would mean "the end".
fn understood<T>(
    action: &str,
    items: Vec<Value>,
    read: impl Fn(&str, Value) -> Result<T, ConnectorError>,
) -> Result<Vec<T>, ConnectorError> {
    let total = items.len();
    let mut views = Vec::with_capacity(total);
    let mut first_fault = None;
    for value in items {
        match read(action, value) {
            Ok(view) => views.push(view),
            Err(fault) => {
                first_fault.get_or_insert(fault);
            }
        }
    }
    let skipped = total - views.len();
    match first_fault {
        Some(fault) if views.is_empty() => Err(nonsense(
            action,
            &format!("none of its {total} items could be read; the first: {fault}"),
        )),
        Some(fault) => {
            tracing::warn!(skipped, total, %fault, "{action}: odd items were left out");
            Ok(views)
        }
        None => Ok(views),
    }
}

fn run_view(action: &str, run: wire::Run) -> Result<RunView, ConnectorError> {
    let head = run.head_repository.and_then(|repository| repository.id);
    let own = run.repository.and_then(|repository| repository.id);
    Ok(RunView {
        id: required(action, "id", run.id)?,
        attempt: run.attempt.unwrap_or(1),
        workflow_id: required(action, "workflow_id", run.workflow_id)?,
        workflow: run.name,
        event: run.event.unwrap_or_default(),
        branch: run.head_branch,
        head_commit: object_id(action, "head_sha", run.head_sha.as_deref())?,
        own_repository: own.is_some() && head == own,
        status: run.status.unwrap_or_default(),
        conclusion: run.conclusion,
        started_at: moment(run.started_at.or(run.created_at).as_deref()),
        updated_at: moment(run.updated_at.as_deref()),
        url: page(run.html_url),
    })
}

/// A moment in RFC 3339; none when it is something else.
fn moment(text: Option<&str>) -> Option<Millis> {
    let timestamp: jiff::Timestamp = text?.parse().ok()?;
    Some(Millis(timestamp.as_millisecond()))
}

fn job_view(action: &str, job: wire::Job) -> Result<JobView, ConnectorError> {
    let ran = |step: &&wire::Step| {
        let waiting = matches!(
            step.status.as_deref(),
            Some("queued" | "pending" | "waiting" | "requested")
        );
        !waiting && step.conclusion.as_deref() != Some("skipped")
    };
    let steps = job.steps.unwrap_or_default();
    Ok(JobView {
        id: required(action, "id", job.id)?,
        name: required(action, "name", job.name)?,
        conclusion: job.conclusion,
        steps: steps.iter().filter(ran).count() as u64,
    })
}

/// A job's log: the interface answers with a link that lives for a minute and belongs to another host.
pub(super) async fn job_log(api: &Api, job: u64, cap: usize) -> Result<JobLog, ConnectorError> {
    let action = format!("reading the log of job {job} of {}", api.full_name());
    let tail = format!("/actions/jobs/{job}/logs");
    let answer = match api.log(&action, &tail, cap).await? {
        LogAnswer::Text(kept) => return Ok(text(kept)),
        LogAnswer::Other(answer) => answer,
    };
    match answer.status {
        StatusCode::FOUND | StatusCode::TEMPORARY_REDIRECT => {
            let link = link(api, &action, &answer)?;
            linked(api, &action, link, cap).await
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            api.confirm_repository(&action).await?;
            Ok(missing(&answer))
        }
        _ => Err(api.refused(&action, &tail, &answer)),
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

async fn linked(api: &Api, action: &str, link: Url, cap: usize) -> Result<JobLog, ConnectorError> {
    let host = link.host_str().unwrap_or_default().to_owned();
    match api.link(action, link, cap).await? {
        LogAnswer::Text(kept) => Ok(text(kept)),
        LogAnswer::Other(answer)
            if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::GONE) =>
        {
            Ok(missing(&answer))
        }
        LogAnswer::Other(answer) if answer.status.is_redirection() => Err(nonsense(
            action,
            "the link to the log points elsewhere again, which is not followed",
        )),
        // A link that ran out is refused too; asking again gives a new one.
        LogAnswer::Other(answer) => Err(ConnectorError::Unreachable {
            action: action.to_owned(),
            address: host,
            reason: format!("the store of logs answered {}", answer.status.as_u16()),
        }),
    }
}

fn text(kept: super::log::HeadAndTail) -> JobLog {
    let (bytes, omitted) = kept.finish();
    JobLog::Text { bytes, omitted }
}

fn missing(answer: &Answer) -> JobLog {
    JobLog::Missing {
        reason: format!("{}: {}", answer.status.as_u16(), words(answer)),
    }
}
