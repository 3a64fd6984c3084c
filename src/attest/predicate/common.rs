//! What every chain event says about itself, and shapes that several predicates share.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::role::Role;
use super::super::text::{Label, Text};
use super::{PredicateError, require};
use crate::change::{CHANGE_SET_ALGORITHM, ObjectFormat, Oid, Sha256Digest};
use crate::clock::Millis;
use crate::id::{EventId, IncidentId};

/// The block `event` of every chain event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EventBlock {
    /// The event.
    pub id: EventId,
    /// The incident whose chain this is.
    pub incident: IncidentId,
    /// Position in the chain, from 0, without gaps.
    pub seq: u64,
    /// Digest of the event before, null at position 0.
    pub prev: Option<DigestRef>,
    /// The watched repository.
    pub project: Project,
    /// The role that signs; the one of the predicate type.
    pub role: Role,
    /// When it happened, by the clock of whoever signs.
    pub occurred_at: Millis,
    /// The trust root in force.
    pub trust_root: TrustRootRef,
    /// SHA-256 of the rules in force.
    pub policy: DigestRef,
    /// The program that made the statement.
    pub producer: Producer,
}

impl EventBlock {
    /// Checks what the types cannot: the role, and that exactly the first event has nothing before it.
    pub(crate) fn check(&self, role: Role) -> Result<(), PredicateError> {
        require(
            self.role == role,
            "event.role",
            "not the role that signs this predicate type",
        )?;
        require(self.occurred_at.0 >= 0, "event.occurred_at", "before 1970")?;
        require(
            (self.seq == 0) == self.prev.is_none(),
            "event.prev",
            "must be null at position 0 and only there",
        )
    }
}

/// The block `document` of an evidence document: who made it and for which incident. It has no position in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvidenceBlock {
    /// The document.
    pub id: EventId,
    /// The incident it belongs to.
    pub incident: IncidentId,
    /// The watched repository.
    pub project: Project,
    /// The role that signs; the one of the predicate type.
    pub role: Role,
    /// When it was made.
    pub occurred_at: Millis,
    /// The trust root in force.
    pub trust_root: TrustRootRef,
    /// The program that made it.
    pub producer: Producer,
}

/// The block `event` of an event of the organisation's log, which is of no incident: no place in a chain and nothing before
/// it. Its place is its index in the log, where nothing can be left out unnoticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OrganisationBlock {
    /// The event.
    pub id: EventId,
    /// The watched repository that it concerns; absent when it concerns all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Project>,
    /// The role that signs; the one of the predicate type.
    pub role: Role,
    /// When it happened, by the clock of whoever signs.
    pub occurred_at: Millis,
    /// The trust root in force, which names the organisation.
    pub trust_root: TrustRootRef,
    /// The program that made the statement.
    pub producer: Producer,
}

impl OrganisationBlock {
    /// Checks what the types cannot.
    pub(crate) fn check(&self, role: Role) -> Result<(), PredicateError> {
        require(
            self.role == role,
            "event.role",
            "not the role that signs this predicate type",
        )?;
        require(self.occurred_at.0 >= 0, "event.occurred_at", "before 1970")
    }
}

impl EvidenceBlock {
    /// Checks what the types cannot.
    pub(crate) fn check(&self, role: Role) -> Result<(), PredicateError> {
        if self.role != role {
            return Err(PredicateError {
                member: "document.role",
                problem: format!("must be {role}"),
            });
        }
        require(
            self.occurred_at.0 >= 0,
            "document.occurred_at",
            "before 1970",
        )
    }
}

/// A watched repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its address when the incident was opened; the same in the whole chain, also after a renaming.
    pub uri: Text,
    /// The provider's number of it, as text; a name can be transferred, a number cannot.
    pub repository_id: Label,
}

impl Project {
    /// What stays the same when the repository is renamed: the provider, up to the third slash of the address, and the number.
    pub fn place(&self) -> String {
        let provider: Vec<&str> = self.uri.as_str().splitn(4, '/').take(3).collect();
        format!("{} {}", provider.join("/"), self.repository_id)
    }
}

/// A version of the trust root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TrustRootRef {
    /// Its version.
    pub version: u64,
    /// Its digest.
    pub sha256: Sha256Digest,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// A URI that names it.
    pub id: Text,
    /// Its version.
    pub version: Label,
}

/// Blast radius, ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Code and tests.
    Functional,
    /// Stored data or its schema.
    Data,
    /// Builds, deployments, permissions.
    Infrastructure,
}

/// A document in the evidence store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvidenceRef {
    /// What kind of document it is.
    pub kind: Label,
    /// SHA-256 of its bytes.
    pub sha256: Sha256Digest,
}

/// A change set, by the digest over its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ChangeRef {
    /// How the digest is computed: `caretaker/change-set/v1`.
    pub algorithm: Text,
    /// The repository's object format.
    pub object_format: ObjectFormat,
    /// The change digest.
    pub sha256: Sha256Digest,
    /// Number of entries.
    pub count: u64,
}

/// The one commit of a fix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
}

/// Paths without content, as a diagnosis names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileList {
    /// SHA-256 of the paths, sorted by bytes, each followed by a zero byte.
    pub sha256: Sha256Digest,
    /// Number of paths.
    pub count: u64,
}

/// What a proposal and the decision about it are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// An exact change, committed.
    Commit {
        /// The change set.
        change: ChangeRef,
        /// The commit.
        head: Head,
    },
    /// Files that a diagnosis wants to change; there is no commit yet. Can only be denied.
    Files(FileList),
}

impl Target {
    /// The change set, if there is a commit.
    pub const fn change(&self) -> Option<&ChangeRef> {
        match self {
            Self::Commit { change, .. } => Some(change),
            Self::Files(_) => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), PredicateError> {
        match self {
            Self::Commit { change, head } => {
                require(
                    change.algorithm.as_str() == CHANGE_SET_ALGORITHM,
                    "target.commit.change.algorithm",
                    "not an algorithm of this version",
                )?;
                require(
                    head.commit.format() == change.object_format
                        && head.tree.format() == change.object_format,
                    "target.commit.head",
                    "commit and tree are not of the repository's object format",
                )
            }
            Self::Files(_) => Ok(()),
        }
    }
}
