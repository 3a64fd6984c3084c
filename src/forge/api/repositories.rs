//! The repository itself.

use serde_json::json;

use super::super::render;
use super::routes::Scene;
use super::{Answer, Reply};

/// `GET /repos/{owner}/{repo}`
pub(crate) fn show(scene: Scene<'_>) -> Answer {
    let state = scene.repository.current()?;
    Ok(Reply::ok(render::repository(
        &scene.shared.url,
        scene.repository.id,
        &state,
    )))
}

/// `GET /repos/{owner}/{repo}/rules/branches/{branch}`: this forge has no rulesets.
pub(crate) fn rules(scene: Scene<'_>) -> Reply {
    super::paging::array::<()>(scene.shared, scene.repository.id, scene.call, &[], |()| {
        json!(null)
    })
}
