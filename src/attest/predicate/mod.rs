//! What the statements say. Each predicate is a closed shape: unknown and repeated members are refused, free text has
//! at most 500 bytes, lists at most 20 items, and nothing is a float.

mod approval;
mod common;
mod context_manifest;
mod decision;
mod escalation;
mod execution;
mod gap;
mod proposal;
mod test_result;

use thiserror::Error;

pub use approval::{
    Answer, Approval, Approver, BoundChange, IdentityMethod, MergeMethod, TokenUse,
};
pub use common::{
    ChangeRef, Class, EventBlock, EvidenceBlock, EvidenceRef, FileList, Head, Producer, Project,
    Target, TrustRootRef,
};
pub use context_manifest::{ContextItem, ContextManifest, TrustClass};
pub use decision::{MatchedRule, PolicyDecision, SecondOpinion, Verdict};
pub use escalation::{Escalation, EscalationReason};
pub use execution::{AuthorityRef, CheckpointRef, Execution, Landed};
pub use gap::Gap;
pub use proposal::{Agent, Base, Diagnosis, Failure, FailureKind, Proposal};
pub use test_result::{ResourceDescriptor, TestOutcome, TestResult};

/// A predicate that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{member}: {problem}")]
pub struct PredicateError {
    /// The member, with dots between levels.
    pub member: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// `Ok` if `holds`, else that `member` has a `problem`.
fn require(holds: bool, member: &'static str, problem: &str) -> Result<(), PredicateError> {
    if holds {
        Ok(())
    } else {
        Err(PredicateError {
            member,
            problem: problem.to_owned(),
        })
    }
}
