//! Comparing two commits.

use super::super::git::ObjectId;
use super::super::render;
use super::objects::resolved;
use super::paging::{Page, linked};
use super::routes::Scene;
use super::{Answer, Refusal, Reply};

/// GitHub lists so many files and says nothing about the others.
const FILES: usize = 300;
/// Without paging, so many commits are listed.
const COMMITS: usize = 250;

/// `GET /repos/{owner}/{repo}/compare/{base}...{head}`; each side may be written `owner:branch`.
pub(crate) fn show(scene: Scene<'_>, range: &str) -> Answer {
    let (base, head) = range.split_once("...").ok_or_else(Refusal::not_found)?;
    let (base, head) = (side(scene, base)?, side(scene, head)?);
    let comparison = scene.repository.comparison(&base, &head)?;
    let merge_base = comparison.merge_base.clone().ok_or_else(|| {
        Refusal::new(
            404,
            format!("No common ancestor between {base} and {head}."),
        )
    })?;
    let paged =
        scene.call.query_value("page").is_some() || scene.call.query_value("per_page").is_some();
    let page = Page::of(scene.call);
    let listed = if paged {
        page.part(&comparison.ahead)
    } else {
        &comparison.ahead[..comparison.ahead.len().min(COMMITS)]
    };
    let state = scene.repository.current()?;
    let git = &scene.repository.git;
    let frame = render::ComparisonFrame {
        base: &git.commit(&base)?,
        merge_base: &git.commit(&merge_base)?,
        head: &head,
    };
    let mut body = render::comparison(
        &scene.shared.url,
        &state,
        &frame,
        &comparison,
        &git.commits(listed)?,
    );
    // The files come with the first page only.
    if page.is_first() {
        let files = &comparison.files[..comparison.files.len().min(FILES)];
        let patches = git.patches(&merge_base, &head, files)?;
        let rows = files
            .iter()
            .zip(patches)
            .map(|(file, patch)| render::file(&scene.shared.url, &state, &head, file, patch));
        body["files"] = rows.collect();
    }
    let reply = Reply::ok(body);
    Ok(if paged {
        linked(
            scene.shared,
            scene.repository.id,
            scene.call,
            comparison.ahead.len(),
            reply,
        )
    } else {
        reply
    })
}

fn side(scene: Scene<'_>, name: &str) -> Result<ObjectId, Refusal> {
    let name = match name.split_once(':') {
        Some((owner, branch))
            if owner.eq_ignore_ascii_case(&scene.repository.remembered().owner) =>
        {
            branch
        }
        Some(_) => return Err(Refusal::not_found()),
        None => name,
    };
    resolved(scene, name, "commit")?.ok_or_else(Refusal::not_found)
}
