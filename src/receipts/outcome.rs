//! What a receipt says about one decision of a gate.

use std::fmt;
use std::sync::Arc;

use super::intent::Intent;
use super::name::TokenId;
use crate::attest::json::Json;
use crate::attest::{Label, Text};
use crate::change::Sha256Digest;

/// What a gate decided. There is no third word on the wire: who was asked answered one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Allow,
    /// It may not.
    Deny,
}

impl Decision {
    /// The word in receipts and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "ALLOW",
            Self::Deny => "DENY",
        }
    }

    /// The verdict that the published format has for it.
    pub(super) const fn verdict(self) -> &'static str {
        match self {
            Self::Allow => "CLEAN",
            Self::Deny => "MALICIOUS",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// By which way the call came to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Our own agent loop.
    Loop,
    /// `caretaker hook-gate check`.
    HookGate,
    /// The library.
    Library,
    /// `caretaker token check`.
    TokenCheck,
}

impl Door {
    /// The word in receipts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::HookGate => "hook-gate",
            Self::Library => "library",
            Self::TokenCheck => "token-check",
        }
    }
}

/// How well a call fitted the stated intent, as measured. Receipts hold no fractions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// The score in millionths; none where there was nothing to measure, or no sound measure.
    pub score_micro: Option<i64>,
    /// What embedded the texts.
    pub embedder: Label,
    /// Numbers in one of its vectors; 0 while that is not known.
    pub dimensions: u64,
    /// SHA-256 of the intent's text.
    pub intent: Sha256Digest,
    /// SHA-256 of the action's text.
    pub action: Sha256Digest,
    /// From here up a call is fine, in millionths.
    pub threshold_micro: i64,
    /// Below this a call is refused, in millionths.
    pub hard_threshold_micro: i64,
    /// What the score led to, in words.
    pub reason: Text,
}

/// The intent that was in force, and what of the call it is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Exactly as approved.
    pub intent: Arc<Intent>,
    /// The values of those arguments that the intent constrains, and of no others: an object.
    pub disclosed: Json<'static>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was decided.
    pub decision: Decision,
    /// The stage that denied, or that allowed what waited.
    pub stage: Option<Label>,
    /// Why, for people.
    pub reason: Text,
    /// The tool that was called, as it was called.
    pub tool: String,
    /// Who called, as it named itself; empty where nobody did.
    pub agent: String,
    /// The digest of the call's arguments.
    pub input: Sha256Digest,
    /// The digest of the rules that were asked: of the token's signed body, where there is one.
    pub ruleset: Sha256Digest,
    /// The token that was presented and whose signature held.
    pub token: Option<TokenId>,
    /// The intent, where one was in force.
    pub intent: Option<InForce>,
    /// The score, where the call was scored.
    pub alignment: Option<Alignment>,
}
