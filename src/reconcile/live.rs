//! What a connector reads for the comparison. Plain values: every field is as the provider gave it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::change::{ChangeSet, Oid, RepoPath, Side};

/// A pull request's own flags and heads, read from the pull request itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one flag that the provider reports"
)]
pub struct PullState {
    /// Number.
    pub number: u64,
    /// Open, by the provider's word.
    pub open: bool,
    /// Merged, by whomever.
    pub merged: bool,
    /// A draft cannot be merged.
    pub draft: bool,
    /// Part of a stack: merging it would merge others too.
    pub stacked: bool,
    /// Someone armed an automatic merge.
    pub auto_merge: bool,
    /// Provider's number of the head repository; none when it was deleted.
    pub head_repository: Option<String>,
    /// Head branch.
    pub head_ref: String,
    /// Head commit.
    pub head_commit: Oid,
    /// Branch it would land on.
    pub base_ref: String,
    /// Number of commits that the provider counts.
    pub commits: u64,
    /// Number of file rows that the provider counts.
    pub changed_files: u64,
    /// Whether the provider can merge it; none while it computes.
    pub mergeable: Option<bool>,
}

/// One row of the provider's list of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullFile {
    /// Path on the new side.
    pub path: String,
    /// The provider's word, e.g. `added`, `renamed`.
    pub status: String,
    /// Blob id; none when only the mode changed.
    pub oid: Option<Oid>,
    /// Path before a rename.
    pub previous_path: Option<String>,
}

/// The newest attempt of one check on the head commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckView {
    /// Name as shown.
    pub name: String,
    /// The app that reported it (its slug); a commit status has none.
    pub app: Option<String>,
    /// Whether it has ended.
    pub completed: bool,
    /// The provider's word when it has.
    pub conclusion: Option<String>,
}

/// A check that must be green, by name and app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRequirement {
    /// Name as shown.
    pub name: String,
    /// Slug of the app; none accepts any.
    pub app: Option<String>,
}

/// Everything that the comparison before a merge needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveView {
    /// Provider's number of the repository.
    pub repository_id: String,
    /// No longer writable.
    pub archived: bool,
    /// The pull request, read first.
    pub pull: PullState,
    /// The base branch's tip, read from the reference itself.
    pub base_tip: Oid,
    /// Merge base of the base tip and the head.
    pub merge_base: Oid,
    /// The head commit's tree.
    pub head_tree: Oid,
    /// Entries by descent through live trees of merge base and head.
    pub entries: ChangeSet,
    /// What stands at the base tip at each approved path; a missing path is absent.
    pub base_sides: BTreeMap<RepoPath, Side>,
    /// Approved paths of which the base tip has an ancestor as a file, or which are a directory there.
    pub path_conflicts: Vec<RepoPath>,
    /// Every row of the provider's list of files.
    pub files: Vec<PullFile>,
    /// The head commit, read again after the last row.
    pub head_commit_after_files: Oid,
    /// Checks on the head commit.
    pub checks: Vec<CheckView>,
    /// Rules of the base branch that forbid a direct merge, in the provider's words (e.g. a merge queue).
    pub blocking_rules: Vec<String>,
    /// Merge methods that the repository allows, in the provider's words.
    pub allowed_methods: Vec<String>,
}

/// A commit that is on the base branch now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedCommit {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its parents, first first.
    pub parents: Vec<Oid>,
    /// Entries between its first parent and itself, by live trees.
    pub entries: ChangeSet,
    /// Whether the base branch contains it.
    pub on_base: bool,
    /// Its message.
    pub message: String,
}

/// What became of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedView {
    /// The pull request now.
    pub pull: PullState,
    /// The base tip now.
    pub base_tip: Oid,
    /// What landed, when something did.
    pub landed: Option<LandedCommit>,
}
