//! One call of a tool, read from whatever a client's hook hands over.
//!
//! Clients agree on little: `tool_name` or `toolName`, `tool_input` or `toolArgs`, an object or a string that holds one
//! (`docs/hook-gate.md` has the table). Reading is lenient about names and strict about sense: an event in which no tool can be
//! found is not an event. The session is never taken from the event, which the gated client writes.

use std::fmt;

use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::attest::text::shown;

/// Largest event that is read, in bytes. Clients put whole files into events; no tool writes files of this size.
pub const MAXIMUM_EVENT_BYTES: usize = 8 << 20;

/// Members that name the tool.
const TOOL: [&str; 3] = ["tool_name", "toolName", "tool"];
/// Members that hold its arguments.
const ARGUMENTS: [&str; 8] = [
    "tool_input",
    "toolInput",
    "tool_args",
    "toolArgs",
    "arguments",
    "args",
    "input",
    "parameters",
];
/// Members that say in which folder the client works.
const FOLDER: [&str; 3] = ["cwd", "working_dir", "workingDirectory"];
/// Members that name the client's own session.
const SESSION: [&str; 3] = ["session_id", "sessionId", "conversation_id"];
/// Members that say that a sub-agent makes the call.
const SUBAGENT: [&str; 2] = ["agent_id", "agentId"];

/// Why bytes are not an event of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Larger than [`MAXIMUM_EVENT_BYTES`].
    #[error(
        "the hook event has more than {MAXIMUM_EVENT_BYTES} bytes, so it was not read; write less at once"
    )]
    TooLong,
    /// Not JSON, or not an object.
    #[error("the hook event is not a JSON object: {0}")]
    NotAnObject(String),
    /// Something is said in two ways, of which clients take one or the other.
    #[error("the hook event says {0} twice, and not the same")]
    Twice(&'static str),
    /// No tool.
    #[error("the hook event names no tool (tool_name, toolName)")]
    NoTool,
}

/// A call, as the client's hook or our own loop describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's name, as the client spells it.
    pub tool: String,
    /// Its arguments; whatever the client sent.
    pub arguments: Value,
    /// The folder the client works in, against which relative paths are meant.
    pub folder: Option<String>,
    /// What the client calls its session. Recorded when it differs from the gate's, never relied on.
    pub client_session: Option<String>,
    /// The sub-agent that makes the call, if one does.
    pub subagent: Option<String>,
}

impl Call {
    /// A call by our own loop or the library.
    pub fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            folder: None,
            client_session: None,
            subagent: None,
        }
    }

    /// Reads a hook event of any client.
    ///
    /// # Errors
    /// Too long, not a JSON object, or without a tool: [`EventError`].
    pub fn read(event: &[u8]) -> Result<Self, EventError> {
        if event.len() > MAXIMUM_EVENT_BYTES {
            return Err(EventError::TooLong);
        }
        let Unique(value) = serde_json::from_slice(event)
            .map_err(|error| EventError::NotAnObject(shown(&error.to_string())))?;
        let Value::Object(mut event) = value else {
            return Err(EventError::NotAnObject("it is another value".to_owned()));
        };
        let mut given = ARGUMENTS.iter().filter_map(|name| event.remove(*name));
        let arguments = given.next().map_or(Ok(Value::Null), opened)?;
        // Break it: take the first; `tool_gate::arguments::an_event_that_says_something_twice_is_none` fails.
        for other in given {
            if opened(other)? != arguments {
                return Err(EventError::Twice("the arguments"));
            }
        }
        let named = text(&event, &TOOL);
        if TOOL.iter().any(|name| {
            let other = event.get(*name).and_then(Value::as_str);
            other.is_some_and(|other| !other.is_empty() && named.as_deref() != Some(other))
        }) {
            return Err(EventError::Twice("the tool"));
        }
        let (tool, arguments) = match named {
            Some(tool) => (tool, arguments),
            // Cursor's event before a shell command has the command alone.
            None => match event.get("command") {
                Some(command @ Value::String(_)) => {
                    let arguments = Map::from_iter([("command".to_owned(), command.clone())]);
                    ("Bash".to_owned(), Value::Object(arguments))
                }
                _ => return Err(EventError::NoTool),
            },
        };
        Ok(Self {
            tool,
            arguments,
            folder: text(&event, &FOLDER),
            client_session: text(&event, &SESSION),
            subagent: text(&event, &SUBAGENT),
        })
    }

    /// The first of these arguments that is there.
    pub fn argument(&self, names: &[&str]) -> Option<&Value> {
        let arguments = self.arguments.as_object()?;
        names.iter().find_map(|name| arguments.get(*name))
    }
}

fn text(event: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| event.get(*name).and_then(Value::as_str))
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// Arguments that came as the text of an object are that object.
fn opened(arguments: Value) -> Result<Value, EventError> {
    let Value::String(text) = arguments else {
        return Ok(arguments);
    };
    match serde_json::from_str(&text) {
        Ok(Unique(object @ Value::Object(_))) => Ok(object),
        Err(error) if serde_json::from_str::<Map<String, Value>>(&text).is_ok() => {
            Err(EventError::NotAnObject(shown(&error.to_string())))
        }
        _ => Ok(Value::String(text)),
    }
}

/// A value in which no object names a member twice: of two, some readers take the first and some the last.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(UniqueVisitor).map(Unique)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, found: bool) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_i64<E>(self, found: i64) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_u64<E>(self, found: u64) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_f64<E>(self, found: f64) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_str<E>(self, found: &str) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_string<E>(self, found: String) -> Result<Value, E> {
        Ok(found.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            found.push(item);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut found = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, Unique>()? {
            if found.insert(name, value).is_some() {
                return Err(A::Error::custom("an object names a member twice"));
            }
        }
        Ok(Value::Object(found))
    }
}
