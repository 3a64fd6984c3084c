//! How much one task may use, what it has used, and that its session is told in any case.

use std::time::Duration;

use crate::agent::model::Usage;
use crate::agent::{AgentSession, SessionReport};
use crate::incident::MoneyBudget;

/// Bytes that are taken for a token where nobody counts.
const BYTES_A_TOKEN: u64 = 4;

/// How much one task, a diagnosis or a fix, may use. What fails or is refused counts too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Requests to the model.
    pub requests: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Tokens sent and received together. Looked at before each request, so that the last answer may go beyond.
    pub tokens: u64,
    /// Money; none where no prices are configured. Looked at before each request, at what it could cost at most.
    pub money: Option<MoneyBudget>,
    /// Time on the wall, waiting for people included.
    pub wall: Duration,
}

/// Counts, and reports to the session when it is dropped: on every way out, that of a task that is broken off included.
pub(super) struct Ledger<'s> {
    session: &'s AgentSession,
    budget: Budget,
    used: SessionReport,
    /// Tokens sent of requests whose cost only the provider knows, as estimated.
    unseen: u64,
    /// Bytes of the request that is not answered yet.
    open: Option<u64>,
    /// Tokens and bytes of the last request that was answered.
    last: (u64, u64),
}

impl<'s> Ledger<'s> {
    pub(super) fn new(session: &'s AgentSession, budget: Budget) -> Self {
        Self {
            session,
            budget,
            used: SessionReport::default(),
            unseen: 0,
            open: None,
            last: (0, 0),
        }
    }

    /// Counts one more request of so many bytes, whose answer has at most `answer` tokens, or says which budget does not allow it.
    pub(super) fn request(&mut self, bytes: u64, answer: u64) -> Result<(), String> {
        self.failed();
        let tokens = self
            .used
            .input_tokens
            .saturating_add(self.used.output_tokens);
        // Break it, or one of those below: `agent::builtin_budget::each_budget_ends_a_loop_that_never_ends`.
        if tokens >= self.budget.tokens {
            return Err(format!("tokens ({})", self.budget.tokens));
        }
        if self.used.requests >= self.budget.requests {
            return Err(format!("requests ({})", self.budget.requests));
        }
        if let Some(money) = &self.budget.money {
            let input = self.sent().saturating_add(self.most_tokens(bytes));
            money.allows(input, self.used.output_tokens.saturating_add(answer))?;
        }
        self.used.requests += 1;
        self.open = Some(bytes);
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

    /// The most tokens that a request of so many bytes can have: what the last one had, and one for each byte since.
    fn most_tokens(&self, bytes: u64) -> u64 {
        let (tokens, before) = self.last;
        tokens.saturating_add(bytes.saturating_sub(before))
    }

    /// Tokens sent, with estimates of those that nobody counted.
    fn sent(&self) -> u64 {
        self.used.input_tokens.saturating_add(self.unseen)
    }

    /// Counts a request that brought no answer as if it had been read: whoever fails may have been paid.
    fn failed(&mut self) {
        // Break it: count nothing; `agent::builtin_budget::requests_that_fail_cost_too` fails.
        if let Some(bytes) = self.open.take() {
            self.unseen = self.unseen.saturating_add(bytes.div_ceil(BYTES_A_TOKEN));
        }
    }

    /// Counts an answer's tokens.
    pub(super) fn tokens(&mut self, usage: Usage) {
        if let Some(bytes) = self.open.take() {
            self.last = (usage.input, bytes);
        }
        let used = &mut self.used;
        used.input_tokens = used.input_tokens.saturating_add(usage.input);
        used.output_tokens = used.output_tokens.saturating_add(usage.output);
    }
}

impl Drop for Ledger<'_> {
    fn drop(&mut self) {
        self.failed();
        let money = self.budget.money;
        self.used.cost = money.map(|money| money.prices.cost(self.sent(), self.used.output_tokens));
        // Break it: report only at the end of a task that went well
        // (`agent::builtin_budget::a_session_is_told_on_every_way_out`).
        self.session.report(self.used);
    }
}
