//! What a person is asked, and what they answered.

use serde::{Deserialize, Serialize};

use super::{ApprovalToken, Binding, Principal, TokenHash};
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
    /// In the records of older versions the nonce itself. Whoever reads it could answer again, were the link made new in the
    /// database: such a record shows nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
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
    /// What shows that all of this was written down by who held the link: a code over the rest, by a key that follows from the
    /// nonce. The nonce itself is kept nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Sha256Digest>,
}

impl Consumption {
    /// The record, sealed by the link that was used.
    #[must_use]
    pub fn sealed_by(self, token: &ApprovalToken) -> Self {
        let seal = Some(self.seal_of(token));
        Self { seal, ..self }
    }

    /// Whether it is as it was written down when this link was used.
    pub fn is_sealed_by(&self, token: &ApprovalToken) -> bool {
        // Break it: answer whether the token is the link's; who writes the database then turns a rejection into an approval
        // (`worker::tampering::a_rejection_turned_into_an_approval_in_the_database_is_not_signed`).
        self.seal == Some(self.seal_of(token))
    }

    fn seal_of(&self, token: &ApprovalToken) -> Sha256Digest {
        let unsealed = Self {
            seal: None,
            ..self.clone()
        };
        token.code("caretaker/answer/v1", &unsealed.to_bytes())
    }

    /// The compact JSON that is kept as evidence.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// SHA-256 of [`Self::to_bytes`].
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }
}
