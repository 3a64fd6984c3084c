//! Workflow runs and jobs.

use serde_json::{Value, json};

use super::super::encoding::percent_encoded_path;
use super::super::git::CommitFacts;
use super::super::state::{Attempt, Job, PERSON, RepositoryState, Run, Workflow};
use super::super::time::{START, rfc3339};
use super::{api_root, node_id, repository, user, web_root};

/// One attempt of a workflow run.
pub(crate) fn run(
    base: &str,
    repository_id: u64,
    state: &RepositoryState,
    run: &Run,
    attempt: &Attempt,
    commit: Option<&CommitFacts>,
) -> Value {
    let (api, url) = (
        api_root(base, state),
        format!("{}/actions/runs/{}", api_root(base, state), run.id),
    );
    let actor = user(base, PERSON.login, PERSON.id);
    let whole = repository(base, repository_id, state);
    let previous = (attempt.number > 1).then(|| format!("{url}/attempts/{}", attempt.number - 1));
    let title = commit.map_or(run.workflow.as_str(), |commit| commit.title());
    let mut value = json!({
        "id": run.id,
        "node_id": node_id("WFR", run.id),
        "name": run.workflow,
        "display_title": title,
        "path": run.workflow_path,
        "run_number": run.number,
        "run_attempt": attempt.number,
        "event": run.event,
        "status": attempt.status,
        "conclusion": attempt.conclusion,
        "workflow_id": run.workflow_id,
        "head_branch": run.branch,
        "head_sha": run.head_sha.as_str(),
        "head_commit": commit.map(head_commit),
        "pull_requests": [],
        "referenced_workflows": [],
        "actor": actor,
        "triggering_actor": actor,
        "created_at": rfc3339(run.created_at),
        "run_started_at": rfc3339(attempt.started_at),
        "updated_at": rfc3339(attempt.updated_at),
        "repository": whole,
        "head_repository": whole,
    });
    value["check_suite_id"] = json!(run.suite.id);
    value["check_suite_node_id"] = json!(node_id("CS", run.suite.id));
    value["url"] = json!(url);
    value["html_url"] = json!(format!("{}/actions/runs/{}", web_root(base, state), run.id));
    value["previous_attempt_url"] = json!(previous);
    value["check_suite_url"] = json!(format!("{api}/check-suites/{}", run.suite.id));
    value["workflow_url"] = json!(format!("{api}/actions/workflows/{}", run.workflow_id));
    for path in ["jobs", "logs", "artifacts", "cancel", "rerun"] {
        value[format!("{path}_url")] = json!(format!("{url}/{path}"));
    }
    value
}

fn head_commit(commit: &CommitFacts) -> Value {
    json!({
        "id": commit.id.as_str(),
        "tree_id": commit.tree.as_str(),
        "message": commit.message,
        "timestamp": rfc3339(commit.committer.seconds),
        "author": {"name": commit.author.name, "email": commit.author.email},
        "committer": {"name": commit.committer.name, "email": commit.committer.email},
    })
}

/// A workflow.
pub(crate) fn workflow(base: &str, state: &RepositoryState, workflow: &Workflow) -> Value {
    let web = web_root(base, state);
    let file = workflow.path.rsplit('/').next().unwrap_or_default();
    let updated = rfc3339(workflow.updated_at);
    let mut value = json!({
        "id": workflow.id,
        "node_id": node_id("W", workflow.id),
        "name": workflow.name,
        "path": workflow.path,
        "state": workflow.state,
        "created_at": rfc3339(workflow.created_at),
        "updated_at": updated,
        "url": format!("{}/actions/workflows/{}", api_root(base, state), workflow.id),
        "html_url": format!("{web}/blob/{}/{}", state.default_branch, workflow.path),
        "badge_url": format!("{web}/workflows/{}/badge.svg", percent_encoded_path(file)),
    });
    if workflow.state == "deleted" {
        value["deleted_at"] = json!(updated);
    }
    value
}

/// The check suite of a run's attempt, as webhooks show it.
pub(crate) fn check_suite(
    base: &str,
    state: &RepositoryState,
    run: &Run,
    attempt: &Attempt,
    commit: Option<&CommitFacts>,
) -> Value {
    let suite = &run.suite;
    let url = format!("{}/check-suites/{}", api_root(base, state), suite.id);
    let long_ago = rfc3339(START);
    let app = json!({
        "id": suite.app_id,
        "slug": suite.app_slug,
        "node_id": node_id("A", suite.app_id),
        "owner": user(base, &state.owner, state.owner_id),
        "name": suite.app_slug,
        "description": null,
        "external_url": base,
        "html_url": format!("{base}/apps/{}", suite.app_slug),
        "created_at": long_ago,
        "updated_at": long_ago,
        "permissions": {},
        "events": [],
    });
    json!({
        "id": suite.id,
        "node_id": node_id("CS", suite.id),
        "head_branch": run.branch,
        "head_sha": run.head_sha.as_str(),
        "status": attempt.status,
        "conclusion": attempt.conclusion,
        "url": url,
        "before": null,
        "after": run.head_sha.as_str(),
        "pull_requests": [],
        "app": app,
        "created_at": rfc3339(run.created_at),
        "updated_at": rfc3339(attempt.updated_at),
        "rerequestable": true,
        "runs_rerequestable": true,
        "latest_check_runs_count": attempt.jobs.len(),
        "check_runs_url": format!("{url}/check-runs"),
        "head_commit": commit.map(head_commit),
    })
}

/// A job of an attempt.
pub(crate) fn job(
    base: &str,
    state: &RepositoryState,
    run: &Run,
    attempt: u64,
    job: &Job,
) -> Value {
    let api = api_root(base, state);
    let completed = job.completed_at.map(rfc3339);
    let steps = job.steps.iter().enumerate().map(|(index, step)| {
        json!({
            "name": step.name,
            "status": if step.conclusion.is_some() { "completed" } else { "queued" },
            "conclusion": step.conclusion,
            "number": index + 1,
            "started_at": rfc3339(job.started_at),
            "completed_at": completed,
        })
    });
    json!({
        "id": job.id,
        "node_id": node_id("CR", job.id),
        "run_id": run.id,
        "run_attempt": attempt,
        "run_url": format!("{api}/actions/runs/{}", run.id),
        "url": format!("{api}/actions/jobs/{}", job.id),
        "html_url": format!("{}/actions/runs/{}/job/{}", web_root(base, state), run.id, job.id),
        "check_run_url": format!("{api}/check-runs/{}", job.id),
        "head_sha": run.head_sha.as_str(),
        "head_branch": run.branch,
        "workflow_name": run.workflow,
        "name": job.name,
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": rfc3339(job.started_at),
        "started_at": rfc3339(job.started_at),
        "completed_at": completed,
        "labels": ["ubuntu-latest"],
        "runner_id": 1,
        "runner_name": "Forge 1",
        "runner_group_id": 0,
        "runner_group_name": "Forge",
        "steps": steps.collect::<Value>(),
    })
}
