//! Pull requests: finding, opening, following, closing.

use http::{Method, StatusCode};
use serde_json::json;

use super::answer::{decoded, item, nonsense, object_id, page, required};
use super::api::Api;
use super::path::{check_branch, encoded};
use super::wire;
use crate::connector::{ConnectorError, NewPull, PullView};
use crate::reconcile::{PullFile, PullState};

/// Hidden in the closing comment, so that it is written once.
const CLOSING_MARKER: &str = "<!-- caretaker:closing -->";
/// Pages read for a pull request by its branch. The filter leaves very few; a server that ignores it gives them all.
const FIND_PAGES: u32 = 10;
/// Pages of comments searched for the marker.
const COMMENT_PAGES: u32 = 30;
/// The interface lists 3,000 files and then stops without a word; the count of rows shows it.
const FILE_PAGES: u32 = 30;

/// The newest pull request from a branch of this repository.
pub(super) async fn find(api: &Api, head_ref: &str) -> Result<Option<PullView>, ConnectorError> {
    let action = format!("finding the pull request from {head_ref}");
    check_branch(&action, head_ref)?;
    let head = encoded(&format!("{}:{head_ref}", api.owner));
    let tail = format!("/pulls?head={head}&state=all&sort=created&direction=desc");
    for number in 1..=FIND_PAGES {
        let (items, more) = api.page(&action, &tail, None, number).await?;
        for value in items {
            let pull: wire::Pull = item(&action, value)?;
            if is_from(&pull, head_ref) {
                return view(api, &action, pull).map(Some);
            }
        }
        if !more {
            return Ok(None);
        }
    }
    Err(nonsense(
        &action,
        "the list of pull requests is not limited to the branch that was asked for",
    ))
}

/// The filter is ignored where it is not understood, so that the answer is checked.
fn is_from(pull: &wire::Pull, head_ref: &str) -> bool {
    let repository = |side: Option<&wire::PullSide>| side?.repo.as_ref()?.id;
    let head = pull.head.as_ref();
    head.and_then(|side| side.branch.as_deref()) == Some(head_ref)
        && repository(head).is_some()
        && repository(head) == repository(pull.base.as_ref())
}

/// Opens a pull request, asking once.
pub(super) async fn open(api: &Api, new: &NewPull) -> Result<PullView, ConnectorError> {
    let action = format!("opening a pull request from {}", new.head_ref);
    check_branch(&action, &new.head_ref)?;
    check_branch(&action, &new.base_ref)?;
    api.confirm_repository(&action).await?;
    let body = json!({
        "title": new.title,
        "body": new.body,
        "head": new.head_ref,
        "base": new.base_ref,
        "draft": false,
    });
    let answer = api
        .change_or_unreachable(&action, Method::POST, "/pulls", Some(&body))
        .await?;
    if answer.status != StatusCode::CREATED {
        return Err(api.refused(&action, "/pulls", &answer));
    }
    view(api, &action, decoded(&action, &answer.body)?)
}

/// A pull request now.
pub(super) async fn pull(api: &Api, number: u64) -> Result<PullView, ConnectorError> {
    let action = reading(number);
    view(api, &action, read(api, number).await?)
}

fn reading(number: u64) -> String {
    format!("reading pull request {number}")
}

/// A pull request as the provider gives it; the answer must be about the one that was asked for.
pub(super) async fn read(api: &Api, number: u64) -> Result<wire::Pull, ConnectorError> {
    let action = reading(number);
    let pull: wire::Pull = api.read(&action, &format!("/pulls/{number}")).await?;
    if pull.number != Some(number) {
        return Err(nonsense(&action, "it is about another pull request"));
    }
    Ok(pull)
}

/// Lists lack the flag and give only the time.
fn is_merged(pull: &wire::Pull) -> bool {
    pull.merged.unwrap_or(pull.merged_at.is_some())
}

