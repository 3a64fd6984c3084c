//! What a call touches, told from its arguments.

use serde_json::Value;

use super::call::Call;
use super::patch::envelope_files;
use super::policy::Producer;
use super::shell::{self, Shell};
use super::tools::{ToolClass, tool_class};
use super::touch::{Access, Touch};

/// Everything that is known about a call before a file system is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// What the tool can do.
    pub class: ToolClass,
    /// What its arguments name.
    pub named: Vec<Touch>,
    /// Why its arguments cannot be judged, if they cannot.
    pub unreadable: Option<String>,
    /// What its shell command touches.
    pub shell: Shell,
    /// Whether the call asks the client to leave its own sandbox.
    pub leaves_sandbox: bool,
}

/// Arguments that hold a shell command.
const COMMAND: [&str; 3] = ["command", "cmd", "script"];
/// Arguments that hold a patch.
const PATCH: [&str; 6] = [
    "command",
    "patch",
    "patchText",
    "patch_text",
    "input",
    "diff",
];
/// Arguments that say where a shell command starts.
const START: [&str; 6] = [
    "workdir",
    "cwd",
    "working_dir",
    "working_directory",
    "dir_path",
    "directory",
];
/// Deepest nesting of arguments that is looked into; a reader of JSON refuses more than 128 anyway.
const DEPTH: usize = 130;

/// What a call does. Commands that are exactly one of `producers` are what the session must run anyway, and are known.
pub fn effects(call: &Call, producers: &[Producer]) -> Effects {
    let mut class = tool_class(&call.tool);
    if class == ToolClass::Write && only_views(call) {
        class = ToolClass::Read;
    }
    let mut found = Effects {
        class,
        named: Vec::new(),
        unreadable: None,
        shell: Shell::default(),
        leaves_sandbox: call.argument(&["dangerouslyDisableSandbox"]) == Some(&Value::Bool(true)),
    };
    let access = if class == ToolClass::Read {
        Access::Read
    } else {
        Access::Write
    };
    let skipped: &[&str] = if class == ToolClass::Execute {
        &START
    } else {
        &[]
    };
    let mut collected = Collected {
        access,
        skipped,
        touches: &mut found.named,
        unreadable: None,
    };
    collected.walk(&call.arguments, None, 0);
    found.unreadable = collected.unreadable;
    if class == ToolClass::Execute {
        command(call, producers, &mut found);
    } else if class != ToolClass::Read {
        patch(call, &mut found);
    }
    if class == ToolClass::Write && found.named.is_empty() && found.unreadable.is_none() {
        found.unreadable = Some("it names no file".to_owned());
    }
    found
}

/// Copilot's and goose's editors look at files with the same tool.
fn only_views(call: &Call) -> bool {
    let editor = ["str_replace_editor", "developer__text_editor"]
        .iter()
        .any(|name| call.tool.eq_ignore_ascii_case(name));
    editor && call.argument(&["command"]).and_then(Value::as_str) == Some("view")
}

fn command(call: &Call, producers: &[Producer], found: &mut Effects) {
    let mut starts = Vec::new();
    for name in START {
        match call.argument(&[name]) {
            None | Some(Value::Null) => {}
            Some(Value::String(start)) if start.is_empty() || start == "." => {}
            Some(Value::String(start)) => starts.push(start.clone()),
            Some(_) => found.unreadable = Some(format!("its {name} is not text")),
        }
    }
    found.shell = match call.argument(&COMMAND) {
        Some(Value::String(text)) => shell::classify(text, &starts, producers),
        Some(Value::Array(words)) => {
            let words: Option<Vec<String>> = words
                .iter()
                .map(|word| word.as_str().map(str::to_owned))
                .collect();
            words.map_or_else(
                || Shell::unclassified("its command is not made of words"),
                |words| shell::classify_words(words, &starts, producers),
            )
        }
        _ => match &call.arguments {
            Value::String(text) => shell::classify(text, &starts, producers),
            _ => Shell::unclassified("it names no command"),
        },
    };
}

/// Files of a patch among the arguments. A tool that takes patches takes nothing else where a patch belongs.
fn patch(call: &Call, found: &mut Effects) {
    let takes_patches = ["apply_patch", "patch"]
        .iter()
        .any(|name| call.tool.eq_ignore_ascii_case(name));
    let texts: Vec<&str> = match &call.arguments {
        Value::String(text) => vec![text],
        arguments => PATCH
            .iter()
            .filter_map(|name| arguments.get(*name).and_then(Value::as_str))
            .collect(),
    };
    if takes_patches && texts.is_empty() {
        found.unreadable = Some("it holds no patch".to_owned());
    }
    for text in texts {
        if takes_patches || text.trim_start().starts_with("*** Begin Patch") {
            match envelope_files(text) {
                Ok(files) => found.named.extend(
                    files
                        .into_iter()
                        .map(|file| Touch::new(file, Access::Write)),
                ),
                Err(error) => found.unreadable = Some(error.to_string()),
            }
        }
    }
}

struct Collected<'a> {
    access: Access,
    skipped: &'a [&'a str],
    touches: &'a mut Vec<Touch>,
    unreadable: Option<String>,
}

impl Collected<'_> {
    /// Collects what stands under path-like names, at any depth.
    fn walk(&mut self, value: &Value, name: Option<&str>, depth: usize) {
        if depth > DEPTH {
            self.unreadable = Some("its arguments are nested too deeply".to_owned());
            return;
        }
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    let skipped = self.skipped.contains(&member.as_str());
                    let named = (is_path_name(member) && !skipped).then_some(member.as_str());
                    self.walk(value, named, depth + 1);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.walk(item, name, depth + 1);
                }
            }
            // Break it: stop at the first path; `tool_gate::table::a_decoy_path_hides_nothing` fails.
            Value::String(path) => {
                if name.is_some() {
                    self.touches.push(Touch::new(path.clone(), self.access));
                }
            }
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                if let Some(name) = name
                    && is_certain_path_name(name)
                {
                    self.unreadable = Some(format!("its {name} is not text"));
                }
            }
        }
    }
}

fn plain_name(name: &str) -> String {
    name.chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Names under which clients are known to give paths.
fn is_certain_path_name(name: &str) -> bool {
    matches!(
        plain_name(name).as_str(),
        "filepath" | "notebookpath" | "path" | "targetfile"
    )
}

/// Whether an argument's name says that it is a path.
fn is_path_name(name: &str) -> bool {
    const ENDS: [&str; 9] = [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "filenames",
        "dir",
        "directory",
        "folder",
    ];
    const WHOLE: [&str; 6] = ["dest", "destination", "source", "target", "uri", "fileuri"];
    let plain = plain_name(name);
    ENDS.iter().any(|end| plain.ends_with(end)) || WHOLE.contains(&plain.as_str())
}
