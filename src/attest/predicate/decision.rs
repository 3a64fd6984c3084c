//! `policy-decision`: what the rules decided about a proposal.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, List, Text};
use super::{Class, EventBlock, PredicateError, Target, require};

/// What the rules decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It must not happen.
    Deny,
    /// It needs a person's approval.
    Approve,
    /// It needs none.
    Free,
}

/// A decision, signed by policy. The rules themselves are named by `event.policy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    /// The event.
    pub event: EventBlock,
    /// Digest of the proposal.
    pub proposal: DigestRef,
    /// The proposal's target, repeated so that the decision names its subject itself.
    pub target: Target,
    /// The decision.
    pub verdict: Verdict,
    /// Whether it ends the chain; only a denial can.
    pub terminal: bool,
    /// The blast radius.
    pub class: Class,
    /// The rules that matched.
    pub rules: List<MatchedRule>,
    /// Why, in words.
    pub reasons: List<Text>,
    /// The second opinion, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<SecondOpinion>,
}

impl PolicyDecision {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        self.target.check()?;
        let denied = self.verdict == Verdict::Deny;
        require(
            denied || !self.terminal,
            "terminal",
            "only a denial ends the chain",
        )?;
        require(
            denied || self.target.change().is_some(),
            "target",
            "files without a commit can only be denied",
        )?;
        require(
            self.verdict != Verdict::Free || self.class == Class::Functional,
            "verdict",
            "only a functional change is free",
        )
    }
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MatchedRule {
    /// The rule's name.
    pub id: Text,
    /// The path it matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// Its pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Text>,
}

/// What a model said about the blast radius.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SecondOpinion {
    /// The adapter.
    pub id: Label,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// Its class; absent when it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// SHA-256 of its whole answer.
    pub answer: DigestRef,
}
