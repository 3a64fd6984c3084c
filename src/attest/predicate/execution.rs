//! `execution`: what landed.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::Text;
use super::{EventBlock, MergeMethod, PredicateError, require};
use crate::change::{Oid, Sha256Digest};
use crate::id::ExecutionId;

/// A landed change, signed by the executor. One that we merged equals what was approved; a difference is an escalation,
/// never an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// The event.
    pub event: EventBlock,
    /// The attempt, as the landed commit's trailer names it.
    pub execution_id: ExecutionId,
    /// Whether we merged it. Otherwise somebody else did and this records what was found.
    pub by_us: bool,
    /// Digest of the proposal; absent only when somebody else merged before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<DigestRef>,
    /// What allowed it; absent exactly when somebody else merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<AuthorityRef>,
    /// How it landed.
    pub method: MergeMethod,
    /// Pull request number.
    pub pull_request: u64,
    /// The commit now on the base.
    pub landed: Landed,
    /// The change digest that was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_change: Option<DigestRef>,
    /// The change digest of what landed, computed again from git.
    pub observed_change: DigestRef,
    /// Tip of the base before.
    pub before: Oid,
    /// Tip of the base when the landed commit was found on it.
    pub after: Oid,
    /// The log's checkpoint that held the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointRef>,
}

impl Execution {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.by_us == self.authority.is_some(),
            "authority",
            "must be there exactly when we merged",
        )?;
        if self.by_us {
            require(
                self.proposal.is_some(),
                "proposal",
                "must be there when we merged",
            )?;
            require(
                self.approved_change == Some(self.observed_change),
                "observed_change",
                "what landed is not what was approved",
            )?;
        }
        let format = self.landed.commit.format();
        let others = [
            &self.landed.tree,
            &self.landed.parent,
            &self.before,
            &self.after,
        ];
        require(
            others.into_iter().all(|oid| oid.format() == format),
            "landed",
            "commits and tree are of different object formats",
        )
    }
}

/// What allowed a merge: exactly one of the two, by digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AuthorityRef {
    /// A person's approval.
    Approval(DigestRef),
    /// A policy decision `free`.
    Decision(DigestRef),
}

/// The commit that landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Landed {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its first parent.
    pub parent: Oid,
}

/// A checkpoint of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckpointRef {
    /// The log.
    pub origin: Text,
    /// Number of leaves.
    pub size: u64,
    /// Root hash.
    pub root: Sha256Digest,
}
