//! The port to whatever diagnoses and fixes, and what it is fed.
//!
//! A coder never sees log text: it gets an [`Extraction`], typed facts of which every string stands verbatim in the log, and
//! it works in a scratch tree inside the sandbox.

pub mod builtin;
pub mod client;
mod command;
mod extraction;
pub mod model;
pub mod reader;
mod scripted;
mod session;

pub use command::{CommandCoder, ProgramError};
pub use extraction::{ExtractedFact, Extraction};
pub use scripted::{Edit, Script, ScriptedCoder, When};
pub use session::{
    AgentSession, GatedTool, Governance, Permission, SessionReport, ToolAccess, ToolGuard,
};

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::change::RepoPath;
use crate::id::IncidentId;

/// Who a coder is, for the signed proposal and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDescription {
    /// Stable name of the adapter, e.g. `scripted` or `command`.
    pub id: String,
    /// The model or program behind it.
    pub model: Option<String>,
    /// One sentence for people; a scripted coder says here that it is scripted.
    pub remark: String,
}

/// The failure as a coder sees it. Protocol: `interfaces.md`, `agent.adapter: command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureBrief {
    /// Cause of the failure, e.g. `code`.
    pub kind: String,
    /// Workflow name.
    pub workflow: Option<String>,
    /// Job name.
    pub job: Option<String>,
    /// Commit at which it failed.
    pub commit: String,
    /// Page of the run.
    pub url: Option<String>,
}

/// What a coder is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoderTask {
    /// The incident.
    pub incident: IncidentId,
    /// The failure.
    pub failure: FailureBrief,
    /// Typed facts from the log.
    pub extraction: Vec<ExtractedFact>,
    /// The project's intent document.
    pub intent: String,
    /// Tracked paths at that commit; names that are not UTF-8 are left out.
    pub files: Vec<String>,
    /// The diagnosis, when a fix is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
}

/// What a coder found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The cause, at most 500 bytes.
    pub cause: String,
    /// Files it intends to change, in any order, at least one, at most 100.
    pub files: Vec<RepoPath>,
    /// 0 to 1000.
    pub confidence: u16,
    /// One paragraph for people, at most 500 bytes.
    pub summary: String,
}

/// What a coder says of its fix; what it did is read from the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixSummary {
    /// Title of the pull request and of the landed commit, at most 72 characters, one line.
    pub title: String,
    /// What was changed and why, at most 2,000 bytes.
    pub summary: String,
}

/// Why a coder gave no answer. Each is a named outcome of the incident.
#[derive(Debug, thiserror::Error)]
pub enum CoderError {
    /// The program could not be run at all.
    #[error("running the coder {coder}: {reason}")]
    Unavailable {
        /// Which one.
        coder: String,
        /// Why, and the mend.
        reason: String,
    },
    /// It ran and reported failure.
    #[error("the coder {coder} ended with {status} while it was asked to {task}: {stderr}")]
    Failed {
        /// Which one.
        coder: String,
        /// `diagnose` or `fix`.
        task: &'static str,
        /// Exit status in words.
        status: String,
        /// The end of what it wrote to standard error, printable, at most 500 bytes.
        stderr: String,
    },
    /// It answered with something that is not the protocol's JSON.
    #[error("the coder {coder} answered to {task} with something unusable: {reason}")]
    Answer {
        /// Which one.
        coder: String,
        /// `diagnose` or `fix`.
        task: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// Diagnoses and fixes in a scratch tree that it may write.
#[async_trait]
pub trait Coder: Send + Sync {
    /// Who it is.
    fn describe(&self) -> AgentDescription;

    /// How its calls of tools are governed. One that is gated is given a session for each task.
    fn governance(&self) -> Governance {
        Governance::Confined
    }

    /// Calls of tools that the gate lets it make in one task; those beyond are refused. `None` for one that counts by itself.
    fn most_calls(&self) -> Option<u64> {
        None
    }

    /// Finds the cause; must not change the tree.
    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError>;

    /// Edits the tree.
    async fn fix(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError>;
}
