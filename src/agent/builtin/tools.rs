//! Which tools there are, and what a model's arguments for one mean.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::model::ToolDescription;
use crate::agent::{GatedTool, ToolAccess};
use crate::change::RepoPath;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// To find the cause; the tree stays as it is.
    Diagnose,
    /// To edit the tree.
    Fix,
}

impl Job {
    /// Its name in errors.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Diagnose => "diagnose",
            Self::Fix => "fix",
        }
    }

    /// The tool that ends it.
    pub(super) const fn last_tool(self) -> &'static str {
        match self {
            Self::Diagnose => "submit_diagnosis",
            Self::Fix => "submit_fix",
        }
    }
}

/// When a tool is offered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offered {
    Always,
    For(Job),
}

struct Tool {
    name: &'static str,
    description: &'static str,
    access: ToolAccess,
    offered: Offered,
    schema: fn() -> Value,
}

const PATH: &str = "Path in the repository, as in src/lib.rs.";

/// The names are those that `tool_gate::tools` knows.
const TOOLS: &[Tool] = &[
    Tool {
        name: "list_files",
        description: "Lists what stands in one folder of the repository. Without path: in the top folder.",
        access: ToolAccess::Reads,
        offered: Offered::Always,
        schema: || object(&[("path", text(PATH), false)]),
    },
    Tool {
        name: "read_file",
        description: "Reads a text file, or some of its lines. first_line counts from 1.",
        access: ToolAccess::Reads,
        offered: Offered::Always,
        schema: || {
            object(&[
                ("path", text(PATH), true),
                ("first_line", json!({"type": "integer"}), false),
                ("lines", json!({"type": "integer"}), false),
            ])
        },
    },
    Tool {
        name: "search_text",
        description: "Finds the lines that hold a text exactly, in all files of the repository, or in one file or folder.",
        access: ToolAccess::Reads,
        offered: Offered::Always,
        schema: || {
            object(&[
                ("text", text("A part of one line, letter by letter."), true),
                ("path", text(PATH), false),
            ])
        },
    },
    Tool {
        name: "replace_text",
        description: "Replaces a text in a file. old must stand in the file exactly once.",
        access: ToolAccess::Writes { path: Some("path") },
        offered: Offered::For(Job::Fix),
        schema: || {
            object(&[
                ("path", text(PATH), true),
                ("old", text("The text as it stands there."), true),
                ("new", text("What is to stand there."), true),
            ])
        },
    },
    Tool {
        name: "write_file",
        description: "Writes a whole file; makes it where it is not there.",
        access: ToolAccess::Writes { path: Some("path") },
        offered: Offered::For(Job::Fix),
        schema: || {
            object(&[
                ("path", text(PATH), true),
                ("content", text("The whole content."), true),
            ])
        },
    },
    Tool {
        name: "delete_file",
        description: "Deletes a file.",
        access: ToolAccess::Writes { path: Some("path") },
        offered: Offered::For(Job::Fix),
        schema: || object(&[("path", text(PATH), true)]),
    },
    Tool {
        name: "run_command",
        description: "Runs a program in the repository's top folder, without a shell and without a network, as in [\"python3\", \"-m\", \"unittest\"].",
        access: ToolAccess::Executes,
        offered: Offered::For(Job::Fix),
        schema: || object(&[("command", texts("The program and its arguments."), true)]),
    },
    Tool {
        name: "submit_diagnosis",
        description: "Ends the task with the cause that was found.",
        access: ToolAccess::Reads,
        offered: Offered::For(Job::Diagnose),
        schema: || {
            object(&[
                ("cause", text("The cause, at most 500 bytes."), true),
                (
                    "files",
                    texts(
                        "Every file that the fix will change or add, that of its new test included.",
                    ),
                    true,
                ),
                (
                    "confidence",
                    json!({"type": "integer", "description": "0 to 1000."}),
                    true,
                ),
                (
                    "summary",
                    text("One paragraph for people, at most 500 bytes."),
                    true,
                ),
            ])
        },
    },
    Tool {
        name: "submit_fix",
        description: "Ends the task: the files are as they are to be.",
        access: ToolAccess::Reads,
        offered: Offered::For(Job::Fix),
        schema: || {
            object(&[
                ("title", text("One line, at most 72 characters."), true),
                (
                    "summary",
                    text("What was changed and why, at most 2000 bytes."),
                    true,
                ),
            ])
        },
    },
];

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