fn view(api: &Api, action: &str, pull: wire::Pull) -> Result<PullView, ConnectorError> {
    let number = required(action, "number", pull.number)?;
    let merged = is_merged(&pull);
    let head = pull.head.unwrap_or_default();
    Ok(PullView {
        number,
        url: page(pull.html_url).unwrap_or_else(|| {
            format!("{}/{}/pull/{number}", api.setting.web_text, api.full_name())
        }),
        open: required(action, "state", pull.state)? == "open",
        merged,
        head_commit: object_id(action, "head.sha", head.sha.as_deref())?,
    })
}

/// Flags and heads for the comparison. What it rests on must be there; only what merely forbids may be missing.
pub(super) fn state(pull: &wire::Pull) -> Result<PullState, ConnectorError> {
    let number = pull.number.unwrap_or_default();
    let action = reading(number);
    let head = required(&action, "head", pull.head.as_ref())?;
    let base = required(&action, "base", pull.base.as_ref())?;
    let repository = head.repo.as_ref().and_then(|repository| repository.id);
    Ok(PullState {
        number,
        open: required(&action, "state", pull.state.as_deref())? == "open",
        merged: is_merged(pull),
        draft: pull.draft.unwrap_or(false),
        stacked: pull.stack.is_some(),
        auto_merge: pull.auto_merge.is_some(),
        head_repository: repository.map(|id| id.to_string()),
        head_ref: required(&action, "head.ref", head.branch.clone())?,
        head_commit: object_id(&action, "head.sha", head.sha.as_deref())?,
        base_ref: required(&action, "base.ref", base.branch.clone())?,
        commits: required(&action, "commits", pull.commits)?,
        changed_files: required(&action, "changed_files", pull.changed_files)?,
        mergeable: pull.mergeable,
    })
}

/// Every row of the list of files; a row that is not understood is an error, since it may hide a change.
pub(super) async fn files(api: &Api, number: u64) -> Result<Vec<PullFile>, ConnectorError> {
    let action = format!("reading the files of pull request {number}");
    let tail = format!("/pulls/{number}/files");
    let mut files = Vec::new();
    for page in 1..=FILE_PAGES {
        let (items, more) = api.page(&action, &tail, None, page).await?;
        for value in items {
            let row: wire::FileRow = item(&action, value)?;
            let oid = match row.sha.as_deref() {
                Some(text) => Some(object_id(&action, "sha", Some(text))?),
                None => None,
            };
            files.push(PullFile {
                path: required(&action, "filename", row.filename)?,
                status: required(&action, "status", row.status)?,
                oid,
                previous_path: row.previous_filename,
            });
        }
        if !more {
            break;
        }
    }
    Ok(files)
}

/// Comments once and closes; a pull request that is closed already is left as it is.
pub(super) async fn close(api: &Api, number: u64, comment: &str) -> Result<(), ConnectorError> {
    let action = format!("closing pull request {number}");
    api.confirm_repository(&action).await?;
    if read(api, number).await?.state.as_deref() != Some("open") {
        return Ok(());
    }
    let comments = format!("/issues/{number}/comments");
    if !has_marker(api, &action, &comments).await? {
        let body = json!({ "body": format!("{comment}\n\n{CLOSING_MARKER}") });
        let answer = api
            .change_or_unreachable(&action, Method::POST, &comments, Some(&body))
            .await?;
        if answer.status != StatusCode::CREATED {
            return Err(api.refused(&action, &comments, &answer));
        }
    }
    let tail = format!("/pulls/{number}");
    let answer = api
        .change_or_unreachable(
            &action,
            Method::PATCH,
            &tail,
            Some(&json!({ "state": "closed" })),
        )
        .await?;
    if answer.status == StatusCode::OK {
        Ok(())
    } else {
        Err(api.refused(&action, &tail, &answer))
    }
}

async fn has_marker(api: &Api, action: &str, tail: &str) -> Result<bool, ConnectorError> {
    for page in 1..=COMMENT_PAGES {
        let (items, more) = api.page(action, tail, None, page).await?;
        let marked = items
            .into_iter()
            .filter_map(|value| serde_json::from_value::<wire::Comment>(value).ok())
            .any(|comment| {
                comment
                    .body
                    .is_some_and(|body| body.contains(CLOSING_MARKER))
            });
        if marked || !more {
            return Ok(marked);
        }
    }
    Ok(false)
}
