//! Workflows.

use super::super::render;
use super::super::state::Workflow;
use super::paging::counted;
use super::routes::Scene;
use super::{Answer, Refusal, Reply, kept};

/// `GET /repos/{owner}/{repo}/actions/workflows`, in the order in which they came up; deleted ones too, as they have runs.
pub(crate) fn list(scene: Scene<'_>) -> Answer {
    let state = scene.repository.current()?;
    kept(scene, &state, || {
        let row = |workflow: &Workflow| render::workflow(&scene.shared.url, &state, workflow);
        Ok(counted(
            scene.shared,
            scene.repository.id,
            scene.call,
            "workflows",
            &state.workflows,
            row,
        ))
    })
}

/// `GET /repos/{owner}/{repo}/actions/workflows/{workflow_id}`
pub(crate) fn show(scene: Scene<'_>, name: &str) -> Answer {
    let state = scene.repository.current()?;
    let workflow = state
        .workflows
        .iter()
        .find(|workflow| workflow.is_named(name))
        .ok_or_else(Refusal::not_found)?;
    Ok(Reply::ok(render::workflow(
        &scene.shared.url,
        &state,
        workflow,
    )))
}
