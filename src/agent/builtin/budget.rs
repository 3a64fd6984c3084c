//! How much one task may use, what it has used, and that its session is told in any case.

use std::time::Duration;

use crate::agent::model::Usage;
use crate::agent::{AgentSession, SessionReport};

/// How much one task, a diagnosis or a fix, may use. What fails or is refused counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Requests to the model.
    pub requests: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens sent and received together. Looked at before each request, so that the last answer may go beyond.
    pub tokens: u64,
    /// Time on the wall, waiting for people included.
    pub wall: Duration,
}

/// Counts, and reports to the session when it is dropped: on every way out, that of a task that is broken off included.
pub(super) struct Ledger<'s> {
    session: &'s AgentSession,
    budget: Budget,
    used: SessionReport,
}

impl<'s> Ledger<'s> {
    pub(super) fn new(session: &'s AgentSession, budget: Budget) -> Self {
        Self {
            session,
            budget,
            used: SessionReport::default(),
        }
    }

    /// Counts one more request, or says which budget does not allow it.
    pub(super) fn request(&mut self) -> Result<(), String> {
        let tokens = self
            .used
            .input_tokens
            .saturating_add(self.used.output_tokens);
        // Break it: `agent::builtin_budget::each_budget_ends_a_loop_that_never_ends`.
        if tokens >= self.budget.tokens {
            return Err(format!("tokens ({})", self.budget.tokens));
        }
        if self.used.requests >= self.budget.requests {
            return Err(format!("requests ({})", self.budget.requests));
        }
        self.used.requests += 1;
        Ok(())
    }

    /// Counts one more call, or says that the budget does not allow it.
    pub(super) fn call(&mut self) -> Result<(), String> {
        if self.used.calls >= self.budget.tool_calls {
            return Err(format!("tool_calls ({})", self.budget.tool_calls));
        }
        self.used.calls += 1;
        Ok(())
    }

    /// Counts an answer's tokens.
    pub(super) fn tokens(&mut self, usage: Usage) {
        let used = &mut self.used;
        used.input_tokens = used.input_tokens.saturating_add(usage.input);
        used.output_tokens = used.output_tokens.saturating_add(usage.output);
    }
}

impl Drop for Ledger<'_> {
    fn drop(&mut self) {
        // Break it: report only at the end of a task that went well
        // (`agent::builtin_budget::a_session_is_told_on_every_way_out`).
        self.session.report(self.used);
    }
}
