//! Our own loop over a model: `agent.adapter: builtin`.
//!
//! The model is asked, each of its calls goes through the session's gate and only then to the tool, the results go back, until it
//! calls the tool that ends the task or a budget is used up. It sees typed facts, the repository's files and what programs print in
//! the sandbox; no log. Its key and its network stay in this process.

mod budget;
mod files;
mod program;
mod prompt;
mod shown;
mod tools;
mod tree;
mod work;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use budget::Budget;
pub use program::Programs;
use tools::Job;
use work::{Ending, Work};

use super::model::LanguageModel;
use super::{
    AgentDescription, AgentSession, Coder, CoderError, CoderTask, Diagnosis, FixSummary, Governance,
};
use crate::https::patience::Patience;
use crate::sandbox::Sandbox;

/// The coder's name in errors and records.
const CODER: &str = "builtin";

/// How a model is asked again unless said otherwise.
pub const PATIENCE: Patience = Patience {
    // The task's own time is the limit of all of it.
    deadline: Duration::MAX,
    attempt: Duration::from_mins(10),
    attempts: 4,
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_mins(1),
};

/// What the loop works with.
#[derive(Debug, Clone)]
pub struct BuiltinSettings {
    /// What one task may use.
    pub budget: Budget,
    /// How often and when a model that fails is asked again; its deadline is not looked at.
    pub patience: Patience,
    /// What programs that the model runs may see.
    pub programs: Programs,
}

/// Our own loop over a model.
pub struct BuiltinCoder {
    model: Arc<dyn LanguageModel>,
    sandbox: Arc<Sandbox>,
    settings: BuiltinSettings,
    random: fn() -> u64,
}

impl BuiltinCoder {
    /// A coder; nothing is asked yet. `random` gives bits for the pauses between requests.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        sandbox: Arc<Sandbox>,
        settings: BuiltinSettings,
        random: fn() -> u64,
    ) -> Self {
        Self {
            model,
            sandbox,
            settings,
            random,
        }
    }

    async fn work(
        &self,
        job: Job,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Ending, CoderError> {
        // Break it: go on without one; `agent::builtin::without_a_session_nothing_is_asked`.
        let Some(session) = session else {
            return Err(unavailable(
                "it was given no session, so that nobody could judge its calls; this is a mistake in caretaker".to_owned(),
            ));
        };
        Work::new(self, job, task, tree, session)?.run().await
    }
}

fn unavailable(reason: String) -> CoderError {
    CoderError::Unavailable {
        coder: CODER.to_owned(),
        reason,
    }
}

#[async_trait]
impl Coder for BuiltinCoder {
    fn describe(&self) -> AgentDescription {
        AgentDescription {
            id: CODER.to_owned(),
            model: Some(self.model.name().to_owned()),
            remark: format!(
                "Calls tools as the model {} says; every call goes through the gate, and programs run in the sandbox.",
                self.model.name()
            ),
        }
    }

    fn governance(&self) -> Governance {
        Governance::Gated(tools::gated())
    }

    async fn diagnose(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<Diagnosis, CoderError> {
        match self.work(Job::Diagnose, task, tree, session).await? {
            Ending::Diagnosis(diagnosis) => Ok(diagnosis),
            Ending::Fix(_) => Err(other_job(Job::Diagnose)),
        }
    }

    async fn fix(
        &self,
        task: &CoderTask,
        tree: &Path,
        session: Option<&AgentSession>,
    ) -> Result<FixSummary, CoderError> {
        match self.work(Job::Fix, task, tree, session).await? {
            Ending::Fix(fix) => Ok(fix),
            Ending::Diagnosis(_) => Err(other_job(Job::Fix)),
        }
    }
}

fn other_job(job: Job) -> CoderError {
    CoderError::Answer {
        coder: CODER.to_owned(),
        task: job.name(),
        reason: "it ended another task than the one it was given".to_owned(),
    }
}
