//! Overrides: `CARETAKER_` and the path of a key in capitals, joined by `__`, as in `CARETAKER_SERVER__LISTEN`.

use serde_json::{Map, Value};

use super::document::Document;
use super::environment::{Environment, EnvironmentError};
use super::nearest::suggestion;
use super::yaml;

const PREFIX: &str = "CARETAKER_";

/// Applies every override. A variable with `__` in its name must name a key; one without may be anything (a secret, say)
/// unless it names a whole section.
pub(super) fn apply(
    mut document: Document,
    environment: &Environment,
) -> Result<Document, EnvironmentError> {
    for (variable, text) in environment.variables() {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        let path: Vec<String> = name.split("__").map(str::to_ascii_lowercase).collect();
        let tree = serde_json::to_value(&document).unwrap_or_default();
        let section = path.first().is_some_and(|first| tree.get(first).is_some());
        if path.len() == 1 && !section {
            continue;
        }
        let refuse = |problem| EnvironmentError::Override {
            variable: variable.to_owned(),
            problem,
        };
        document = with(tree, &path, text).map_err(refuse)?;
    }
    Ok(document)
}

/// The document with one value set: as text where text fits, else as YAML (a number, a list, a mapping).
fn with(tree: Value, path: &[String], text: &str) -> Result<Document, String> {
    let as_text = set(tree.clone(), path, Value::String(text.to_owned()))?;
    let refusal = match read(&as_text) {
        Ok(document) => return Ok(document),
        Err(refusal) => refusal,
    };
    match yaml::read::<Value>(text.as_bytes(), "value") {
        Ok(value) if !value.is_string() => read(&set(tree, path, value)?),
        _ => Err(refusal),
    }
}

/// Reads the document as if it stood in a file, so that messages are the same; JSON is YAML too.
fn read(tree: &Value) -> Result<Document, String> {
    yaml::read(tree.to_string().as_bytes(), "").map_err(|error| error.problem)
}

fn set(mut tree: Value, path: &[String], value: Value) -> Result<Value, String> {
    let mut place = &mut tree;
    for (depth, name) in path.iter().enumerate() {
        if place.is_null() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(members) = place else {
            let key = path.get(..depth).unwrap_or_default().join(".");
            return Err(format!(
                "{key} has no keys of its own; give the whole value in one variable"
            ));
        };
        let known: Vec<&str> = members.keys().map(String::as_str).collect();
        if !known.is_empty() && !known.contains(&name.as_str()) {
            return Err(format!(
                "unknown key {name:?}; {}",
                suggestion(name, &known)
            ));
        }
        place = members.entry(name.clone()).or_insert(Value::Null);
    }
    *place = value;
    Ok(tree)
}
