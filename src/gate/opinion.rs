//! The second opinion: a model's own classification of the same change.

use serde::{Deserialize, Serialize};

use super::Class;

/// What a model said about a change. It can only make the outcome stricter, never milder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// The class the model gave.
    pub class: Class,
    /// The model's name, for the record.
    pub model: String,
}

/// Whether there is a second opinion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondOpinion {
    /// A model answered.
    Given(Opinion),
    /// No model is configured.
    Off,
    /// A model could have been asked and was not (`gate check` calls none), or did not answer usably.
    #[default]
    NotMeasured,
}

/// Which of the two classifications was the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stricter {
    /// The path rules.
    Rule,
    /// The model.
    Model,
    /// They agree, or there is no second opinion.
    Equal,
}
