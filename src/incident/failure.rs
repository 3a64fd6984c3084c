//! What was observed, and when two observations are the same incident.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crate::attest::predicate::FailureKind;
use crate::change::Oid;
use crate::id::ProjectId;

impl FailureKind {
    /// The word used in pages and statements.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::NeverStarted => "never-started",
            Self::Timeout => "timeout",
            Self::WorkflowInvalid => "workflow-invalid",
            Self::SilentWorkflow => "silent-workflow",
            Self::Flaky => "flaky",
            Self::Health => "health",
            Self::Unknown => "unknown",
        }
    }

    /// Whether code may be at fault, so that a fix is tried.
    pub const fn may_be_code(self) -> bool {
        matches!(self, Self::Code)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Observed evidence: one failed job of one attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Its cause.
    pub kind: FailureKind,
    /// Provider's number of the workflow.
    pub workflow_id: u64,
    /// Name of the workflow.
    pub workflow: Option<String>,
    /// What triggered the run, e.g. `push`.
    pub scope: String,
    /// Branch it ran on.
    pub base_ref: String,
    /// Name of the failed job; none when the run had no jobs.
    pub job: Option<String>,
    /// Provider's number of that attempt of the job.
    pub job_id: Option<u64>,
    /// Provider's number of the run.
    pub run_id: u64,
    /// Attempt, from 1.
    pub attempt: u64,
    /// Commit at which it failed.
    pub commit: Oid,
    /// Page of the run.
    pub url: Option<String>,
    /// What was seen, in words, where the numbers do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Failure {
    /// The key under which observations belong to one incident.
    pub fn key(&self, project: &ProjectId) -> String {
        incident_key(
            project,
            self.workflow_id,
            &self.scope,
            &self.base_ref,
            self.job.as_deref(),
        )
    }
}

/// The key under which observations, failed or not, belong together: project, workflow, scope, base branch, job.
pub fn incident_key(
    project: &ProjectId,
    workflow_id: u64,
    scope: &str,
    base_ref: &str,
    job: Option<&str>,
) -> String {
    let job = job.unwrap_or("-");
    format!("{project}/{workflow_id}/{scope}/{base_ref}/{job}")
}
