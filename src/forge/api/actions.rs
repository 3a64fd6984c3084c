//! Workflow runs, their attempts, jobs and logs.

use super::super::render;
use super::super::state::{Attempt, Job, Repository, RepositoryState, Run};
use super::paging::{Page, counted, linked};
use super::routes::Scene;
use super::{Answer, Body, Refusal, Reply, kept};

/// With any filter the list ends here and `total_count` knows no more.
const FILTERED: usize = 1_000;

/// `GET /repos/{owner}/{repo}/actions/runs` and `…/actions/workflows/{workflow_id}/runs`, newest first. `status` takes
/// statuses and conclusions alike.
pub(crate) fn list(scene: Scene<'_>, workflow: Option<&str>) -> Answer {
    let state = scene.repository.current()?;
    kept(scene, &state, || listed(scene, &state, workflow))
}

fn listed(scene: Scene<'_>, state: &RepositoryState, workflow: Option<&str>) -> Answer {
    let wanted = |name: &str| scene.call.query_value(name).map(str::to_owned);
    let (branch, event, status, sha) = (
        wanted("branch"),
        wanted("event"),
        wanted("status"),
        wanted("head_sha"),
    );
    let matches = |run: &&Run| {
        let latest = run.attempts.last();
        let has_status = |word: &String| {
            latest.is_some_and(|attempt| {
                attempt.status == *word || attempt.conclusion.as_ref() == Some(word)
            })
        };
        let is_workflow = |name: &str| {
            run.workflow_id.to_string() == name
                || run.workflow_path.rsplit('/').next() == Some(name)
        };
        workflow.is_none_or(is_workflow)
            && branch
                .as_ref()
                .is_none_or(|branch| run.branch.as_ref() == Some(branch))
            && event.as_ref().is_none_or(|event| run.event == *event)
            && sha.as_ref().is_none_or(|sha| run.head_sha == sha.as_str())
            && status.as_ref().is_none_or(has_status)
    };
    let mut runs: Vec<&Run> = state.runs.iter().filter(matches).collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.created_at, run.id)));
    if branch.is_some() || event.is_some() || status.is_some() || sha.is_some() {
        runs.truncate(FILTERED);
    }
    // Commits are read for the wanted page only.
    let mut rows = Vec::new();
    for run in Page::of(scene.call).part(&runs) {
        rows.push(rendered_run(scene, state, run, attempt_of(run, None)?)?);
    }
    let reply = Reply::ok(serde_json::json!({"total_count": runs.len(), "workflow_runs": rows}));
    Ok(linked(
        scene.shared,
        scene.repository.id,
        scene.call,
        runs.len(),
        reply,
    ))
}

fn rendered_run(
    scene: Scene<'_>,
    state: &RepositoryState,
    run: &Run,
    attempt: &Attempt,
) -> Result<serde_json::Value, Refusal> {
    let commit = scene.repository.commit(&run.head_sha)?;
    Ok(render::run(
        &scene.shared.url,
        scene.repository.id,
        state,
        run,
        attempt,
        commit.as_deref(),
    ))
}

fn found<'a>(state: &'a RepositoryState, run: &str) -> Result<&'a Run, Refusal> {
    let id: u64 = run.parse().map_err(|_| Refusal::not_found())?;
    state
        .runs
        .iter()
        .find(|run| run.id == id)
        .ok_or_else(Refusal::not_found)
}

fn attempt_of<'a>(run: &'a Run, attempt: Option<&str>) -> Result<&'a Attempt, Refusal> {
    let found = match attempt {
        Some(number) => number.parse().ok().and_then(|number| run.attempt(number)),
        None => run.attempts.last(),
    };
    found.ok_or_else(Refusal::not_found)
}

/// `GET /repos/{owner}/{repo}/actions/runs/{run_id}`, alone or followed by `/attempts/{attempt_number}`.
pub(crate) fn show(scene: Scene<'_>, run: &str, attempt: Option<&str>) -> Answer {
    let state = scene.repository.current()?;
    let run = found(&state, run)?;
    Ok(Reply::ok(rendered_run(
        scene,
        &state,
        run,
        attempt_of(run, attempt)?,
    )?))
}

