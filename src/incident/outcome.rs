//! What a step gives back. Only the worker's commit writes it down.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{EscalationReason, Fact};
use crate::approve::TokenHash;
use crate::attest::Role;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::ApprovalId;
use crate::reconcile::Difference;

/// An unsigned statement. It is committed before it is signed, so that after a crash the identical bytes are signed again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its number in the chain.
    pub seq: u64,
    /// Who signs it.
    pub role: Role,
    /// The statement's exact bytes.
    pub statement: Vec<u8>,
    /// SHA-256 of its PAE.
    pub pae: Sha256Digest,
}

/// A signed statement, ready to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedEnvelope {
    /// Its number in the chain.
    pub seq: u64,
    /// The stored serialisation.
    pub envelope: Vec<u8>,
}

/// A document kept by digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceDocument {
    /// What it is, e.g. `application/vnd.dsse+json`.
    pub media_type: &'static str,
    /// The bytes; the key is their SHA-256.
    pub bytes: Vec<u8>,
}

impl EvidenceDocument {
    /// The key in the evidence store.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.bytes)
    }
}

/// A new approval link, of which only the hash is stored. Older ones of the incident are revoked in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLink {
    /// The link.
    pub approval: ApprovalId,
    /// Hash of its nonce.
    pub token: TokenHash,
    /// Digest of the request it is for.
    pub request: Sha256Digest,
    /// Who is asked.
    pub principal: crate::approve::Principal,
    /// When it was made.
    pub issued_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
}

/// Merges are one at a time per project and base branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeLock {
    /// Take it; when another incident holds it, nothing is committed and the step is tried again.
    Take,
    /// Give it back.
    Release,
}

/// What people are told about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeEvent {
    /// A person is asked; carries the link.
    ApprovalRequested,
    /// A failure became an incident.
    IncidentOpened,
    /// Policy refused the change.
    IncidentBlocked,
    /// A person must look.
    IncidentEscalated,
    /// Merged and proven.
    IncidentResolved,
    /// Ended without a merge.
    IncidentClosed,
    /// Anything else worth a message.
    Notice,
}

/// A message that waits for delivery in the store. Approval links never do: their nonce is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happened.
    pub event: NoticeEvent,
    /// In words.
    pub text: String,
}

/// Something that the history must show although it is neither a fact nor a signed event, e.g. that signing failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// What happened, kebab-case.
    pub kind: &'static str,
    /// In words, without secrets.
    pub detail: String,
}

/// Why an incident rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When to look again.
    pub until: Millis,
    /// What for, in words: shown by `incident explain`.
    pub reason: String,
}

/// Everything a step wants written, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// New facts, in order.
    pub facts: Vec<Fact>,
    /// New unsigned statements, numbered on from the snapshot's.
    pub drafts: Vec<Draft>,
    /// A signed statement to append.
    pub envelope: Option<SignedEnvelope>,
    /// Documents for the evidence store.
    pub evidence: Vec<EvidenceDocument>,
    /// A new approval link.
    pub link: Option<NewLink>,
    /// Taking or giving back the project's merge lock.
    pub merge_lock: Option<MergeLock>,
    /// Freezes the project, with this reason.
    pub freeze: Option<String>,
    /// Messages to deliver.
    pub notices: Vec<Notice>,
    /// Events for the history.
    pub audit: Vec<AuditEvent>,
    /// When to look again, if not at once.
    pub pause: Option<Pause>,
}

impl Outcome {
    /// Just one fact.
    pub fn fact(fact: Fact) -> Self {
        Self {
            facts: vec![fact],
            ..Self::default()
        }
    }

    /// Just a rest.
    pub fn pause(until: Millis, reason: impl Into<String>) -> Self {
        Self {
            pause: Some(Pause {
                until,
                reason: reason.into(),
            }),
            ..Self::default()
        }
    }
}

/// Why a step gave nothing to write. Retries are counted and spaced by the worker alone.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// May succeed later.
    #[error("{reason}")]
    Retry {
        /// At least this long.
        after: Duration,
        /// Why it failed.
        reason: String,
    },
    /// A person must look.
    #[error("{}: {detail}", reason.as_str())]
    Escalate {
        /// Why.
        reason: EscalationReason,
        /// In words.
        detail: String,
        /// What differed, when something was compared.
        differences: Vec<Difference>,
    },
}

impl StepError {
    /// Another attempt, at least this much later.
    pub fn retry(after: Duration, reason: impl std::fmt::Display) -> Self {
        Self::Retry {
            after,
            reason: reason.to_string(),
        }
    }

    /// An escalation without a comparison.
    pub fn escalate(reason: EscalationReason, detail: impl Into<String>) -> Self {
        Self::Escalate {
            reason,
            detail: detail.into(),
            differences: Vec::new(),
        }
    }
}
