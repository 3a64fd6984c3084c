//! Branches.

use http::{Method, StatusCode};

use super::answer::{decoded, nonsense, object_id, words};
use super::api::Api;
use super::path::{branch_tail, check_branch};
use super::wire;
use crate::change::Oid;
use crate::connector::ConnectorError;

/// Only branches under this prefix are ours to delete.
const OWN_BRANCHES: &str = "caretaker/";

/// The commit that a branch points at, if it exists, read afresh.
pub(super) async fn branch(api: &Api, name: &str) -> Result<Option<Oid>, ConnectorError> {
    let (action, tail) = reading(api, name)?;
    let found: Option<wire::Reference> = api.read_if_present(&action, &tail).await?;
    found.map(|found| target(&action, name, found)).transpose()
}

/// The same for watching: what was read before counts while the provider says that it is unchanged.
pub(super) async fn watched_branch(api: &Api, name: &str) -> Result<Option<Oid>, ConnectorError> {
    let (action, tail) = reading(api, name)?;
    let watched = api
        .watched_if_present(&action, &tail, |answer| {
            let found = target(&action, name, decoded(&action, &answer.body)?)?;
            Ok((found, std::mem::size_of::<Oid>()))
        })
        .await?;
    Ok(watched.map(|commit| *commit))
}

/// What is done, and the tail of its path.
fn reading(api: &Api, name: &str) -> Result<(String, String), ConnectorError> {
    let action = format!("reading branch {name} of {}", api.full_name());
    check_branch(&action, name)?;
    Ok((action, format!("/git/ref/heads/{}", branch_tail(name))))
}

fn target(action: &str, name: &str, reference: wire::Reference) -> Result<Oid, ConnectorError> {
    // Servers have answered with a reference that merely starts with the name.
    if reference.name.as_deref() != Some(&format!("refs/heads/{name}")) {
        return Err(nonsense(
            action,
            &format!(
                "it is about {:?}, another reference",
                reference.name.unwrap_or_default()
            ),
        ));
    }
    let target = reference.object.unwrap_or_default();
    if target.kind.as_deref() != Some("commit") {
        return Err(nonsense(action, "the branch does not point at a commit"));
    }
    object_id(action, "object.sha", target.sha.as_deref())
}

/// Like [`branch`] for one that must exist.
pub(super) async fn tip(api: &Api, name: &str) -> Result<Oid, ConnectorError> {
    branch(api, name)
        .await?
        .ok_or_else(|| ConnectorError::Absent {
            action: format!("reading the tip of {name}"),
            address: format!("branch {name} of {}", api.full_name()),
        })
}

/// Deletes a branch of ours; one that is gone already is fine.
pub(super) async fn delete(api: &Api, name: &str) -> Result<(), ConnectorError> {
    let action = format!("deleting branch {name} of {}", api.full_name());
    check_branch(&action, name)?;
    // Break it: drop this refusal; `connector::changes::only_our_own_branches_are_deleted` then fails.
    if !name.starts_with(OWN_BRANCHES) {
        return Err(ConnectorError::Refused {
            action,
            reason: format!("only branches that start with {OWN_BRANCHES} are ours to delete"),
        });
    }
    api.confirm_repository(&action).await?;
    let tail = format!("/git/refs/heads/{}", branch_tail(name));
    let answer = api
        .change_or_unreachable(&action, Method::DELETE, &tail, None)
        .await?;
    match answer.status {
        StatusCode::NO_CONTENT | StatusCode::OK => Ok(()),
        StatusCode::UNPROCESSABLE_ENTITY if words(&answer).contains("does not exist") => Ok(()),
        // 404 is also said to a credential that may not delete: only a branch that is not there is a success.
        StatusCode::NOT_FOUND if branch(api, name).await?.is_none() => Ok(()),
        _ => Err(api.refused(&action, &tail, &answer)),
    }
}
