//! What a call touches, told from its arguments.

use serde_json::Value;

use super::call::Call;
use super::given::{DEPTH, Given, MAXIMUM_COMMANDS, commands, named, plain_name, texts};
use super::patch::envelope_files;
use super::policy::Producer;
use super::shell::{self, Shell};
use super::tools::{ToolClass, tool_class};
use super::touch::{Access, Mention, Touch};

/// Most paths that one call may name, in its arguments and in its commands.
pub const MAXIMUM_PATHS: usize = 1_000;
/// Longest text that is looked at as a path, in bytes: no system call takes more (Linux, `PATH_MAX`).
const LONGEST_MENTION: usize = 4096;

/// Everything that is known about a call before a file system is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effects {
    /// What the tool can do.
    pub class: ToolClass,
    /// What its arguments name.
    pub named: Vec<Touch>,
    /// What a tool that reads or sends mentions under any name, which may lead to what no session may read.
    pub mentioned: Vec<Mention>,
    /// Why it asks for more than one call may, if it does.
    pub excess: Option<String>,
    /// Why its arguments cannot be judged, if they cannot.
    pub unreadable: Option<String>,
    /// What its shell command touches.
    pub shell: Shell,
    /// Whether the call asks the client to leave its own sandbox.
    pub leaves_sandbox: bool,
}

/// Arguments that hold a patch, by their plain names.
const PATCH: [&str; 5] = ["command", "patch", "patchtext", "input", "diff"];
/// Arguments that say where a shell command starts, by their plain names.
const START: [&str; 6] = [
    "workdir",
    "cwd",
    "workingdir",
    "workingdirectory",
    "dirpath",
    "directory",
];

/// What a call does. Commands that are exactly one of `producers` are what the session must run anyway, and are known.
pub fn effects(call: &Call, producers: &[Producer]) -> Effects {
    let mut class = tool_class(&call.tool);
    if class == ToolClass::Write && only_views(call) {
        class = ToolClass::Read;
    }
    let mut found = Effects {
        class,
        named: Vec::new(),
        mentioned: Vec::new(),
        excess: None,
        unreadable: None,
        shell: Shell::default(),
        leaves_sandbox: leaves_sandbox(call),
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
    match class {
        ToolClass::Execute => command(call, producers, &mut found),
        ToolClass::Read => mention(call, &mut found),
        ToolClass::Write => patch(call, &mut found),
        ToolClass::Send | ToolClass::Unknown => {
            mention(call, &mut found);
            patch(call, &mut found);
        }
    }
    let count = found.named.len() + found.mentioned.len() + found.shell.count();
    if count > MAXIMUM_PATHS {
        found.excess = Some(format!(
            "it names more than {MAXIMUM_PATHS} paths; name fewer at once"
        ));
    }
    if class == ToolClass::Write && found.named.is_empty() && found.unreadable.is_none() {
        found.unreadable = Some("it names no file".to_owned());
    }
    found
}

/// Whether a client is asked to run the call outside of its own sandbox.
fn leaves_sandbox(call: &Call) -> bool {
    const ASKS: [&str; 3] = [
        "dangerouslydisablesandbox",
        "withescalatedpermissions",
        "sandboxpermissions",
    ];
    named(&call.arguments, &ASKS)
        .into_iter()
        .any(|(_, value)| match value {
            Value::Bool(asked) => *asked,
            Value::String(asked) => asked != "use_default",
            _ => false,
        })
}

/// Copilot's and goose's editors look at files with the same tool.
fn only_views(call: &Call) -> bool {
    let editor = ["str_replace_editor", "developer__text_editor"]
        .iter()
        .any(|name| call.tool.eq_ignore_ascii_case(name));
    let asked = named(&call.arguments, &["command"]);
    editor
        && !asked.is_empty()
        && asked
            .iter()
            .all(|(_, value)| value.as_str() == Some("view"))
}

fn command(call: &Call, producers: &[Producer], found: &mut Effects) {
    let mut starts = Vec::new();
    for (name, start) in named(&call.arguments, &START) {
        match start {
            Value::Null => {}
            Value::String(start) if start.is_empty() || start == "." => {}
            Value::String(start) => starts.push(start.clone()),
            _ => found.unreadable = Some(format!("its {name} is not text")),
        }
    }
    let given = commands(call);
    if given.len() > MAXIMUM_COMMANDS || starts.len() > MAXIMUM_COMMANDS {
        found.excess = Some(format!(
            "it gives more than {MAXIMUM_COMMANDS} commands; give fewer at once"
        ));
        return;
    }
    if given.is_empty() {
        found.shell = Shell::unclassified("it names no command");
    }
    for command in given {
        let shell = match command {
            Given::Text(text) => shell::classify(text, &starts, producers),
            Given::Words(words) => shell::classify_words(words, &starts, producers),
            Given::Unreadable => Shell::unclassified("its command is not made of words"),
        };
        found.shell.join(shell);
        if found.shell.count() > MAXIMUM_PATHS {
            return;
        }
    }
    surroundings(call, &mut found.shell);
}

/// What else decides about what a command does: the shell that runs it, variables, its standard input.
fn surroundings(call: &Call, shell: &mut Shell) {
    const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "dash", "powershell", "pwsh"];
    for (name, value) in named(&call.arguments, &["shell", "env", "environment", "stdin"]) {
        let known = match (plain_name(name).as_str(), value) {
            (_, Value::Null | Value::Bool(_)) => true,
            ("shell", Value::String(program)) => {
                shell::system_program(program).is_some_and(|program| SHELLS.contains(&program))
            }
            ("env" | "environment", Value::Object(variables)) => variables
                .keys()
                .all(|variable| shell::is_harmless_variable(variable)),
            (_, Value::String(text)) => text.is_empty(),
            _ => false,
        };
        if !known {
            shell
                .unclassified
                .push(format!("its {name} may change what the command does"));
        }
    }
}

