//! What a person always allows: a tool with exactly these arguments.
//!
//! A pattern that stood for more, say every command that begins alike, would also stand for what is appended to one.

use serde::Serialize;
use serde_json::Value;

use crate::change::Sha256Digest;

/// A tool and exactly these arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// The tool's name.
    pub tool: String,
    /// SHA-256 of the arguments with members in order.
    pub arguments: Sha256Digest,
}

impl Pattern {
    /// The pattern that stands for this call and no other.
    pub fn of(tool: &str, arguments: &Value) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments: Sha256Digest::of(ordered(arguments).to_string().as_bytes()),
        }
    }
}

/// The same value with the members of every object in order, whatever order the client sent them in.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            let member = |name: &String| Some((name.clone(), ordered(members.get(name)?)));
            Value::Object(names.into_iter().filter_map(member).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}
