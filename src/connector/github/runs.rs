//! Workflow runs, their jobs and the jobs' logs.

use http::StatusCode;
use serde_json::Value;
use url::Url;

use super::answer::{item, nonsense, object_id, page, required, words};
use super::api::Api;
use super::transport::{Answer, LogAnswer};
use super::wire;
use crate::connector::{ConnectorError, JobLog, JobView, RunView};

/// How many pages of jobs are read; a matrix has at most 256 jobs, and a run has few of them.
const JOB_PAGES: u32 = 30;

/// One page of runs, newest first.
pub(super) async fn runs(api: &Api, number: u32) -> Result<Vec<RunView>, ConnectorError> {
    let action = format!("reading page {number} of the runs of {}", api.full_name());
    let (items, _) = api
        .page(&action, "/actions/runs", Some("workflow_runs"), number)
        .await?;
    understood(&action, items, |action, value| {
        run_view(action, item(action, value)?)
    })
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
        url: page(run.html_url),
    })
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