/// `GET …/actions/runs/{run_id}/jobs` (of the latest attempt, with `filter=all` of all) and of one attempt.
pub(crate) fn jobs(scene: Scene<'_>, run: &str, attempt: Option<&str>) -> Answer {
    let state = scene.repository.current()?;
    let run = found(&state, run)?;
    let all = attempt.is_none() && scene.call.query_value("filter") == Some("all");
    let attempts = if all {
        run.attempts.iter().collect()
    } else {
        vec![attempt_of(run, attempt)?]
    };
    let jobs: Vec<(u64, &Job)> = attempts
        .into_iter()
        .flat_map(|attempt| attempt.jobs.iter().map(|job| (attempt.number, job)))
        .collect();
    let render =
        |(attempt, job): &(u64, &Job)| render::job(&scene.shared.url, &state, run, *attempt, job);
    Ok(counted(
        scene.shared,
        scene.repository.id,
        scene.call,
        "jobs",
        &jobs,
        render,
    ))
}

fn found_job<'a>(
    state: &'a RepositoryState,
    job: &str,
) -> Result<(&'a Run, u64, &'a Job), Refusal> {
    let id: u64 = job.parse().map_err(|_| Refusal::not_found())?;
    let with_run = |run: &'a Run| run.job(id).map(|(attempt, job)| (run, attempt, job));
    state
        .runs
        .iter()
        .find_map(with_run)
        .ok_or_else(Refusal::not_found)
}

/// `GET /repos/{owner}/{repo}/actions/jobs/{job_id}`
pub(crate) fn job(scene: Scene<'_>, job: &str) -> Answer {
    let state = scene.repository.current()?;
    let (run, attempt, job) = found_job(&state, job)?;
    Ok(Reply::ok(render::job(
        &scene.shared.url,
        &state,
        run,
        attempt,
        job,
    )))
}

/// `GET /repos/{owner}/{repo}/actions/jobs/{job_id}/logs`: a short-lived link to another origin.
pub(crate) fn log(scene: Scene<'_>, job: &str) -> Answer {
    let state = scene.repository.current()?;
    let (_, _, job) = found_job(&state, job)?;
    let log = job.log.clone().ok_or_else(Refusal::not_found)?;
    let path = scene.shared.log_links.issue(
        job.id,
        log,
        scene.repository.ids.next(),
        &scene.shared.token,
    );
    let reply = Reply {
        status: 302,
        headers: Vec::new(),
        body: Body::Nothing,
    };
    Ok(reply.with("location", format!("{}{path}", scene.shared.logs_url)))
}

/// `POST /repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs`: the run keeps its id and gets another attempt.
pub(crate) fn rerun_failed(scene: Scene<'_>, run: &str) -> Answer {
    let mut state = scene.repository.current()?;
    let id = found(&state, run)?.id;
    let unfinished = || {
        Refusal::new(
            403,
            format!("The workflow run containing this job is already running: {id}"),
        )
    };
    scene
        .repository
        .next_attempt(&mut state, id)
        .ok_or_else(unfinished)?;
    scene.repository.tell_run(&state, id, "requested")?;
    Ok(Reply::json(201, serde_json::json!({})))
}

impl Repository {
    /// Queues another attempt of a completed run: successful jobs are taken over, the others start again under new ids.
    /// `None` while the last attempt has not ended, and for a run that does not exist.
    pub(crate) fn next_attempt(&self, state: &mut RepositoryState, run: u64) -> Option<u64> {
        let now = (self.now)();
        let run = state.runs.iter_mut().find(|known| known.id == run)?;
        let last = run
            .attempts
            .last()
            .filter(|attempt| attempt.status == "completed")?;
        let again = |job: &Job| {
            if job.conclusion.as_deref() == Some("success") {
                return Job {
                    id: self.ids.next(),
                    ..job.clone()
                };
            }
            let steps = Vec::new();
            Job {
                id: self.ids.next(),
                status: "queued".to_owned(),
                conclusion: None,
                started_at: now,
                completed_at: None,
                log: None,
                steps,
                ..job.clone()
            }
        };
        let number = last.number + 1;
        let jobs = last.jobs.iter().map(again).collect();
        run.attempts.push(Attempt {
            number,
            status: "queued".to_owned(),
            conclusion: None,
            started_at: now,
            updated_at: now,
            jobs,
        });
        Some(number)
    }
}
