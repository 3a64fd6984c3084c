//! Asking a person about a call of a tool: one queue in the database, answered from any process, refused when nobody answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::clock::{Clock, Millis};
use crate::events::{Event, EventSink};
use crate::id::{AlwaysId, OrganisationId, ToolCallId};
use crate::store::{CallAnswer, CallDecision, NewCall, Resolved, Store, StoreError, ToolCall};
use crate::tool_gate::always_allow::Pattern;
use crate::tool_gate::decider::{Decider, DeciderKind};

/// How often whoever waits looks for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Source of randomness: fills a buffer.
pub type Random = fn(&mut [u8]) -> Result<(), crate::attest::keys::FillError>;

/// The queue of an organisation.
#[derive(Clone)]
pub struct Approvals {
    store: Store,
    organisation: OrganisationId,
    events: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    random: Random,
    timeout_seconds: u32,
}

/// A call that somebody is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The session.
    pub session: &'a str,
    /// Its task.
    pub task: &'a str,
    /// The role of the agent.
    pub role: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Where it is made: what is always allowed here is asked about elsewhere.
    pub folder: &'a str,
}

/// What came of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A pattern allows it without asking.
    Always(AlwaysId),
    /// A person allowed it.
    Allowed,
    /// A person refused it, or nobody answered: why, in words for the agent.
    Refused(String),
}

/// Why nobody could be asked. Whoever gets this refuses the call.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness.
    #[error("making the nonce of a question: {0}")]
    Random(crate::attest::keys::FillError),
}

impl Approvals {
    /// The queue; `timeout_seconds` is how long an answer is waited for.
    pub fn new(
        store: Store,
        organisation: OrganisationId,
        events: Arc<dyn EventSink>,
        clock: Arc<dyn Clock>,
        random: Random,
        timeout_seconds: u32,
    ) -> Self {
        Self {
            store,
            organisation,
            events,
            clock,
            random,
            timeout_seconds,
        }
    }

