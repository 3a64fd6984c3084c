//! The floors that scores are compared with.

use std::collections::BTreeMap;

use super::embedder_id::EmbedderId;
use super::score::Score;

/// Why two numbers are no thresholds. The words are those that operators of such checks know.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ThresholdFault {
    /// The soft one is no cosine.
    #[error("intent_alignment: threshold {0:.3} outside [-1,1]")]
    Soft(f64),
    /// The hard one is no cosine.
    #[error("intent_alignment: hard_threshold {0:.3} outside [-1,1]")]
    Hard(f64),
    /// Nothing would ever be warned of.
    #[error(
        "intent_alignment: hard_threshold {hard:.3} > threshold {soft:.3} (would starve WARN tier)"
    )]
    Starved {
        /// The hard one.
        hard: f64,
        /// The soft one.
        soft: f64,
    },
}

/// Below the soft threshold an action is warned of, below the hard one it is denied. Both may be any cosine, 0 and -1 too: a hard
/// threshold of -1 never denies a score. Equal ones leave no room for warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    soft: Score,
    hard: Score,
}

impl Thresholds {
    /// The seed's defaults, found with `OpenAI`'s `text-embedding-3-small` on English prose.
    pub const DEFAULT: (f64, f64) = (0.5, 0.3);

    /// Takes both, as cosines. They are kept in millionths, like scores.
    ///
    /// # Errors
    /// One is outside -1 to 1 or NaN, or the hard one is above the soft one.
    pub fn new(soft: f64, hard: f64) -> Result<Self, ThresholdFault> {
        // NaN is in no range.
        // Break it: ask for `soft < -1.0 || soft > 1.0` instead; NaN then passes, and nothing is below it
        // (`intent::thresholds::nan_is_no_threshold`).
        let within = |cosine: f64| (-1.0..=1.0).contains(&cosine);
        let micro = |cosine: f64| Score::from_cosine(cosine).filter(|_| within(cosine));
        let soft_score = micro(soft).ok_or(ThresholdFault::Soft(soft))?;
        let hard_score = micro(hard).ok_or(ThresholdFault::Hard(hard))?;
        if hard > soft {
            return Err(ThresholdFault::Starved { hard, soft });
        }
        Ok(Self {
            soft: soft_score,
            hard: hard_score,
        })
    }

    /// Below this: warn.
    pub const fn soft(self) -> Score {
        self.soft
    }

    /// Below this: deny.
    pub const fn hard(self) -> Score {
        self.hard
    }
}

/// An embedder has no thresholds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "intent_alignment: no thresholds for embedder {0}: scores of one embedder mean nothing to another; set threshold and hard_threshold, or an entry under thresholds (`caretaker intent calibrate` suggests them)"
)]
pub struct NoThresholds(pub EmbedderId);

/// Thresholds by embedder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThresholdTable(BTreeMap<EmbedderId, Thresholds>);

impl ThresholdTable {
    /// A table with these entries; a later entry for the same embedder replaces an earlier one.
    pub fn new(entries: impl IntoIterator<Item = (EmbedderId, Thresholds)>) -> Self {
        Self(entries.into_iter().collect())
    }

    /// The thresholds of an embedder; nobody else's will do.
    ///
    /// # Errors
    /// It has none.
    pub fn of(&self, embedder: &EmbedderId) -> Result<Thresholds, NoThresholds> {
        // Break it: answer with the first entry that is there
        // (`intent::thresholds::thresholds_of_one_embedder_are_not_those_of_another`).
        let found = self.0.get(embedder).copied();
        found.ok_or_else(|| NoThresholds(embedder.clone()))
    }
}
