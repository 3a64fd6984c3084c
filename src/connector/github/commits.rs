//! Commits, and where two of them part.

use super::answer::{nonsense, object_id, required};
use super::api::Api;
use super::wire;
use crate::change::Oid;
use crate::connector::ConnectorError;

/// A commit as far as it is compared.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) id: Oid,
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
    pub(super) message: String,
}

/// A commit by its id; the answer must be about that id.
pub(super) async fn read(api: &Api, id: Oid) -> Result<Commit, ConnectorError> {
    let action = format!("reading commit {id}");
    let commit: wire::Commit = api.read(&action, &format!("/git/commits/{id}")).await?;
    if object_id(&action, "sha", commit.sha.as_deref())? != id {
        return Err(nonsense(&action, "it is about another commit"));
    }
    let tree = commit.tree.unwrap_or_default().sha;
    let parents = required(&action, "parents", commit.parents)?;
    let parents = parents
        .iter()
        .map(|parent| object_id(&action, "parents.sha", parent.sha.as_deref()))
        .collect::<Result<_, _>>()?;
    Ok(Commit {
        id,
        tree: object_id(&action, "tree.sha", tree.as_deref())?,
        parents,
        message: commit.message.unwrap_or_default(),
    })
}

/// The merge base of two commits, asked for by id: names may contain dots, and they move.
pub(super) async fn merge_base(api: &Api, base: Oid, head: Oid) -> Result<Oid, ConnectorError> {
    let action = format!("comparing {base} with {head}");
    let tail = format!("/compare/{base}...{head}?per_page=1");
    match api
        .read_if_present::<wire::Compared>(&action, &tail)
        .await?
    {
        Some(compared) => {
            let merge_base = compared.merge_base_commit.unwrap_or_default();
            object_id(&action, "merge_base_commit.sha", merge_base.sha.as_deref())
        }
        None => Err(ConnectorError::Refused {
            action,
            reason: "the two have no common ancestor, or one of them is not in the repository"
                .to_owned(),
        }),
    }
}
