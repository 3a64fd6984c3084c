//! Evidence documents.

use super::super::predicate::{
    ContextManifest, EvidenceBlock, GateOutcome, IntentScore, PredicateError, TestResult,
};
use super::super::role::PredicateType;
use super::Subject;

/// An evidence document's predicate: signed, named by digest, without a position in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// What a diagnosis was fed.
    ContextManifest(Box<ContextManifest>),
    /// A test run.
    TestResult(Box<TestResult>),
    /// What became of a call of a tool.
    GateOutcome(Box<GateOutcome>),
    /// How well a call fits the intent.
    IntentScore(Box<IntentScore>),
}

impl Evidence {
    /// Its kind.
    pub const fn predicate_type(&self) -> PredicateType {
        match self {
            Self::ContextManifest(_) => PredicateType::ContextManifest,
            Self::TestResult(_) => PredicateType::TestResult,
            Self::GateOutcome(_) => PredicateType::GateOutcome,
            Self::IntentScore(_) => PredicateType::IntentScore,
        }
    }

    /// What it says about itself; in-toto's test result has no place for that.
    pub fn block(&self) -> Option<&EvidenceBlock> {
        match self {
            Self::ContextManifest(manifest) => Some(&manifest.document),
            Self::GateOutcome(outcome) => Some(&outcome.document),
            Self::IntentScore(score) => Some(&score.document),
            Self::TestResult(_) => None,
        }
    }

    /// The subjects of its statement where they follow from the predicate; none where whoever makes the document says what it
    /// is about.
    pub fn subjects(&self) -> Option<Vec<Subject>> {
        match self {
            Self::GateOutcome(outcome) => {
                let mut subjects = vec![Subject::sha256("arguments", outcome.arguments.sha256)];
                let receipt = outcome.receipt;
                subjects.extend(receipt.map(|receipt| Subject::sha256("receipt", receipt.sha256)));
                Some(subjects)
            }
            Self::IntentScore(score) => Some(vec![
                Subject::sha256("intent", score.intent.sha256),
                Subject::sha256("action", score.action.sha256),
            ]),
            Self::ContextManifest(_) | Self::TestResult(_) => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), PredicateError> {
        let role = self.predicate_type().role();
        self.block().map_or(Ok(()), |block| block.check(role))?;
        match self {
            Self::GateOutcome(outcome) => outcome.check(),
            Self::IntentScore(score) => score.check(),
            Self::ContextManifest(_) | Self::TestResult(_) => Ok(()),
        }
    }
}
