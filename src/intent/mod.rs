//! Whether an action agrees with what was asked for, as far as two embeddings can tell, and whether a task drifts away from it.
//!
//! - [`Embedding`], [`similarity`], [`Score`]: the cosine of two vectors as a whole number of millionths. A vector that says nothing
//!   (empty, zero, not finite, of another length) has no score.
//! - [`Thresholds`], [`decide`], [`Verdict`], [`Reason`]: allow, warn or deny, and why. What has no score is denied.
//! - [`DriftRule`], [`DriftRing`], [`Transition`]: the trend of a task's scores.
//! - [`action_text`]: what of a tool call is embedded.
//! - [`Calibration`], [`Suggestion`]: what past scores say about where the floors belong.
//!
//! A score measures likeness of words, not harmlessness: an action that is described in the intent's words passes. Paths, tools and
//! commands are what the other gates look at.

mod action;
mod calibration;
mod decision;
mod drift;
mod embedder_id;
mod embedding;
mod observed;
mod score;
mod suggestion;
mod thresholds;

pub use action::{EMBEDDED_BYTES, action_text, embedded_part};
pub use calibration::Calibration;
pub use decision::{Decision, Outage, PromptPlace, Reason, Verdict, decide};
pub use drift::{
    DEFAULT_DRIFT_FLOOR, DriftFault, DriftRing, DriftRule, Severity, Transition, TransitionKind,
};
pub use embedder_id::{EmbedderId, EmbedderIdError};
pub use embedding::{Embedding, VectorFault, similarity};
pub use observed::{LONGEST_LINE, Observed, observed};
pub use score::Score;
pub use suggestion::{FEWEST_SCORES, Suggestion};
pub use thresholds::{NoThresholds, ThresholdFault, ThresholdTable, Thresholds};
