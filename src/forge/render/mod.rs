//! The JSON shapes of GitHub's REST API, version 2022-11-28. Every function takes the forge's address first, since every
//! object names its own.

mod account;
mod app;
mod check;
mod commit;
mod delivery;
mod guard;
mod pull;
mod repository;
mod run;

pub(crate) use account::{private_user, user};
pub(crate) use app::{app, installation, selection};
pub(crate) use check::{check_run, combined_status, status};
pub(crate) use commit::{
    ComparisonFrame, blob, commit, comparison, file, git_commit, reference, reference_url, tree,
    tree_entry,
};
pub(crate) use delivery::{delivery, whole_delivery};
pub(crate) use guard::{branch_rule, protection, ruleset};
pub(crate) use pull::{comment, pull, pull_row};
pub(crate) use repository::{branch, repository};
pub(crate) use run::{check_suite, job, run, workflow};

use super::state::RepositoryState;

/// The API's address of a repository.
pub(crate) fn api_root(base: &str, state: &RepositoryState) -> String {
    format!("{base}{}/repos/{}", state.api_path, state.full_name())
}

/// The page of a repository.
pub(crate) fn web_root(base: &str, state: &RepositoryState) -> String {
    format!("{base}/{}", state.full_name())
}

/// GitHub's second kind of id; nobody should look into it.
pub(crate) fn node_id(kind: &str, id: u64) -> String {
    format!("{kind}_forge{id}")
}