    /// Asks, unless a pattern allows the call, and waits for the answer of any process. Dropping this leaves the question to
    /// expire.
    ///
    /// # Errors
    /// Nobody can be asked.
    pub async fn ask(&self, question: &Question<'_>) -> Result<Answer, AskError> {
        let pattern = Pattern::of(question.tool, question.arguments).within(question.folder);
        let always = self.store.always_allowed(&self.organisation, &pattern);
        if let Some(always) = always.await? {
            return Ok(Answer::Always(always));
        }
        let id = self.put(question, pattern).await?;
        loop {
            let call = self.store.tool_call(&self.organisation, &id).await?;
            let Some(call) = call else {
                return Ok(Answer::Refused(format!("the question {id} is gone")));
            };
            if let Some(answer) = answer_of(&call) {
                return Ok(answer);
            }
            let now = self.clock.now();
            if now >= call.expires_at {
                let ended = self.expire(&id, now).await?;
                if let Some(answer) = ended.as_ref().and_then(answer_of) {
                    return Ok(answer);
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Puts a question into the queue without waiting.
    async fn put(&self, question: &Question<'_>, pattern: Pattern) -> Result<ToolCallId, AskError> {
        let now = self.clock.now();
        let id = ToolCallId::new(now, self.entropy()?);
        let mut nonce = [0; 16];
        (self.random)(&mut nonce).map_err(AskError::Random)?;
        let arguments = question.arguments.to_string();
        let call = NewCall {
            id: id.clone(),
            session: question.session,
            task: question.task,
            role: question.role,
            pattern,
            arguments: &arguments,
            nonce: &hex::encode(nonce),
            ttl_seconds: self.timeout_seconds,
        };
        self.store
            .ask_about_call(&self.organisation, &call, now)
            .await?;
        Ok(id)
    }

    /// Answers a question. `Always` allows the same call from now on.
    ///
    /// # Errors
    /// The database, or the audit stream: nothing was decided then.
    pub async fn resolve(
        &self,
        id: &ToolCallId,
        answer: &CallAnswer<'_>,
    ) -> Result<Resolved, AskError> {
        let now = self.clock.now();
        let pattern = AlwaysId::new(now, self.entropy()?);
        let always = answer.decision == CallDecision::Always;
        let mut record = |call: &ToolCall| {
            self.record("human_approval_decision", call, answer.decider)?;
            if always {
                self.record("always_allow_promotion", call, answer.decider)?;
            }
            Ok(())
        };
        let resolved =
            self.store
                .resolve_call(&self.organisation, id, answer, &pattern, now, &mut record);
        Ok(resolved.await?)
    }

    /// Ends a question whose time is over.
    async fn expire(&self, id: &ToolCallId, now: Millis) -> Result<Option<ToolCall>, AskError> {
        self.expire_as("approval-queue/ttl-expiry", id, now).await
    }

    async fn expire_as(
        &self,
        component: &'static str,
        id: &ToolCallId,
        now: Millis,
    ) -> Result<Option<ToolCall>, AskError> {
        let decider = Decider::system(component);
        let mut record = |call: &ToolCall| self.record("human_approval_decision", call, &decider);
        let ended = self
            .store
            .expire_call(&self.organisation, id, &decider, now, &mut record);
        Ok(ended.await?)
    }

    /// Ends the questions whose agents are gone; how many.
    ///
    /// # Errors
    /// The database, or the audit stream.
    pub async fn sweep(&self) -> Result<usize, AskError> {
        let now = self.clock.now();
        let overdue = self.store.overdue_calls(&self.organisation, now).await?;
        for id in &overdue {
            self.expire_as("approval-queue/sweeper", id, now).await?;
        }
        Ok(overdue.len())
    }

    /// The queue as it stands.
    ///
    /// # Errors
    /// The database.
    pub async fn pending(&self) -> Result<Vec<ToolCall>, StoreError> {
        self.store
            .pending_calls(&self.organisation, self.clock.now())
            .await
    }

    /// One question, whatever became of it.
    ///
    /// # Errors
    /// The database.
    pub async fn call(&self, id: &ToolCallId) -> Result<Option<ToolCall>, StoreError> {
        self.store.tool_call(&self.organisation, id).await
    }

    /// Now, by the queue's clock.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    fn entropy(&self) -> Result<[u8; 10], AskError> {
        let mut entropy = [0; 10];
        (self.random)(&mut entropy).map_err(AskError::Random)?;
        Ok(entropy)
    }

    /// The event's actor is the decider; arguments stay in the database.
    fn record(
        &self,
        event: &'static str,
        call: &ToolCall,
        decider: &Decider,
    ) -> Result<(), String> {
        let decision = call.resolution.as_ref().map(|found| found.decision);
        let fields = json!({
            "actor": decider.identifier(),
            "auth_method": decider.auth_method().as_str(),
            "kind": decider.kind(),
            "grant": decider.grant(),
            "approval": call.id.as_str(),
            "session": call.session,
            "tool": call.tool,
            "decision": decision,
        });
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let event = Event::new(event, call.task.clone(), fields);
        self.events
            .record(&event)
            .map_err(|error| error.to_string())
    }
}

fn answer_of(call: &ToolCall) -> Option<Answer> {
    let resolution = call.resolution.as_ref()?;
    Some(match resolution.decision {
        CallDecision::Allow | CallDecision::Always => Answer::Allowed,
        CallDecision::Reject => {
            let by_software = resolution.decider.kind() == DeciderKind::System;
            Answer::Refused(match &resolution.reason {
                _ if by_software => {
                    format!(
                        "approval gate: no decision within TTL for {}; denied",
                        call.tool
                    )
                }
                Some(reason) => reason.clone(),
                None => format!("approval gate: {} rejected", call.tool),
            })
        }
    })
}
