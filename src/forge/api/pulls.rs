//! Pull requests: create, list, show, change.

use serde_json::{Map, Value, json};

use super::super::render;
use super::super::state::{
    PERSON, PullRequest, PullState, Repository, RepositoryState, TOKEN_OWNER,
};
use super::conversation::TEXT_LIMIT;
use super::routes::Scene;
use super::{Answer, Refusal, Reply, flag, required_text, text};

/// A pull request's number out of the path.
pub(crate) fn number_of(state: &RepositoryState, number: &str) -> Result<u64, Refusal> {
    let number = number.parse().map_err(|_| Refusal::not_found())?;
    state
        .pull(number)
        .map(|pull| pull.number)
        .ok_or_else(Refusal::not_found)
}

/// The whole pull request as it is now.
fn whole(scene: Scene<'_>, state: &RepositoryState, number: u64) -> Result<Value, Refusal> {
    let pull = state.pull(number).ok_or_else(Refusal::not_found)?;
    let comparison = scene.repository.pull_comparison(state, pull)?;
    Ok(render::pull(
        &scene.shared.url,
        scene.repository.id,
        state,
        pull,
        &comparison,
    ))
}

/// `GET /repos/{owner}/{repo}/pulls/{pull_number}`. Whoever asks first after a change learns that `mergeable` is not
/// known yet, and starts the computation.
pub(crate) fn show(scene: Scene<'_>, number: &str) -> Answer {
    let mut state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    let body = whole(scene, &state, number)?;
    scene.repository.compute_mergeability(&mut state, number)?;
    Ok(Reply::ok(body))
}

/// `GET /repos/{owner}/{repo}/pulls/{pull_number}/merge`: 204 when merged, else 404, both empty.
pub(crate) fn is_merged(scene: Scene<'_>, number: &str) -> Answer {
    let state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    match state.pull(number).map(|pull| &pull.state) {
        Some(PullState::Merged(_)) => Ok(Reply::nothing()),
        _ => Ok(Reply {
            status: 404,
            ..Reply::nothing()
        }),
    }
}

/// `GET /repos/{owner}/{repo}/pulls`, newest first.
pub(crate) fn list(scene: Scene<'_>) -> Answer {
    let state = scene.repository.current()?;
    let call = scene.call;
    let wanted_state = call.query_value("state").unwrap_or("open");
    if !["open", "closed", "all"].contains(&wanted_state) {
        return Err(Refusal::invalid_field("PullRequest", "state", "invalid"));
    }
    // A head without an owner filters nothing, as on GitHub.
    let head = call
        .query_value("head")
        .and_then(|head| head.split_once(':'));
    let base = call.query_value("base");
    let mut pulls: Vec<&PullRequest> = state
        .pulls
        .iter()
        .filter(|pull| wanted_state == "all" || (wanted_state == "open") == pull.is_open())
        .filter(|pull| {
            head.is_none_or(|(owner, branch)| {
                owner.eq_ignore_ascii_case(&state.owner) && pull.head_ref == branch
            })
        })
        .filter(|pull| base.is_none_or(|base| pull.base_ref == base))
        .collect();
    if call.query_value("sort") == Some("updated") {
        pulls.sort_by_key(|pull| (pull.updated_at, pull.number));
    }
    if call.query_value("direction") != Some("asc") {
        pulls.reverse();
    }
    let row = |pull: &&PullRequest| {
        render::pull_row(&scene.shared.url, scene.repository.id, &state, pull)
    };
    Ok(super::paging::array(
        scene.shared,
        scene.repository.id,
        call,
        &pulls,
        row,
    ))
}

/// What a client sent to create a pull request.
struct NewPull {
    title: String,
    body: Option<String>,
    head: String,
    base: String,
    draft: bool,
    maintainer_can_modify: bool,
}

