//! The repository itself.

use super::super::render;
use super::routes::Scene;
use super::{Answer, Reply, kept};

/// `GET /repos/{owner}/{repo}`
pub(crate) fn show(scene: Scene<'_>) -> Answer {
    let state = scene.repository.current()?;
    kept(scene, &state, || {
        Ok(Reply::ok(render::repository(
            &scene.shared.url,
            scene.repository.id,
            &state,
        )))
    })
}
