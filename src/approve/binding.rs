//! What exactly is approved.

use serde::{Deserialize, Serialize};

use crate::change::{ChangeDigest, ChangeDocument, Oid, Sha256Digest};
use crate::clock::Millis;
use crate::gate::MergeMethod;

/// Everything that an approval is for; whatever differs later, the approval does not cover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The provider's own number of the repository, as text; names can be transferred, numbers cannot.
    pub repository_id: String,
    /// Host name of the provider.
    pub host: String,
    /// Pull request number.
    pub pull_request: u64,
    /// Branch that the change lands on, without `refs/heads/`.
    pub base_ref: String,
    /// Merge base of base and head.
    pub merge_base: Oid,
    /// Branch that carries the change.
    pub head_ref: String,
    /// Its one commit.
    pub head_commit: Oid,
    /// That commit's tree.
    pub head_tree: Oid,
    /// The entries, with their count and digest.
    pub change: ChangeDocument,
    /// How it will be merged.
    pub merge_method: MergeMethod,
    /// Title of the landed commit.
    pub title: String,
    /// Body of the landed commit, without the `Caretaker-*` trailers that are appended at the merge.
    pub body: String,
    /// When the approval ceases to count.
    pub expires_at: Millis,
}

impl Binding {
    /// The change digest.
    pub const fn change_digest(&self) -> ChangeDigest {
        self.change.digest
    }

    /// Digest over the whole binding: SHA-256 of its compact JSON, members in declaration order.
    pub fn digest(&self) -> Sha256Digest {
        // Serialising plain structs of text and integers to memory has no failure; an empty text would match nothing.
        Sha256Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }
}
