//! `approval`: a person's answer about one exact change.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, List, Text};
use super::{EventBlock, EvidenceRef, PredicateError, require};
use crate::change::{Oid, Sha256Digest};
use crate::clock::Millis;

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Merge exactly this.
    Approve,
    /// Do not.
    Reject,
}

/// How a change lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum MergeMethod {
    /// A merge commit with the head as second parent.
    Merge,
    /// One new commit on the base.
    Squash,
    /// The one commit, replayed on the base.
    Rebase,
}

/// How the person was recognised, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdentityMethod {
    /// Whoever had the one-time link.
    Link,
    /// A GitHub session.
    Github,
    /// An ID token of an identity provider.
    Oidc,
    /// A passkey.
    Passkey,
    /// An SSH signature.
    Ssh,
}

/// An approval or a rejection, signed by the approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The event.
    pub event: EventBlock,
    /// The answer.
    pub answer: Answer,
    /// What it is about.
    pub binding: BoundChange,
    /// SHA-256 of the request that was put to the person.
    pub request: DigestRef,
    /// Digest of the proposal.
    pub proposal: DigestRef,
    /// Digest of the policy decision.
    pub decision: DigestRef,
    /// Who answered.
    pub approver: Approver,
    /// How the person was recognised.
    pub method: IdentityMethod,
    /// What shows it.
    pub evidence: List<EvidenceRef>,
    /// The one-time link.
    pub token: TokenUse,
    /// The person's remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<Text>,
}

impl Approval {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        let token = &self.token;
        require(
            token.issued_at <= token.consumed_at && token.consumed_at < token.expires_at,
            "token.consumed_at",
            "the link was not used between its making and its expiry",
        )?;
        require(
            self.answer == Answer::Reject || token.consumed_at < self.binding.expires_at,
            "binding.expires_at",
            "the approval had ceased to count when it was given",
        )?;
        let format = self.binding.head_commit.format();
        require(
            self.binding.head_tree.format() == format && self.binding.merge_base.format() == format,
            "binding",
            "commits and tree are of different object formats",
        )
    }
}

/// Everything that the answer is for; whatever differs later, it does not cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BoundChange {
    /// The provider's number of the repository, as text.
    pub repository_id: Label,
    /// Host name of the provider.
    pub host: Label,
    /// Pull request number.
    pub pull_request: u64,
    /// Branch that the change lands on, without `refs/heads/`.
    pub base_ref: Text,
    /// Merge base of base and head.
    pub merge_base: Oid,
    /// Branch that carries the change.
    pub head_ref: Text,
    /// Its one commit.
    pub head_commit: Oid,
    /// That commit's tree.
    pub head_tree: Oid,
    /// Number of entries of the change set.
    pub count: u64,
    /// The change digest.
    pub change: DigestRef,
    /// How it lands.
    pub merge_method: MergeMethod,
    /// SHA-256 of the landed commit's title.
    pub title: DigestRef,
    /// SHA-256 of the landed commit's body, without `Caretaker-*` trailers.
    pub body: DigestRef,
    /// When the answer ceases to count.
    pub expires_at: Millis,
    /// SHA-256 of the whole binding document, as it was put to the person.
    pub sha256: Sha256Digest,
}

/// Who answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The principal: `mailto:…`, `github:…`, `oidc:…`, `local:…`.
    pub principal: Text,
}

/// The use of a one-time link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenUse {
    /// SHA-256 of the link's nonce.
    pub sha256: Sha256Digest,
    /// When it was made.
    pub issued_at: Millis,
    /// When it would have expired.
    pub expires_at: Millis,
    /// When it was used.
    pub consumed_at: Millis,
}
