//! The port to the audit stream: what happened, one event a line, for people's own tools.
//!
//! An event carries what was decided and about which tool, never what a model or a user wrote: no prompts, no arguments, no log
//! bodies, no secrets. Member names: `interfaces.md`, Audit stream.

use serde::Serialize;
use serde_json::{Map, Value};

/// One event. When it happened and its place in the stream are the stream's own business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Its name, e.g. `gate_decision`.
    pub event: &'static str,
    /// The task it belongs to: an incident, or a session of a foreign coding program.
    pub task_id: String,
    /// What connects the events of one request, where there is such a thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What this event tells, by name.
    pub fields: Map<String, Value>,
}

impl Event {
    /// An event of a task.
    pub fn new(
        event: &'static str,
        task_id: impl Into<String>,
        fields: Map<String, Value>,
    ) -> Self {
        Self {
            event,
            task_id: task_id.into(),
            correlation_id: None,
            fields,
        }
    }
}

/// Why an event was not written, in words that name the stream and the mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// Takes events. Writing is synchronous: what is not on record has not happened, so whoever decides waits for it.
pub trait EventSink: Send + Sync {
    /// Puts one event on record.
    ///
    /// # Errors
    /// It is not on record.
    fn record(&self, event: &Event) -> Result<(), SinkError>;
}