impl NewPull {
    fn read(object: &Map<String, Value>, owner: &str) -> Result<Self, Refusal> {
        let head = required_text(object, "head")?;
        let head = match head.split_once(':') {
            Some((head_owner, branch)) if head_owner.eq_ignore_ascii_case(owner) => {
                branch.to_owned()
            }
            Some(_) => return Err(Refusal::invalid_field("PullRequest", "head", "invalid")),
            None => head,
        };
        let new = Self {
            title: required_text(object, "title")?,
            body: text(object, "body")?,
            head,
            base: required_text(object, "base")?,
            draft: flag(object, "draft")?.unwrap_or(false),
            maintainer_can_modify: flag(object, "maintainer_can_modify")?.unwrap_or(false),
        };
        check_texts(Some(&new.title), new.body.as_deref())?;
        Ok(new)
    }
}

fn check_texts(title: Option<&str>, body: Option<&str>) -> Result<(), Refusal> {
    if title.is_some_and(|title| title.chars().count() > 256) {
        return Err(Refusal::invalid(
            "PullRequest",
            "title is too long (maximum is 256 characters)",
        ));
    }
    if body.is_some_and(|body| body.chars().count() > TEXT_LIMIT) {
        return Err(Refusal::invalid(
            "PullRequest",
            format!("body is too long (maximum is {TEXT_LIMIT} characters)"),
        ));
    }
    Ok(())
}

/// `POST /repos/{owner}/{repo}/pulls`
pub(crate) fn create(scene: Scene<'_>) -> Answer {
    let object = scene.call.object()?;
    let mut state = scene.repository.current()?;
    let new = NewPull::read(&object, &state.owner)?;
    let pull = opened(scene.repository, &state, new)?;
    let number = pull.number;
    scene
        .repository
        .git
        .force_reference(&format!("refs/pull/{number}/head"), &pull.head_sha)?;
    let head_sha = pull.head_sha.clone();
    state.pulls.push(pull);
    scene.repository.play_ci(&mut state, &head_sha);
    scene
        .repository
        .tell_pull(&state, number, "opened", TOKEN_OWNER, json!({}))?;
    let body = whole(scene, &state, number)?;
    let location = body["url"].as_str().unwrap_or_default().to_owned();
    Ok(Reply::json(201, body).with("location", location))
}

/// The new pull request, if the branches allow one.
fn opened(
    repository: &Repository,
    state: &RepositoryState,
    new: NewPull,
) -> Result<PullRequest, Refusal> {
    let invalid = |field: &str| Refusal::invalid_field("PullRequest", field, "invalid");
    let base_sha = state
        .tip(&new.base)
        .cloned()
        .ok_or_else(|| invalid("base"))?;
    let head_sha = state
        .tip(&new.head)
        .cloned()
        .ok_or_else(|| invalid("head"))?;
    let same = |pull: &&PullRequest| {
        pull.is_open() && pull.head_ref == new.head && pull.base_ref == new.base
    };
    if state.pulls.iter().find(same).is_some() {
        let message = format!(
            "A pull request already exists for {}:{}.",
            state.owner, new.head
        );
        return Err(Refusal::invalid("PullRequest", message));
    }
    let comparison = repository.comparison(&base_sha, &head_sha)?;
    if comparison.merge_base.is_none() {
        let message = format!(
            "The {} branch has no history in common with {}",
            new.head, new.base
        );
        return Err(Refusal::invalid("PullRequest", message));
    }
    if comparison.ahead.is_empty() {
        return Err(Refusal::invalid(
            "PullRequest",
            format!("No commits between {} and {}", new.base, new.head),
        ));
    }
    let now = (repository.now)();
    Ok(PullRequest {
        id: repository.ids.next(),
        number: state.pulls.len() as u64 + 1,
        title: new.title,
        body: new.body,
        user: TOKEN_OWNER,
        state: PullState::Open,
        draft: new.draft,
        auto_merge: false,
        maintainer_can_modify: new.maintainer_can_modify,
        head_ref: new.head,
        head_sha,
        base_ref: new.base,
        base_sha,
        created_at: now,
        updated_at: now,
        mergeability: None,
    })
}

