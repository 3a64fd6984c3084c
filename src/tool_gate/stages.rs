//! The checks that others answer: tokens, profiles, scores, classifiers, people.

use super::call::Call;
use super::failure::Failure;
use crate::receipts::Alignment;

/// What one check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// It has nothing against the call.
    Passed,
    /// It refuses the call, in words for the agent.
    Denied {
        /// The check's own code, for events.
        code: &'static str,
        /// Why.
        reason: String,
    },
    /// It wants a person to answer.
    Asks(String),
    /// It could not look.
    Unavailable {
        /// What failed.
        failure: Failure,
        /// The check's own code for it (`embedder-timeout`), for events.
        code: &'static str,
        /// Why, without anything a provider wrote.
        reason: String,
    },
}

/// What the classifier says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classified {
    /// On its list of what is refused.
    Denied(String),
    /// Harmless.
    Approved,
    /// It does not decide.
    Undecided,
}

/// The checks that others answer, each asked only when those before it had nothing against the call.
///
/// Everything defaults to nothing against it, so that a session has the checks it was given and no others.
pub trait Stages {
    /// The session's capability token: signature, time, tool, constraints, intent.
    fn capability_token(&self, _call: &Call) -> Check {
        Check::Passed
    }

    /// The permission profile of this name, or the default one; one that is closed refuses what it does not name.
    fn permission_profile(&self, _call: &Call, _profile: Option<&str>) -> Check {
        Check::Passed
    }

    /// Patterns of prompts that are refused.
    fn deny_prompts(&self, _call: &Call) -> Check {
        Check::Passed
    }

    /// The score against the intent.
    fn alignment(&self, _call: &Call) -> Check {
        Check::Passed
    }

    /// What the last call was scored with, once [`Stages::alignment`] was asked; for its receipt.
    fn score(&self) -> Option<Alignment> {
        None
    }

    /// The classifier.
    fn classifier(&self, _call: &Call) -> Classified {
        Classified::Undecided
    }

    /// `approvals.smart_auto_approve`: whether what the classifier approves needs no person.
    fn smart_auto_approve(&self) -> bool {
        false
    }

    /// The pattern that always allows this call, if a person left one.
    fn always_allow(&self, _call: &Call) -> Option<String> {
        None
    }

    /// `approvals.interactive`: whether a person is asked about what nothing else settled.
    fn interactive(&self) -> bool {
        false
    }
}

/// No checks of others.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoStages;

impl Stages for NoStages {}
