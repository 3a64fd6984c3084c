//! What stands among a call's arguments, whatever it is called there and however deep: clients read names in any case, and take
//! the first, the last or every one of those that mean the same.

use serde_json::Value;

use super::call::Call;

/// Deepest nesting of arguments that is looked into; a reader of JSON refuses more than 128 anyway.
pub(super) const DEPTH: usize = 130;
/// Most commands that one call may give.
pub(super) const MAXIMUM_COMMANDS: usize = 50;

/// A command as it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given<'a> {
    /// A text for a shell.
    Text(&'a str),
    /// A program and its arguments.
    Words(Vec<String>),
    /// Something that is neither.
    Unreadable,
}

/// A name without what clients spell differently.
pub(super) fn plain_name(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Every argument, at any depth, whose plain name is one of `names`.
pub(super) fn named<'a>(arguments: &'a Value, names: &[&str]) -> Vec<(&'a str, &'a Value)> {
    let mut found = Vec::new();
    let mut waiting = vec![(arguments, 0)];
    while let Some((value, depth)) = waiting.pop() {
        if depth > DEPTH {
            continue;
        }
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    if names.contains(&plain_name(member).as_str()) {
                        found.push((member.as_str(), value));
                    }
                    waiting.push((value, depth + 1));
                }
            }
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    found
}

/// Every command of a call that runs commands, at most one more than [`MAXIMUM_COMMANDS`].
pub(super) fn commands(call: &Call) -> Vec<Given<'_>> {
    const ONE: [&str; 7] = [
        "command",
        "cmd",
        "script",
        "commandline",
        "cmdline",
        "shellcommand",
        "bashcommand",
    ];
    const SEVERAL: [&str; 3] = ["commands", "cmds", "scripts"];
    if let Value::String(text) = &call.arguments {
        return vec![Given::Text(text)];
    }
    // Break it: take the first only; `tool_gate::arguments::every_command_of_a_call_is_judged` fails.
    let one = named(&call.arguments, &ONE)
        .into_iter()
        .filter(|(_, value)| !value.is_object())
        .map(|(_, value)| given(value));
    let several = named(&call.arguments, &SEVERAL)
        .into_iter()
        .flat_map(|(_, value)| match value {
            Value::Array(items) => items
                .iter()
                .filter(|item| !item.is_object())
                .map(given)
                .collect(),
            value => vec![given(value)],
        });
    one.chain(several).take(MAXIMUM_COMMANDS + 1).collect()
}

fn given(value: &Value) -> Given<'_> {
    match value {
        Value::String(text) => Given::Text(text),
        Value::Array(words) => {
            let words: Option<Vec<String>> = words
                .iter()
                .map(|word| word.as_str().map(str::to_owned))
                .collect();
            words.map_or(Given::Unreadable, Given::Words)
        }
        _ => Given::Unreadable,
    }
}

/// Every text of at most `longest` bytes among the arguments, with the name it stands under.
pub(super) fn texts(arguments: &Value, longest: usize, most: usize) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut waiting = vec![("", arguments, 0)];
    while let Some((name, value, depth)) = waiting.pop() {
        if found.len() > most {
            break;
        }
        if depth > DEPTH {
            continue;
        }
        match value {
            Value::Object(members) => waiting.extend(
                members
                    .iter()
                    .map(|(member, value)| (member.as_str(), value, depth + 1)),
            ),
            Value::Array(items) => {
                waiting.extend(items.iter().map(|item| (name, item, depth + 1)));
            }
            Value::String(text) if text.len() <= longest => found.push((name, text.as_str())),
            _ => {}
        }
    }
    found
}
