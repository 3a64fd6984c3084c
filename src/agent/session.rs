//! What a coder that calls tools is given: a gate to ask before each call, and a place to say what it did.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::incident::Money;

/// How a coder's own calls of tools are governed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Governance {
    /// It has no tools that could be asked about: the sandbox and the gate on its diff are all that holds it.
    Confined,
    /// Each call of one of these tools goes through the gate before it is made; there are no others.
    Gated(Vec<GatedTool>),
}

/// A tool that a coder may be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatedTool {
    /// Its name, as the call spells it.
    pub name: String,
    /// What it can do.
    pub access: ToolAccess,
}

/// What a tool can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolAccess {
    /// It only looks.
    Reads,
    /// It changes files. Where one argument names the file as the repository does, that argument is bound to the allowed paths.
    Writes {
        /// The argument.
        path: Option<&'static str>,
    },
    /// It runs programs.
    Executes,
}

/// What the gate says before a call, or before the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It may be made.
    Granted,
    /// It must not be made; the reason is for the agent.
    Refused(String),
}

/// The gate of one session.
#[async_trait]
pub trait ToolGuard: Send + Sync {
    /// Whether a call may be made. Waits where a person is asked. What cannot be decided is refused.
    async fn before_call(&self, tool: &str, arguments: &Value) -> Permission;

    /// Whether the session may end: its required checks pass, and nothing outside of what was allowed is changed.
    async fn before_end(&self) -> Permission;
}

/// What a coder says it did, for the comparison with what the gate saw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionReport {
    /// Calls of tools that were made or refused, from the loop's own count or the client's own stream.
    pub calls: u64,
    /// Requests to a model, failed ones included.
    pub requests: u64,
    /// Tokens that were sent, as the provider counts them.
    pub input_tokens: u64,
    /// Tokens that were received.
    pub output_tokens: u64,
    /// What they cost, with estimates where the provider counted nothing; none without prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
}

/// One session of a coder that calls tools.
pub struct AgentSession {
    /// Its id, which hooks are rendered with.
    pub id: String,
    /// The gate, for a coder that runs in this process.
    pub guard: Arc<dyn ToolGuard>,
    /// The socket at which hooks of this session ask, the only thing of ours that its sandbox needs to show.
    pub socket: PathBuf,
    report: OnceLock<SessionReport>,
}

impl AgentSession {
    /// A session that nothing was reported of.
    pub fn new(id: String, guard: Arc<dyn ToolGuard>, socket: PathBuf) -> Self {
        Self {
            id,
            guard,
            socket,
            report: OnceLock::new(),
        }
    }

    /// Says what was done; the first word counts.
    pub fn report(&self, report: SessionReport) {
        let _first_counts = self.report.set(report);
    }

    /// What was reported. A session that nothing was reported of cannot be shown to have been gated.
    pub fn reported(&self) -> Option<SessionReport> {
        self.report.get().copied()
    }
}

impl std::fmt::Debug for AgentSession {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentSession")
            .field("id", &self.id)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