/// Tools that look at what lies below a folder, or take patterns for files.
fn searches(tool: &str) -> bool {
    let tool = plain_name(tool);
    [
        "grep", "glob", "search", "tree", "analyze", "many", "find", "list",
    ]
    .iter()
    .any(|part| tool.contains(part))
}

/// Names that hold what is looked for in files, not where.
fn is_content_name(name: &str, tool: &str) -> bool {
    let globs = plain_name(tool).contains("glob");
    match plain_name(name).as_str() {
        "pattern" | "query" | "regex" | "regexp" | "text" | "search" => !globs,
        "content" | "description" | "prompt" | "explanation" | "plan" | "todos" => true,
        _ => false,
    }
}

fn mention(call: &Call, found: &mut Effects) {
    let search = searches(&call.tool);
    for (name, text) in texts(&call.arguments, LONGEST_MENTION, MAXIMUM_PATHS) {
        let content = is_content_name(name, &call.tool);
        found.mentioned.push(Mention {
            text: text.to_owned(),
            search: search && !content,
            pattern: !content,
        });
    }
    if search {
        found.mentioned.push(Mention {
            text: ".".to_owned(),
            search: true,
            pattern: false,
        });
    }
}

/// Files of a patch among the arguments. A tool that takes patches takes nothing else where a patch belongs.
fn patch(call: &Call, found: &mut Effects) {
    let takes_patches = ["apply_patch", "patch"]
        .iter()
        .any(|name| call.tool.eq_ignore_ascii_case(name));
    let texts: Vec<&str> = match &call.arguments {
        Value::String(text) => vec![text],
        arguments => named(arguments, &PATCH)
            .into_iter()
            .filter_map(|(_, value)| value.as_str())
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
                    let skipped = self.skipped.contains(&plain_name(member).as_str());
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
                // One more than is allowed is enough to say so.
                if name.is_some() && self.touches.len() <= MAXIMUM_PATHS {
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
