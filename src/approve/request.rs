//! What a person is asked, and what they answered.

use serde::{Deserialize, Serialize};

use super::{Binding, Principal, TokenHash};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::ApprovalId;

/// The question put to one named person, fixed before anyone is asked. Its digest is what the answer refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// The exact change.
    pub binding: Binding,
    /// SHA-256 of the proposal's PAE.
    pub proposal: Sha256Digest,
    /// SHA-256 of the policy decision's PAE.
    pub decision: Sha256Digest,
    /// Who is asked.
    pub principal: Principal,
}

impl ApprovalRequest {
    /// The compact JSON that is kept as evidence.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// SHA-256 of [`Self::to_bytes`].
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HumanDecision {
    /// Merge exactly this.
    Approve,
    /// Do not.
    Reject,
}

impl HumanDecision {
    /// The word used in forms and statements.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// The record that a link was used: evidence for the approver's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumption {
    /// Digest of the request that the link was for.
    pub request: Sha256Digest,
    /// Which link.
    pub approval: ApprovalId,
    /// Hash of the link's nonce.
    pub token: TokenHash,
    /// The nonce itself, as it stood in the link: spent, and so no secret any more, but proof that the link was held.
    pub nonce: String,
    /// When the link was made.
    pub issued_at: Millis,
    /// When it would have expired.
    pub expires_at: Millis,
    /// When it was used; before `expires_at`.
    pub consumed_at: Millis,
    /// The answer.
    pub decision: HumanDecision,
    /// Who was asked, and by possession of the link is taken to have answered.
    pub principal: Principal,
    /// A remark of at most 500 bytes.
    pub comment: Option<String>,
}

impl Consumption {
    /// The compact JSON that is kept as evidence.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// SHA-256 of [`Self::to_bytes`].
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }
}
