//! The proof after a merge: what landed is what was approved.

use super::Difference;
use super::live::{LandedCommit, LandedView};
use crate::approve::{Binding, MergeMethod};
use crate::change::{ChangeDigest, ChangeSet, Oid};
use crate::id::ExecutionId;

/// Trailer by which a lost answer stays decidable: it names our attempt in the landed commit's message.
pub const EXECUTION_TRAILER: &str = "Caretaker-Execution";

/// The landed commit, compared. Made only by [`prove`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandedProof {
    /// The landed commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its first parent: the base tip it landed on.
    pub parent: Oid,
    /// Digest of what it changed.
    pub observed: ChangeDigest,
    /// Whether the message names our attempt.
    pub ours: bool,
}

/// What a look after a merge shows.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// Exactly the approved change is on the base branch.
    Proven(LandedProof),
    /// Nothing landed.
    Nothing,
    /// Something else landed: executed is not approved.
    Differs {
        /// What is there.
        landed: LandedProof,
        /// How it differs.
        differences: Vec<Difference>,
    },
}

/// Compares what landed with what was approved.
pub fn prove(binding: &Binding, view: &LandedView, execution: Option<&ExecutionId>) -> Landing {
    let Some(landed) = &view.landed else {
        return Landing::Nothing;
    };
    let Some(parent) = landed.parents.first().copied() else {
        return Landing::Differs {
            landed: proof(landed, landed.commit, execution),
            differences: vec![difference("landed-parents", "a parent", "none")],
        };
    };
    let mut differences = Vec::new();
    let approved = ChangeSet::try_from(&binding.change);
    if approved.as_ref().ok() != Some(&landed.entries) {
        differences.push(difference(
            "landed-change",
            &binding.change_digest().to_string(),
            &landed.entries.digest().to_string(),
        ));
    }
    if !landed.on_base {
        differences.push(difference(
            "landed-on-base",
            &binding.base_ref,
            "the base branch does not contain the landed commit",
        ));
    }
    if view.pull.base_ref != binding.base_ref {
        differences.push(difference(
            "base-branch",
            &binding.base_ref,
            &view.pull.base_ref,
        ));
    }
    let second = landed.parents.get(1);
    let parents_fit = match binding.merge_method {
        MergeMethod::Merge => landed.parents.len() == 2 && second == Some(&binding.head_commit),
        MergeMethod::Squash | MergeMethod::Rebase => landed.parents.len() == 1,
    };
    // A person may have used another method; only our own merge must have the shape that was approved.
    if execution.is_some() && names(landed, execution) && !parents_fit {
        differences.push(difference(
            "landed-parents",
            binding.merge_method.as_str(),
            &format!("{} parents", landed.parents.len()),
        ));
    }
    let proof = proof(landed, parent, execution);
    if differences.is_empty() {
        Landing::Proven(proof)
    } else {
        Landing::Differs {
            landed: proof,
            differences,
        }
    }
}

fn difference(rule: &str, expected: &str, found: &str) -> Difference {
    Difference {
        rule: rule.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

fn proof(landed: &LandedCommit, parent: Oid, execution: Option<&ExecutionId>) -> LandedProof {
    LandedProof {
        commit: landed.commit,
        tree: landed.tree,
        parent,
        observed: landed.entries.digest(),
        ours: names(landed, execution),
    }
}

fn names(landed: &LandedCommit, execution: Option<&ExecutionId>) -> bool {
    execution.is_some_and(|execution| {
        landed
            .message
            .lines()
            .any(|line| line.trim() == format!("{EXECUTION_TRAILER}: {execution}"))
    })
}
