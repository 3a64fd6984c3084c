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
    /// SHA-256 of the arguments with members in order, and of the folder that the call is bound to.
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

impl Pattern {
    /// The same for calls made in that folder: what a command does depends on where it runs.
    #[must_use]
    pub fn within(self, folder: &str) -> Self {
        // Break it: return it as it is; `tool_gate::approval::a_pattern_stands_for_its_folder_alone` fails.
        let bound = Value::from(vec![folder.to_owned(), self.arguments.to_string()]);
        Self {
            arguments: Sha256Digest::of(bound.to_string().as_bytes()),
            ..self
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