/// The schema of an object: each member with whether it must be there.
fn object(members: &[(&str, Value, bool)]) -> Value {
    let properties = members
        .iter()
        .map(|(name, schema, _)| ((*name).to_owned(), schema.clone()));
    let properties: serde_json::Map<String, Value> = properties.collect();
    let required = members.iter().filter(|(_, _, required)| *required);
    let required: Vec<&str> = required.map(|(name, _, _)| *name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    // Gemini takes no empty list here.
    if let (false, Some(schema)) = (required.is_empty(), schema.as_object_mut()) {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

/// Every tool, as the gate is told of it.
pub(super) fn gated() -> Vec<GatedTool> {
    let gated = |tool: &Tool| GatedTool {
        name: tool.name.to_owned(),
        access: tool.access.clone(),
    };
    TOOLS.iter().map(gated).collect()
}

fn offered(job: Job) -> impl Iterator<Item = &'static Tool> {
    // Break it: offer all of them; a diagnosis can then write
    // (`agent::builtin::a_diagnosis_has_no_tool_that_changes_anything`).
    TOOLS.iter().filter(move |tool| {
        matches!(tool.offered, Offered::Always) || tool.offered == Offered::For(job)
    })
}

/// The tools of a job, as a model is told of them.
pub(super) fn descriptions(job: Job) -> Vec<ToolDescription> {
    let described = |tool: &Tool| ToolDescription {
        name: tool.name,
        description: tool.description,
        schema: (tool.schema)(),
    };
    offered(job).map(described).collect()
}

/// A call that can be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    List(Option<RepoPath>),
    Read {
        path: RepoPath,
        first_line: usize,
        lines: usize,
    },
    Search {
        text: String,
        path: Option<RepoPath>,
    },
    Replace {
        path: RepoPath,
        old: String,
        new: String,
    },
    Write {
        path: RepoPath,
        content: String,
    },
    Delete(RepoPath),
    Run(Vec<String>),
    /// The last tool of the job, with its arguments as they came.
    Submit(Vec<u8>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadLines {
    path: String,
    first_line: Option<usize>,
    lines: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Searched {
    text: String,
    path: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replaced {
    path: String,
    old: String,
    new: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Deleted {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ran {
    command: Vec<String>,
}

/// What a call means, or why it means nothing, in words for the model.
pub(super) fn action(job: Job, tool: &str, arguments: &Value) -> Result<Action, String> {
    let Some(known) = offered(job).find(|known| known.name == tool) else {
        return Err("there is no such tool".to_owned());
    };
    if !arguments.is_object() {
        return Err(format!(
            "the arguments of {} are not one JSON object",
            known.name
        ));
    }
    Ok(match known.name {
        "list_files" => Action::List(folder(read::<Listed>(arguments)?.path)?),
        "read_file" => {
            let asked: ReadLines = read(arguments)?;
            Action::Read {
                path: file(&asked.path)?,
                first_line: asked.first_line.unwrap_or(1).max(1),
                lines: asked.lines.unwrap_or(usize::MAX).max(1),
            }
        }
        "search_text" => {
            let asked: Searched = read(arguments)?;
            Action::Search {
                text: asked.text,
                path: folder(asked.path)?,
            }
        }
        "replace_text" => {
            let asked: Replaced = read(arguments)?;
            Action::Replace {
                path: file(&asked.path)?,
                old: asked.old,
                new: asked.new,
            }
        }
        "write_file" => {
            let asked: Written = read(arguments)?;
            Action::Write {
                path: file(&asked.path)?,
                content: asked.content,
            }
        }
        "delete_file" => Action::Delete(file(&read::<Deleted>(arguments)?.path)?),
        "run_command" => Action::Run(read::<Ran>(arguments)?.command),
        _ => Action::Submit(arguments.to_string().into_bytes()),
    })
}

/// Exactly the members that a tool has: one that the gate judged and the tool would not look at is a misunderstanding of one of them.
fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("the arguments do not fit: {error}"))
}

fn file(path: &str) -> Result<RepoPath, String> {
    // A `RepoPath` has no `..` and no `.git`; nothing else is ever opened.
    path.parse()
        .map_err(|error| format!("{error}; paths are relative to the repository's top folder"))
}

/// A folder; the top is written in several ways.
fn folder(path: Option<String>) -> Result<Option<RepoPath>, String> {
    let path = path.unwrap_or_default();
    match path.as_str() {
        "" | "." | "./" => Ok(None),
        path => file(path.strip_suffix('/').unwrap_or(path)).map(Some),
    }
}
