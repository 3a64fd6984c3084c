//! What a pull request changes, file by file and commit by commit.

use super::super::render;
use super::paging::{Page, array, linked};
use super::pulls::number_of;
use super::routes::Scene;
use super::{Answer, Reply};

/// More files than these are never listed, and nothing says so.
const FILES: usize = 3_000;
/// More commits than these are never listed, and nothing says so.
const COMMITS: usize = 250;

/// `GET /repos/{owner}/{repo}/pulls/{pull_number}/files`. Each page is computed from the head of its moment: pages read
/// while somebody pushes do not fit together.
pub(crate) fn files(scene: Scene<'_>, number: &str) -> Answer {
    let state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    let pull = state.pull(number).ok_or_else(super::Refusal::not_found)?;
    let comparison = scene.repository.pull_comparison(&state, pull)?;
    let listed = &comparison.files[..comparison.files.len().min(FILES)];
    let patches = match &comparison.merge_base {
        Some(merge_base) => {
            scene
                .repository
                .git
                .patches(merge_base, &pull.head_sha, &comparison.files)?
        }
        None => Vec::new(),
    };
    let rows: Vec<_> = listed.iter().zip(patches).collect();
    let part = Page::of(scene.call).part(&rows).iter();
    let part = part.map(|(file, patch)| {
        render::file(
            &scene.shared.url,
            &state,
            &pull.head_sha,
            file,
            patch.clone(),
        )
    });
    let reply = Reply::ok(part.collect());
    Ok(linked(
        scene.shared,
        scene.repository.id,
        scene.call,
        rows.len(),
        reply,
    ))
}

/// `GET /repos/{owner}/{repo}/pulls/{pull_number}/commits`, oldest first.
pub(crate) fn commits(scene: Scene<'_>, number: &str) -> Answer {
    let state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    let pull = state.pull(number).ok_or_else(super::Refusal::not_found)?;
    let comparison = scene.repository.pull_comparison(&state, pull)?;
    let listed = &comparison.ahead[..comparison.ahead.len().min(COMMITS)];
    let commits = scene.repository.git.commits(listed)?;
    Ok(array(
        scene.shared,
        scene.repository.id,
        scene.call,
        &commits,
        |commit| render::commit(&scene.shared.url, &state, commit),
    ))
}
