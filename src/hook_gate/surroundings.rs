//! What a worker knows of a session of its own beyond what was registered.

use std::sync::atomic::{AtomicU64, Ordering};

use super::changes;
use super::producers::ProducerTools;
use super::registration::{Registered, read_baseline};

/// Says which files a session has changed, as the repository names them; an error says in words why that cannot be told.
pub(super) type ChangedFiles = Box<dyn Fn() -> Result<Vec<Vec<u8>>, String> + Send + Sync>;

/// What there is around a session.
#[derive(Default)]
pub struct Surroundings {
    /// What producers may see.
    pub tools: ProducerTools,
    /// What tells the changed files of a worktree that is no repository.
    pub changed: Option<ChangedFiles>,
    /// How many calls it may make.
    pub calls: Option<CallBudget>,
}

/// How many calls of tools one session may make, and how many it has asked for. They are counted when they are asked for, so that
/// those that are refused count too.
#[derive(Debug)]
pub struct CallBudget {
    most: u64,
    asked: AtomicU64,
}

impl CallBudget {
    /// So many, none of them asked for yet.
    pub const fn new(most: u64) -> Self {
        Self {
            most,
            asked: AtomicU64::new(0),
        }
    }

    /// Counts one more, or says why it is refused.
    fn take(&self) -> Result<(), String> {
        // Break it: allow it; `hook_gate::calls::a_call_beyond_the_budget_is_refused_with_its_receipt` fails.
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.most {
            return Ok(());
        }
        Err(format!(
            "this session has used up its budget of {} calls of tools (agent.budget.tool_calls); say what you have found, and end",
            self.most
        ))
    }
}

impl std::fmt::Debug for Surroundings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Surroundings")
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Surroundings {
    /// Of a session that only its registration is known of.
    pub fn unknown() -> &'static Self {
        static UNKNOWN: Surroundings = Surroundings {
            tools: ProducerTools {
                environment: Vec::new(),
                readable: Vec::new(),
                writable: Vec::new(),
                private_loopback: false,
            },
            changed: None,
            calls: None,
        };
        &UNKNOWN
    }

    /// Counts a call, or says why it is one too many.
    pub(super) fn take_call(&self) -> Result<(), String> {
        self.calls.as_ref().map_or(Ok(()), CallBudget::take)
    }

    /// The files outside of the allowlist that changed, or why that cannot be told, which counts as changed.
    pub(super) fn changed_outside(&self, session: &Registered) -> Vec<String> {
        if session.compatible || !session.policy.allowlist().enforces() {
            return Vec::new();
        }
        let found = match &self.changed {
            Some(changed) => changed()
                .map(|files| changes::outside(files.into_iter(), &session.policy, session.folds)),
            None => read_baseline(&session.folder)
                .map_err(|error| error.to_string())
                .and_then(|baseline| {
                    changes::out_of_scope(
                        &session.worktree,
                        &baseline,
                        &session.policy,
                        session.folds,
                    )
                }),
        };
        found.unwrap_or_else(|error| vec![format!("it cannot be told which: {error}")])
    }
}
