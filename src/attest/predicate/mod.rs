//! What the statements say. Each predicate is a closed shape: unknown and repeated members are refused, free text has
//! at most 500 bytes, lists at most 20 items, and nothing is a float.

mod approval;
mod break_glass;
mod common;
mod context_manifest;
mod decision;
mod enrolment;
mod escalation;
mod execution;
mod gap;
mod gate_outcome;
mod intent_score;
mod policy_version;
mod proposal;
mod test_result;
mod unfreeze;

use thiserror::Error;

pub use approval::{
    Answer, Approval, Approver, BoundChange, IdentityMethod, MergeMethod, TokenUse,
};
pub use break_glass::{BreakGlass, Override, Person};
pub use common::{
    ChangeRef, Class, EventBlock, EvidenceBlock, EvidenceRef, FileList, Head, OrganisationBlock,
    Producer, Project, Target, TrustRootRef,
};
pub use context_manifest::{ContextItem, ContextManifest, TrustClass};
pub use decision::{MatchedRule, PolicyDecision, SecondOpinion, Verdict};
pub use enrolment::{Credential, Enrolment, EnrolmentAction, Voucher};
pub use escalation::{Escalation, EscalationReason};
pub use execution::{AuthorityRef, CheckpointRef, Execution, Landed};
pub use gap::{Gap, GapReason, GoneEvidence};
pub use gate_outcome::{Door, GateAnswer, GateOutcome, GateStage, ReceiptRef};
pub use intent_score::{Embedder, IntentScore, ScoreAnswer, WHOLE_SCORE};
pub use policy_version::PolicyVersion;
pub use proposal::{
    Agent, Base, Diagnosis, Failure, FailureKind, GatedSession, MOST_CALLS, Proposal, ScoreList,
};
pub use test_result::{ResourceDescriptor, TestOutcome, TestResult};
pub use unfreeze::Unfreeze;

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
