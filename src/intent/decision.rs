//! The decision about one action, and its words.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::embedding::VectorFault;
use super::score::Score;
use super::thresholds::Thresholds;

/// What becomes of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It goes ahead.
    Allow,
    /// It goes ahead, and people are told.
    Warn,
    /// It does not go ahead.
    Deny,
}

impl Decision {
    /// The word in events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }
}

/// How an embedder failed, as far as that may stand in an audit stream: a class, never what the provider said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outage {
    /// Nothing answers.
    Unreachable,
    /// No answer in time.
    Deadline,
    /// Too many requests (status 429).
    RateLimited,
    /// Another status of the 400s: a wrong key, a wrong model, a text that is too long.
    Refused,
    /// A status of the 500s.
    Failing,
    /// A redirect, or another status that is no answer.
    Redirected,
    /// More bytes than any answer has.
    Oversized,
    /// Not the form of an answer.
    Malformed,
    /// Not as many vectors as texts, or not theirs.
    Count,
    /// Vectors of another length than before.
    Dimension,
    /// NaN, infinite, or null among the numbers.
    NonFinite,
    /// The weights cannot be used.
    Weights,
}

impl Outage {
    /// A short name that does not change.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unreachable => "embedder-unreachable",
            Self::Deadline => "embedder-deadline",
            Self::RateLimited => "embedder-rate-limited",
            Self::Refused => "embedder-refused",
            Self::Failing => "embedder-failing",
            Self::Redirected => "embedder-redirected",
            Self::Oversized => "embedder-oversized",
            Self::Malformed => "embedder-malformed",
            Self::Count => "embedder-count",
            Self::Dimension => "embedder-dimension",
            Self::NonFinite => "embedder-non-finite",
            Self::Weights => "embedder-weights",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Deadline => "no answer in time",
            Self::RateLimited => "status 429",
            Self::Refused => "status 4xx",
            Self::Failing => "status 5xx",
            Self::Redirected => "unexpected status",
            Self::Oversized => "answer too large",
            Self::Malformed => "answer malformed",
            Self::Count => "answer of another count",
            Self::Dimension => "answer of another dimension",
            Self::NonFinite => "answer not finite",
            Self::Weights => "weights unusable",
        }
    }
}

/// Where a refused pattern was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPlace {
    /// In what was asked for.
    Intent,
    /// In the tool call.
    Action,
}

/// Why a decision is what it is. [`Reason::code`] is for programs, the words are for people; neither holds anything that a model, a
/// user or a provider wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The score is not below the soft threshold.
    Above {
        /// The score.
        score: Score,
        /// The soft threshold.
        floor: Score,
    },
    /// The score is below the soft threshold, and not below the hard one.
    Below {
        /// The score.
        score: Score,
        /// The soft threshold.
        floor: Score,
    },
    /// The score is below the hard threshold.
    BelowHard {
        /// The score.
        score: Score,
        /// The hard threshold.
        floor: Score,
    },
    /// Nobody said what the task is for, or the task has ended.
    NoIntent,
    /// There is no vector.
    Unavailable(Outage),
    /// There is a vector, and it says nothing.
    Vector(VectorFault),
    /// A pattern under `deny_prompts` matches; they are numbered from 1 in their order.
    DenyPrompt {
        /// What it matches.
        place: PromptPlace,
        /// Its number.
        pattern: usize,
    },
    /// The tool is named under `exempt`.
    Exempt,
    /// Alignment is off; only `deny_prompts` are looked at.
    Disabled,
    /// The decision could not be put on record.
    Unrecorded,
}

impl Reason {
    /// A short name that does not change.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Above { .. } => "above-threshold",
            Self::Below { .. } => "below-threshold",
            Self::BelowHard { .. } => "below-hard-threshold",
            Self::NoIntent => "no-stated-intent",
            Self::Unavailable(outage) => outage.code(),
            Self::Vector(fault) => fault.code(),
            Self::DenyPrompt { .. } => "deny-prompt",
            Self::Exempt => "exempt",
            Self::Disabled => "disabled",
            Self::Unrecorded => "unrecorded",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Above { score, floor } => write!(f, "score {score} above threshold {floor}"),
            Self::Below { score, floor } => write!(f, "score {score} below threshold {floor}"),
            Self::BelowHard { score, floor } => {
                write!(f, "score {score} below hard_threshold {floor}")
            }
            Self::NoIntent => f.write_str("no stated_intent registered for task (fail-closed)"),
            Self::Unavailable(outage) => {
                write!(f, "embedder unavailable (fail-closed): {}", outage.words())
            }
            Self::Vector(fault) => write!(f, "{fault} (fail-closed)"),
            Self::DenyPrompt { place, pattern } => {
                let place = match place {
                    PromptPlace::Intent => "stated_intent",
                    PromptPlace::Action => "action",
                };
                write!(f, "{place} matches deny_prompts pattern {pattern}")
            }
            Self::Exempt => f.write_str("tool exempt from scoring"),
            Self::Disabled => f.write_str("intent_alignment disabled"),
            Self::Unrecorded => f.write_str("audit stream unavailable (fail-closed)"),
        }
    }
}

/// A decision with its score, where there is one, and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// What becomes of the action.
    pub decision: Decision,
    /// How alike intent and action are.
    pub score: Option<Score>,
    /// Why.
    pub reason: Reason,
}

impl Verdict {
    /// A denial without a score.
    pub const fn denied(reason: Reason) -> Self {
        Self {
            decision: Decision::Deny,
            score: None,
            reason,
        }
    }

    /// A permission without a score.
    pub const fn unscored(reason: Reason) -> Self {
        Self {
            decision: Decision::Allow,
            score: None,
            reason,
        }
    }
}

/// Decides on a score, or on why there is none. Whatever is exactly at a threshold is above it.
pub fn decide(scored: Result<Score, Reason>, thresholds: Thresholds) -> Verdict {
    let score = match scored {
        Ok(score) => score,
        // Break it: allow what has no score; an outage of the embedder then opens the gate
        // (`intent::decisions::whatever_has_no_score_is_denied`).
        Err(reason) => return Verdict::denied(reason),
    };
    let (hard, soft) = (thresholds.hard(), thresholds.soft());
    let (decision, reason) = if score < hard {
        (Decision::Deny, Reason::BelowHard { score, floor: hard })
    } else if score < soft {
        (Decision::Warn, Reason::Below { score, floor: soft })
    } else {
        (Decision::Allow, Reason::Above { score, floor: soft })
    };
    Verdict {
        decision,
        score: Some(score),
        reason,
    }
}
