//! Check runs and commit statuses.

use std::collections::HashSet;

use super::super::git::ObjectId;
use super::super::render;
use super::super::state::{CheckRun, RepositoryState, Status, TOKEN_OWNER};
use super::objects::resolved;
use super::paging::counted;
use super::routes::Scene;
use super::{Answer, Refusal, Reply, required_text, text};

/// Every check run of a commit, oldest first: those that apps made and one for each job of its workflow runs.
pub(crate) fn check_runs(state: &RepositoryState, sha: Option<&ObjectId>) -> Vec<CheckRun> {
    let wanted = |head: &ObjectId| sha.is_none_or(|sha| sha == head);
    let of_apps = state
        .check_runs
        .iter()
        .filter(|check| wanted(&check.head_sha))
        .cloned();
    let of_jobs = state
        .runs
        .iter()
        .filter(|run| wanted(&run.head_sha))
        .flat_map(|run| {
            let jobs = run.attempts.iter().flat_map(|attempt| &attempt.jobs);
            jobs.map(|job| CheckRun {
                id: job.id,
                suite: run.suite.clone(),
                head_sha: run.head_sha.clone(),
                name: job.name.clone(),
                status: job.status.clone(),
                conclusion: job.conclusion.clone(),
                started_at: job.started_at,
                completed_at: job.completed_at,
            })
        });
    let mut all: Vec<CheckRun> = of_apps.chain(of_jobs).collect();
    all.sort_by_key(|check| check.id);
    all
}

/// Of each suite and name only the newest.
fn latest(all: Vec<CheckRun>) -> Vec<CheckRun> {
    let mut seen = HashSet::new();
    let mut newest: Vec<CheckRun> = all
        .into_iter()
        .rev()
        .filter(|check| seen.insert((check.suite.id, check.name.clone())))
        .collect();
    newest.reverse();
    newest
}

/// `GET /repos/{owner}/{repo}/commits/{ref}/check-runs`
pub(crate) fn list(scene: Scene<'_>, name: &str) -> Answer {
    let sha = resolved(scene, name, "commit")?
        .ok_or_else(|| Refusal::new(422, format!("No commit found for SHA: {name}")))?;
    let state = scene.repository.current()?;
    let call = scene.call;
    let mut checks = check_runs(&state, Some(&sha));
    if call.query_value("filter") != Some("all") {
        checks = latest(checks);
    }
    if let Some(name) = call.query_value("check_name") {
        checks.retain(|check| check.name == name);
    }
    if let Some(status) = call.query_value("status") {
        checks.retain(|check| check.status == status);
    }
    if let Some(app) = call.query_value("app_id") {
        checks.retain(|check| check.suite.app_id.to_string() == app);
    }
    let render =
        |check: &CheckRun| render::check_run(&scene.shared.url, scene.repository.id, &state, check);
    Ok(counted(
        scene.shared,
        scene.repository.id,
        call,
        "check_runs",
        &checks,
        render,
    ))
}

/// `GET /repos/{owner}/{repo}/check-runs/{check_run_id}`
pub(crate) fn one(scene: Scene<'_>, id: &str) -> Answer {
    let state = scene.repository.current()?;
    let check = check_runs(&state, None)
        .into_iter()
        .find(|check| check.id.to_string() == id)
        .ok_or_else(Refusal::not_found)?;
    Ok(Reply::ok(render::check_run(
        &scene.shared.url,
        scene.repository.id,
        &state,
        &check,
    )))
}

/// `GET /repos/{owner}/{repo}/commits/{ref}/status`: without any status the state is `pending`, not green.
pub(crate) fn combined_status(scene: Scene<'_>, name: &str) -> Answer {
    let sha = resolved(scene, name, "commit")?.ok_or_else(Refusal::not_found)?;
    let state = scene.repository.current()?;
    let mut contexts = HashSet::new();
    let newest_first = state
        .statuses
        .iter()
        .rev()
        .filter(|status| status.sha == sha);
    let statuses: Vec<&Status> = newest_first
        .filter(|status| contexts.insert(status.context.clone()))
        .collect();
    let any = |words: &[&str]| {
        statuses
            .iter()
            .any(|status| words.contains(&status.state.as_str()))
    };
    let combined = if any(&["failure", "error"]) {
        "failure"
    } else if statuses.is_empty() || any(&["pending"]) {
        "pending"
    } else {
        "success"
    };
    Ok(Reply::ok(render::combined_status(
        &scene.shared.url,
        scene.repository.id,
        &state,
        &sha,
        combined,
        &statuses,
    )))
}

/// `POST /repos/{owner}/{repo}/statuses/{sha}`
pub(crate) fn create_status(scene: Scene<'_>, sha: &str) -> Answer {
    let missing = || Refusal::new(422, format!("No commit found for SHA: {sha}"));
    let id = ObjectId::parse(sha).ok_or_else(missing)?;
    let id = scene
        .repository
        .git
        .resolve(id.as_str(), "commit")?
        .ok_or_else(missing)?;
    let object = scene.call.object()?;
    let word = required_text(&object, "state")?;
    if !["error", "failure", "pending", "success"].contains(&word.as_str()) {
        return Err(Refusal::invalid_field("Status", "state", "invalid"));
    }
    let status = Status {
        id: scene.repository.ids.next(),
        sha: id,
        state: word,
        context: text(&object, "context")?.unwrap_or_else(|| "default".to_owned()),
        description: text(&object, "description")?,
        target_url: text(&object, "target_url")?,
        creator: TOKEN_OWNER,
        created_at: (scene.shared.now)(),
    };
    let mut state = scene.repository.current()?;
    let rendered = render::status(&scene.shared.url, &state, &status);
    state.statuses.push(status);
    let location = rendered["url"].as_str().unwrap_or_default().to_owned();
    Ok(Reply::json(201, rendered).with("location", location))
}
