//! Comments of a pull request's conversation.

use super::super::render;
use super::super::state::{Comment, RepositoryState, TOKEN_OWNER};
use super::routes::Scene;
use super::{Answer, Refusal, Reply, required_text};

/// GitHub takes no longer comments and descriptions, in characters.
pub(crate) const TEXT_LIMIT: usize = 65_536;

fn pull_number(state: &RepositoryState, number: &str) -> Result<u64, Refusal> {
    let number = number.parse().map_err(|_| Refusal::not_found())?;
    state
        .pull(number)
        .map(|pull| pull.number)
        .ok_or_else(Refusal::not_found)
}

/// `GET /repos/{owner}/{repo}/issues/{issue_number}/comments`, oldest first.
pub(crate) fn list(scene: Scene<'_>, number: &str) -> Answer {
    let state = scene.repository.current()?;
    let number = pull_number(&state, number)?;
    let comments: Vec<&Comment> = state
        .comments
        .iter()
        .filter(|comment| comment.number == number)
        .collect();
    let render = |comment: &&Comment| render::comment(&scene.shared.url, &state, comment);
    Ok(super::paging::array(
        scene.shared,
        scene.repository.id,
        scene.call,
        &comments,
        render,
    ))
}

/// `POST /repos/{owner}/{repo}/issues/{issue_number}/comments`
pub(crate) fn create(scene: Scene<'_>, number: &str) -> Answer {
    let body = required_text(&scene.call.object()?, "body")?;
    if body.chars().count() > TEXT_LIMIT {
        return Err(Refusal::invalid(
            "IssueComment",
            format!("body is too long (maximum is {TEXT_LIMIT} characters)"),
        ));
    }
    let mut state = scene.repository.current()?;
    let number = pull_number(&state, number)?;
    let comment = Comment {
        id: scene.repository.ids.next(),
        number,
        body,
        user: TOKEN_OWNER,
        created_at: (scene.shared.now)(),
    };
    let rendered = render::comment(&scene.shared.url, &state, &comment);
    state.comments.push(comment);
    let location = rendered["url"].as_str().unwrap_or_default().to_owned();
    Ok(Reply::json(201, rendered).with("location", location))
}
