//! `intent-score`: how well a call fits the intent. Evidence.

use serde::{Deserialize, Serialize};

use super::super::digest::DigestRef;
use super::super::text::{Label, Text};
use super::gate_outcome::ReceiptRef;
use super::{EvidenceBlock, PredicateError, require};

/// A cosine of 1, in millionths.
pub const WHOLE_SCORE: i64 = 1_000_000;

/// What a score leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ScoreAnswer {
    /// The call goes on.
    Allow,
    /// It goes on and is noted.
    Warn,
    /// It does not.
    Deny,
}

impl ScoreAnswer {
    /// What a score leads to, all in millionths. Nothing that could not be measured goes on.
    pub const fn of(score: Option<i64>, threshold: i64, hard_threshold: i64) -> Self {
        match score {
            None => Self::Deny,
            Some(score) if score < hard_threshold => Self::Deny,
            Some(score) if score < threshold => Self::Warn,
            Some(_) => Self::Allow,
        }
    }
}

/// A score of one call against the intent, signed by policy. Scores are integers: a float is not the same to every reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IntentScore {
    /// The document.
    pub document: EvidenceBlock,
    /// The session.
    pub session: Label,
    /// Number of the call in its session, from 0.
    pub call: u64,
    /// SHA-256 of the intent's text.
    pub intent: DigestRef,
    /// SHA-256 of the action's text, as it was scored.
    pub action: DigestRef,
    /// What turned texts into vectors.
    pub embedder: Embedder,
    /// The cosine in millionths, from -1000000 to 1000000; absent when there was none (no vector, or not a sound one).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_micro: Option<i64>,
    /// From here up a call is fine, in millionths.
    pub threshold_micro: i64,
    /// Below this a call is refused, in millionths.
    pub hard_threshold_micro: i64,
    /// What follows.
    pub answer: ScoreAnswer,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// The call's receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptRef>,
}

impl IntentScore {
    pub(crate) fn check(&self) -> Result<(), PredicateError> {
        let sound = |score: i64| (-WHOLE_SCORE..=WHOLE_SCORE).contains(&score);
        require(
            self.score_micro.is_none_or(sound),
            "score_micro",
            "not a cosine in millionths",
        )?;
        require(
            sound(self.threshold_micro),
            "threshold_micro",
            "not a cosine in millionths",
        )?;
        require(
            sound(self.hard_threshold_micro) && self.hard_threshold_micro <= self.threshold_micro,
            "hard_threshold_micro",
            "not a cosine in millionths, or above threshold_micro",
        )?;
        // Break it: answer `Ok(())` from here on; `attest::predicates::a_score_answers_what_its_thresholds_say` then fails.
        let expected = ScoreAnswer::of(
            self.score_micro,
            self.threshold_micro,
            self.hard_threshold_micro,
        );
        require(
            self.answer == expected,
            "answer",
            "not what the score and its thresholds lead to",
        )?;
        self.receipt.as_ref().map_or(Ok(()), ReceiptRef::check)
    }
}

/// What turns texts into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Embedder {
    /// The adapter.
    pub id: Label,
    /// The model.
    pub model: Text,
    /// Numbers in a vector; 0 while that is not known.
    pub dimensions: u64,
    /// SHA-256 of the model's weights, where they are ours to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<DigestRef>,
}
