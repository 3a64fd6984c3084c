//! References and branches.

use super::super::encoding::percent_encoded_path;
use super::super::git::{ObjectId, valid_name};
use super::super::render;
use super::super::state::ReferenceUpdate;
use super::guards::move_allowed;
use super::routes::Scene;
use super::{Answer, Refusal, Reply, flag, required_text};

/// `GET /repos/{owner}/{repo}/branches/{branch}`; the old name of a renamed branch redirects.
pub(crate) fn branch(scene: Scene<'_>, name: &str) -> Answer {
    let state = scene.repository.current()?;
    if let Some(tip) = state.tip(name) {
        let commit = scene.repository.git.commit(tip)?;
        return Ok(Reply::ok(render::branch(
            &scene.shared.url,
            &state,
            name,
            &commit,
        )));
    }
    let new_name = state
        .renamed_branches
        .get(name)
        .ok_or_else(|| Refusal::new(404, "Branch not found"))?;
    let target = format!(
        "{}/repositories/{}/branches/{}",
        scene.shared.api(),
        scene.repository.id,
        percent_encoded_path(new_name)
    );
    let body = serde_json::json!({"message": "Moved Permanently", "url": target, "documentation_url": super::DOCUMENTATION});
    Ok(Reply::json(301, body).with("location", target))
}

/// `GET /repos/{owner}/{repo}/git/ref/{ref}`; the name comes without `refs/`.
pub(crate) fn one(scene: Scene<'_>, name: &str) -> Answer {
    let state = scene.repository.current()?;
    let full = format!("refs/{name}");
    let target = match state.references.get(&full) {
        Some(target) => Some(target.clone()),
        // The references of pull requests are GitHub's own: they can be read, and nothing else.
        None if full.starts_with("refs/pull/") => scene.repository.git.resolve(&full, "commit")?,
        None => None,
    };
    let target = target.ok_or_else(Refusal::not_found)?;
    reference_reply(scene, &state, &full, &target, 200)
}

/// `GET /repos/{owner}/{repo}/git/matching-refs/{ref}`: everything that begins so, perhaps nothing.
pub(crate) fn matching(scene: Scene<'_>, prefix: &str) -> Answer {
    let state = scene.repository.current()?;
    let prefix = format!("refs/{prefix}");
    let found: Vec<_> = state
        .references
        .iter()
        .filter(|(name, _)| name.starts_with(&prefix))
        .collect();
    let mut rendered = Vec::new();
    for (name, target) in &found {
        let kind = scene
            .repository
            .git
            .kind(target)?
            .unwrap_or_else(|| "commit".to_owned());
        rendered.push(render::reference(
            &scene.shared.url,
            &state,
            name,
            target,
            &kind,
        ));
    }
    Ok(super::paging::array(
        scene.shared,
        scene.repository.id,
        scene.call,
        &rendered,
        Clone::clone,
    ))
}

fn reference_reply(
    scene: Scene<'_>,
    state: &super::super::state::RepositoryState,
    name: &str,
    target: &ObjectId,
    status: u16,
) -> Answer {
    let kind = scene
        .repository
        .git
        .kind(target)?
        .unwrap_or_else(|| "commit".to_owned());
    Ok(Reply::json(
        status,
        render::reference(&scene.shared.url, state, name, target, &kind),
    ))
}

/// The object that a reference is to name; it must exist, and be a commit for a branch.
fn target(scene: Scene<'_>, name: &str, sha: &str) -> Result<ObjectId, Refusal> {
    let id = ObjectId::parse(sha).ok_or_else(|| {
        Refusal::new(
            422,
            "The sha parameter must be exactly 40 characters and contain only [0-9a-f].",
        )
    })?;
    match scene.repository.git.kind(&id)?.as_deref() {
        Some("commit") => Ok(id),
        Some(_) if !name.starts_with("refs/heads/") => Ok(id),
        _ => Err(Refusal::new(422, "Object does not exist")),
    }
}

/// `POST /repos/{owner}/{repo}/git/refs`
pub(crate) fn create(scene: Scene<'_>) -> Answer {
    let body = scene.call.object()?;
    let (name, sha) = (required_text(&body, "ref")?, required_text(&body, "sha")?);
    if !name.starts_with("refs/") || name.matches('/').count() < 2 {
        return Err(Refusal::new(
            422,
            "Reference name must start with 'refs/' and have at least two slashes.",
        ));
    }
    if !valid_name(&name) || name.starts_with("refs/pull/") || name.starts_with("refs/forge/") {
        return Err(Refusal::new(
            422,
            format!("{name} is not a valid ref name."),
        ));
    }
    let id = target(scene, &name, &sha)?;
    let mut state = scene.repository.current()?;
    if state.references.contains_key(&name) {
        return Err(Refusal::new(422, "Reference already exists"));
    }
    move_allowed(&state, &name, Some(&id), false)?;
    match scene.repository.update_reference(&mut state, &name, &id)? {
        ReferenceUpdate::Done => {
            let location = render::reference_url(&scene.shared.url, &state, &name);
            Ok(reference_reply(scene, &state, &name, &id, 201)?.with("location", location))
        }
        ReferenceUpdate::Overtaken => Err(Refusal::new(422, "Reference already exists")),
    }
}

/// `PATCH /repos/{owner}/{repo}/git/refs/{ref}`: without `force` only forward.
pub(crate) fn update(scene: Scene<'_>, name: &str) -> Answer {
    let body = scene.call.object()?;
    let (sha, force) = (
        required_text(&body, "sha")?,
        flag(&body, "force")?.unwrap_or(false),
    );
    let full = format!("refs/{name}");
    let mut state = scene.repository.current()?;
    let before = state
        .references
        .get(&full)
        .cloned()
        .ok_or_else(|| Refusal::new(422, "Reference does not exist"))?;
    let id = target(scene, &full, &sha)?;
    let forward = scene.repository.git.is_ancestor(&before, &id)?;
    if !force && !forward {
        return Err(Refusal::new(422, "Update is not a fast forward"));
    }
    move_allowed(&state, &full, Some(&id), !forward)?;
    match scene.repository.update_reference(&mut state, &full, &id)? {
        ReferenceUpdate::Done => reference_reply(scene, &state, &full, &id, 200),
        ReferenceUpdate::Overtaken => Err(Refusal::new(422, "Update is not a fast forward")),
    }
}

/// `DELETE /repos/{owner}/{repo}/git/refs/{ref}`
pub(crate) fn delete(scene: Scene<'_>, name: &str) -> Answer {
    let full = format!("refs/{name}");
    let state = scene.repository.current()?;
    if !state.references.contains_key(&full) {
        return Err(Refusal::new(422, "Reference does not exist"));
    }
    if full == format!("refs/heads/{}", state.default_branch) {
        return Err(Refusal::new(422, "Cannot delete the default branch"));
    }
    move_allowed(&state, &full, None, false)?;
    drop(state);
    scene.repository.git.delete_reference(&full)?;
    drop(scene.repository.current()?);
    Ok(Reply::nothing())
}