/// `PATCH /repos/{owner}/{repo}/pulls/{pull_number}`: title, body, state and base.
pub(crate) fn change(scene: Scene<'_>, number: &str) -> Answer {
    let object = scene.call.object()?;
    let mut state = scene.repository.current()?;
    let number = number_of(&state, number)?;
    let (title, body) = (text(&object, "title")?, text(&object, "body")?);
    check_texts(title.as_deref(), body.as_deref())?;
    let (new_state, base) = (text(&object, "state")?, text(&object, "base")?);
    if let Some(base) = base {
        retarget(scene.repository, &mut state, number, &base)?;
    }
    if let Some(new_state) = new_state {
        set_open(scene.repository, &mut state, number, &new_state)?;
    }
    let mut changes = json!({});
    if let Some(pull) = state.pull_mut(number) {
        pull.updated_at = (scene.shared.now)();
        if title.as_ref().is_some_and(|title| *title != pull.title) {
            changes["title"] = json!({"from": pull.title});
        }
        pull.title = title.unwrap_or_else(|| pull.title.clone());
        if object.contains_key("body") {
            changes["body"] = json!({"from": pull.body.clone().unwrap_or_default()});
            pull.body = body;
        }
    }
    if changes != json!({}) {
        let more = json!({"changes": changes});
        scene
            .repository
            .tell_pull(&state, number, "edited", TOKEN_OWNER, more)?;
    }
    Ok(Reply::ok(whole(scene, &state, number)?))
}

/// Points an open pull request at another base.
pub(crate) fn retarget(
    repository: &Repository,
    state: &mut RepositoryState,
    number: u64,
    base: &str,
) -> Result<(), Refusal> {
    let tip = state
        .tip(base)
        .cloned()
        .ok_or_else(|| Refusal::invalid_field("PullRequest", "base", "invalid"))?;
    let pull = state.pull_mut(number).ok_or_else(Refusal::not_found)?;
    if !pull.is_open() {
        return Err(Refusal::invalid(
            "PullRequest",
            "Cannot change the base branch of a closed pull request.",
        ));
    }
    let from = json!({"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha.as_str()}});
    base.clone_into(&mut pull.base_ref);
    pull.base_sha = tip;
    pull.updated_at = (repository.now)();
    let more = json!({"changes": {"base": from}});
    repository.tell_pull(state, number, "edited", PERSON, more)?;
    Ok(())
}

/// Closes or reopens. What is merged stays merged.
pub(crate) fn set_open(
    repository: &Repository,
    state: &mut RepositoryState,
    number: u64,
    wanted: &str,
) -> Result<(), Refusal> {
    let head_tip = state
        .pull(number)
        .and_then(|pull| state.tip(&pull.head_ref))
        .cloned();
    let pull = state.pull_mut(number).ok_or_else(Refusal::not_found)?;
    let was_open = pull.is_open();
    match (wanted, &pull.state) {
        ("closed", PullState::Open) => {
            pull.state = PullState::Closed {
                at: (repository.now)(),
            }
        }
        ("closed", _) | ("open", PullState::Open) => {}
        ("open", PullState::Closed { .. }) => {
            let gone = || {
                Refusal::invalid(
                    "PullRequest",
                    format!(
                        "state cannot be changed. The {} branch has been deleted.",
                        pull.head_ref
                    ),
                )
            };
            pull.head_sha = head_tip.ok_or_else(gone)?;
            pull.state = PullState::Open;
        }
        ("open", PullState::Merged(_)) => {
            return Err(Refusal::invalid(
                "PullRequest",
                "state cannot be changed. The pull request cannot be reopened.",
            ));
        }
        _ => return Err(Refusal::invalid_field("PullRequest", "state", "invalid")),
    }
    let is_open = pull.is_open();
    if is_open != was_open {
        let action = if is_open { "reopened" } else { "closed" };
        repository.tell_pull(state, number, action, PERSON, json!({}))?;
    }
    Ok(())
}
