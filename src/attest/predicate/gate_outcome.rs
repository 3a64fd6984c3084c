//! `gate-outcome`: what became of one call of a tool. Evidence.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, Text};
use super::{EvidenceBlock, PredicateError, require};
use crate::change::Sha256Digest;

/// Where a call came in. One decision serves all doors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Door {
    /// Our own agent loop.
    Loop,
    /// The hook of a foreign coding program.
    Hook,
    /// The library.
    Library,
}

/// What the gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateAnswer {
    /// The call goes on.
    Allow,
    /// It does not.
    Deny,
}

/// The check that decided, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateStage {
    /// Whether the session is known.
    Session,
    /// The gate's own state, `.git` and hook configuration.
    SelfProtection,
    /// The capability token.
    CapabilityToken,
    /// The permission profile.
    PermissionProfile,
    /// Paths.
    PathPolicy,
    /// Shell commands.
    Shell,
    /// Prompts that are refused by pattern.
    DenyPrompts,
    /// The score against the intent.
    Alignment,
    /// The classifier's list of what is refused.
    ClassifierDeny,
    /// The classifier's approval.
    ClassifierApprove,
    /// A pattern that a person always allows.
    AlwaysAllow,
    /// A person's answer.
    Person,
    /// The end of the session: evidence that must be there, files that may have changed.
    Completion,
    /// No check had anything against it.
    NothingAgainst,
}

/// One call of a tool and what became of it, signed by policy. Its receipt stays as it is and is named by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GateOutcome {
    /// The document.
    pub document: EvidenceBlock,
    /// The gated session.
    pub session: Label,
    /// Number of the call in its session, from 0.
    pub call: u64,
    /// Where it came in.
    pub door: Door,
    /// Whether the session runs outside the sandbox, where an agent could get around the gate.
    pub advisory: bool,
    /// The tool.
    pub tool: Text,
    /// SHA-256 of the call's arguments as they were received.
    pub arguments: DigestRef,
    /// The answer.
    pub answer: GateAnswer,
    /// The check that decided.
    pub stage: GateStage,
    /// Why, in words; always there when the call was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// SHA-256 of the session's policy, as it was when the session began.
    pub policy: DigestRef,
    /// SHA-256 of the capability token that the session holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<DigestRef>,
    /// The receipt; absent when none could be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptRef>,
}

impl GateOutcome {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.answer == GateAnswer::Allow || self.reason.is_some(),
            "reason",
            "a refusal says why",
        )?;
        // What goes on although nobody decided on it must not read as refused, nor the other way round.
        let fits = match self.stage {
            GateStage::ClassifierApprove | GateStage::AlwaysAllow | GateStage::NothingAgainst => {
                self.answer == GateAnswer::Allow
            }
            GateStage::Session | GateStage::Person | GateStage::Completion => true,
            GateStage::SelfProtection
            | GateStage::CapabilityToken
            | GateStage::PermissionProfile
            | GateStage::PathPolicy
            | GateStage::Shell
            | GateStage::DenyPrompts
            | GateStage::Alignment
            | GateStage::ClassifierDeny => self.answer == GateAnswer::Deny,
        };
        require(fits, "stage", "this check does not give this answer")?;
        self.receipt.as_ref().map_or(Ok(()), ReceiptRef::check)
    }
}

/// A receipt and how many there are up to it, so that one that was dropped is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReceiptRef {
    /// SHA-256 of the receipt's compact JWS.
    pub sha256: Sha256Digest,
    /// Number of receipts of the session up to and including this one.
    pub count: u64,
}

impl ReceiptRef {
    pub(super) fn check(&self) -> Result<(), PredicateError> {
        require(
            self.count > 0,
            "receipt.count",
            "counts the receipt itself, so it is at least 1",
        )
    }
}
