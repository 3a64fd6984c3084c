//! The jobs of a run.

use super::answer::decoded_leniently;
use super::api::{Api, Page, more_may_follow};
use super::transport::Answer;
use super::wire::{self, Item};
use crate::connector::{ConnectorError, JobView};

/// How many pages of jobs are read; a matrix has at most 256 jobs, and a run has few of them.
const JOB_PAGES: u32 = 30;
/// Stands for the name of a job that has none that can be read.
const NAMELESS: &str = "(unreadable job)";

/// The jobs of one attempt. One that cannot be read is a job of unknown conclusion: left out, it would turn a failed run into
/// one without a failed job.
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
    let understand = |answer: &Answer| understood(&action, answer);
    api.watched_pages(&action, &tail, JOB_PAGES, understand)
        .await
}

fn understood(action: &str, answer: &Answer) -> Result<(Page<JobView>, usize), ConnectorError> {
    let found: wire::Jobs = decoded_leniently(action, &answer.body)?;
    let more = more_may_follow(answer, found.jobs.len());
    let mut jobs = Vec::with_capacity(found.jobs.len());
    for item in found.jobs {
        jobs.push(match item {
            Item::Plain(job) => job_view(job),
            Item::Odd { id, fault } => {
                tracing::warn!(id, fault, "{action}: a job cannot be read");
                job_view(wire::Job {
                    id,
                    ..wire::Job::default()
                })
            }
        });
    }
    let of_job = |job: &JobView| std::mem::size_of::<JobView>() + job.name.len() + 48;
    let weight = jobs.iter().map(of_job).sum();
    Ok((Page { items: jobs, more }, weight))
}

fn job_view(job: wire::Job) -> JobView {
    let ran = |step: &wire::Step| {
        let waiting = matches!(
            step.status.as_deref(),
            Some("queued" | "pending" | "waiting" | "requested")
        );
        !waiting && step.conclusion.as_deref() != Some("skipped")
    };
    let steps = job.steps.unwrap_or_default();
    let whole = job.id.is_some() && job.name.is_some();
    JobView {
        // The provider knows no such number: its log will be missing, which is true.
        id: job.id.unwrap_or(0),
        name: job.name.unwrap_or_else(|| NAMELESS.to_owned()),
        conclusion: job.conclusion.filter(|_| whole),
        // A step that cannot be read is one all the same.
        steps: steps
            .iter()
            .filter(|item| !matches!(item, Item::Plain(step) if !ran(step)))
            .count() as u64,
    }
}
