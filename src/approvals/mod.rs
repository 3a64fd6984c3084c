//! Asking a person about a call of a tool: one queue in the database, answered from any process, refused when nobody answers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::clock::{Clock, Millis};
use crate::events::{Event, EventSink};
use crate::id::{AlwaysId, OrganisationId, ToolCallId};
use crate::store::{CallAnswer, CallDecision, NewCall, Resolved, Store, StoreError, ToolCall};
use crate::tool_gate::always_allow::Pattern;
use crate::tool_gate::call_pattern::{CallOrigin, CallPattern, Made, PatternError};
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
    /// The top of the session's worktree.
    pub worktree: &'a str,
    /// The folder that the client works in; none is the top.
    pub works_in: Option<&'a str>,
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
    /// The pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
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
        let origin = self.origin(question).await?;
        let pattern = Pattern::of(question.tool, question.arguments).within(&origin.place());
        let always = self.store.always_allowed(&self.organisation, &pattern);
        if let Some(always) = always.await? {
            return Ok(Answer::Always(always));
        }
        if let Some(always) = self.allowed_by_pattern(question, &origin).await? {
            return Ok(Answer::Always(always));
        }
        let id = self.put(question, pattern, &origin).await?;
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

    /// What the call belongs to: the project, where it is for an incident; else its worktree.
    async fn origin(&self, question: &Question<'_>) -> Result<CallOrigin, AskError> {
        let project = match question.task.parse() {
            Ok(incident) => {
                let project = self
                    .store
                    .project_of_incident(&self.organisation, &incident);
                project.await?
            }
            Err(_) => None,
        };
        Ok(CallOrigin {
            scope: project.map_or_else(
                || question.worktree.to_owned(),
                |project| project.as_str().to_owned(),
            ),
            worktree: question.worktree.to_owned(),
            folder: question.works_in.map(str::to_owned),
        })
    }

    /// The pattern that stands for a call. One that is no pattern by today's rules stands for nothing.
    async fn allowed_by_pattern(
        &self,
        question: &Question<'_>,
        origin: &CallOrigin,
    ) -> Result<Option<AlwaysId>, AskError> {
        let tool = question.tool;
        let patterns = self
            .store
            .call_patterns(&self.organisation, &origin.scope, tool);
        let made = Made {
            tool,
            arguments: question.arguments,
            worktree: &origin.worktree,
            folder: origin.folder.as_deref(),
        };
        let found = patterns.await?.into_iter().find(|(_, text)| {
            CallPattern::parse(tool, text).is_ok_and(|pattern| pattern.matches(&made))
        });
        Ok(found.map(|(id, _)| id))
    }

    /// A pattern that is stated in an answer: one that stands for the call that it answers.
    async fn stated(&self, id: &ToolCallId, text: &str) -> Result<(), AskError> {
        let Some(call) = self.call(id).await? else {
            return Ok(());
        };
        let pattern = CallPattern::parse(&call.tool, text)?;
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let made = Made {
            tool: &call.tool,
            arguments: &arguments,
            worktree: &call.origin.worktree,
            folder: call.origin.folder.as_deref(),
        };
        // Break it: leave this out; `store::tool_call::a_pattern_that_is_stated_allows_what_it_stands_for_in_its_project` fails.
        if call.origin.scope.is_empty() || !pattern.matches(&made) {
            return Err(PatternError::OF_ANOTHER_CALL.into());
        }
        Ok(())
    }

    /// Puts a question into the queue without waiting.
    async fn put(
        &self,
        question: &Question<'_>,
        pattern: Pattern,
        origin: &CallOrigin,
    ) -> Result<ToolCallId, AskError> {
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
            origin,
        };
        self.store
            .ask_about_call(&self.organisation, &call, now)
            .await?;
        Ok(id)
    }

    /// Answers a question. `Always` allows the same call from now on, or what a stated pattern stands for.
    ///
    /// # Errors
    /// The pattern, the database, or the audit stream: nothing was decided then.
    pub async fn resolve(
        &self,
        id: &ToolCallId,
        answer: &CallAnswer<'_>,
    ) -> Result<Resolved, AskError> {
        let now = self.clock.now();
        let pattern = AlwaysId::new(now, self.entropy()?);
        let always = answer.decision == CallDecision::Always;
        match answer.pattern {
            Some(_) if !always => return Err(PatternError::WITHOUT_ALWAYS.into()),
            Some(text) => self.stated(id, text).await?,
            None => {}
        }
        let by_pattern = answer.pattern.is_some();
        let mut record = |call: &ToolCall| {
            self.record("human_approval_decision", call, answer.decider, false)?;
            if always {
                self.record("always_allow_promotion", call, answer.decider, by_pattern)?;
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
        let mut record =
            |call: &ToolCall| self.record("human_approval_decision", call, &decider, false);
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
        by_pattern: bool,
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
            Value::Object(mut fields) => {
                if by_pattern {
                    fields.insert("pattern".to_owned(), true.into());
                }
                fields
            }
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
