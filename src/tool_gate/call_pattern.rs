//! What a person allows always in more than one spelling: a tool, and a glob over the file that it names or over a command's words.
//!
//! A glob is narrower than it looks: it stands for one tool, for plain words that no shell reads twice, and never for an option, a way up
//! or a program that runs another. What the gate itself refuses it does not allow, since it is asked last.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::arguments::effects;
use super::call::Call;
use super::protected::is_protected;
use super::tools::{ToolClass, tool_class};

/// Longest pattern, in bytes.
pub const LONGEST_PATTERN: usize = 200;
/// Programs whose arguments are other programs, or programs' texts.
const RUNNERS: [&str; 33] = [
    ".", "ash", "awk", "bash", "builtin", "busybox", "chroot", "command", "dash", "doas", "env",
    "eval", "exec", "find", "fish", "flock", "ionice", "ksh", "nice", "nohup", "parallel",
    "setsid", "sh", "source", "ssh", "stdbuf", "sudo", "su", "time", "timeout", "watch", "xargs",
    "zsh",
];
/// Arguments of a command's call that change nothing about what it does.
const IDLE: [&str; 4] = ["description", "timeout", "timeout_ms", "timeoutMs"];
/// Arguments that hold the command.
const COMMAND: [&str; 3] = ["command", "cmd", "script"];

/// Why a text is no pattern for a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern is not taken: {0}")]
pub struct PatternError(&'static str);

impl PatternError {
    /// A pattern that does not stand for the call that it was stated for.
    pub const OF_ANOTHER_CALL: Self = Self(
        "it does not stand for this call: every file or word of the call has to match, and nothing else may be in it",
    );
    /// A pattern beside another answer.
    pub const WITHOUT_ALWAYS: Self = Self("only what is always allowed can have one");
}

/// What a call belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CallOrigin {
    /// The project whose incident it is for, or the worktree of a session of nobody's incident. Patterns count within it.
    pub scope: String,
    /// The top of the worktree, absolute.
    pub worktree: String,
    /// The folder that the client works in; none is the top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

impl CallOrigin {
    /// What a call that is allowed exactly is bound to: the project and the folder as it lies in the worktree, since the same
    /// project's next session has another worktree.
    pub fn place(&self) -> String {
        let folder = self.folder.as_deref().unwrap_or_default();
        let below = folder.strip_prefix(self.worktree.as_str());
        let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        format!("{}\n{}", self.scope, below.unwrap_or(folder))
    }
}

/// A call, and where it is made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// The top of the session's worktree, absolute.
    pub worktree: &'a str,
    /// The folder that the client works in; none is the top.
    pub folder: Option<&'a str>,
}

/// A pattern for calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPattern {
    tool: String,
    parts: Vec<String>,
    commands: bool,
}

impl CallPattern {
    /// Reads a pattern for a tool: of one that reads or writes files, a path from the worktree's top in which `*` stands for anything
    /// within a name and a part `**` for any folders; of one that runs commands, its words, in which `*` stands for anything within a
    /// word and `**` at the end for any further words.
    ///
    /// # Errors
    /// The pattern could stand for what nobody meant: [`PatternError`].
    pub fn parse(tool: &str, text: &str) -> Result<Self, PatternError> {
        let refuse = |why| Err(PatternError(why));
        if text.is_empty() || text.len() > LONGEST_PATTERN || text.trim() != text {
            return refuse("it has 1 to 200 bytes, without blanks around them");
        }
        let commands = match tool_class(tool) {
            ToolClass::Execute => true,
            ToolClass::Read | ToolClass::Write => false,
            ToolClass::Send | ToolClass::Unknown => {
                return refuse(
                    "patterns are for tools that name files or run commands; this one is allowed exactly or once",
                );
            }
        };
        let parts = if commands {
            words_of(text)?
        } else {
            path_of(text)?
        };
        Ok(Self {
            tool: tool.to_owned(),
            parts,
            commands,
        })
    }

    /// Whether a call is one of those that the pattern stands for. What cannot be read plainly is none.
    pub fn matches(&self, made: &Made<'_>) -> bool {
        // Break it: leave out the tool; `tool_gate::call_pattern::a_pattern_is_for_its_tool_alone` fails.
        if made.tool != self.tool {
            return false;
        }
        if self.commands {
            made.folder.is_none_or(|folder| folder == made.worktree)
                && plain_command(made.arguments)
                    .is_some_and(|words| many(&self.parts, &words, word_like))
        } else {
            files_of(made).is_some_and(|files| {
                files.iter().all(|file| {
                    let names: Vec<String> = file.split('/').map(str::to_owned).collect();
                    !is_protected(file.as_bytes()) && many(&self.parts, &names, glob)
                })
            })
        }
    }
}

fn words_of(text: &str) -> Result<Vec<String>, PatternError> {
    let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let last = words.len() - 1;
    for (number, word) in words.iter().enumerate() {
        if word.is_empty() || !word.chars().all(|one| is_plain(one) || one == '*') {
            return Err(PatternError(
                "a command's words are letters, digits and ./:@%+,=_- with single blanks between them: no quotes, variables or operators of a shell",
            ));
        }
        if word.contains("**") && (word != "**" || number != last) {
            return Err(PatternError("** stands alone, as the last word"));
        }
    }
    if words[0].contains('*') || words[0].contains('=') {
        return Err(PatternError("the program is named in full"));
    }
    if runs_others(&words[0]) {
        return Err(PatternError(
            "this program runs what its arguments say, so that the pattern would stand for anything",
        ));
    }
    Ok(words)
}

fn path_of(text: &str) -> Result<Vec<String>, PatternError> {
    let parts: Vec<String> = text.split('/').map(str::to_owned).collect();
    let unsound = |part: &String| {
        matches!(part.as_str(), "" | "." | "..") || part.contains("**") && part != "**"
    };
    if parts.iter().any(unsound) || text.contains(['\\', '\0', ':', '~']) {
        return Err(PatternError(
            "a path counts from the worktree's top, like src/*.rs or docs/**, without . and .., and ** is a whole part of it",
        ));
    }
    // Break it: take it; `tool_gate::call_pattern::a_protected_path_is_no_pattern` fails.
    if is_protected(text.as_bytes()) {
        return Err(PatternError(
            "it names what no session may write; such calls never pass",
        ));
    }
    Ok(parts)
}

/// Characters that mean themselves to every shell.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "./:@%+,=_-".contains(character)
}

fn runs_others(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    RUNNERS.contains(&name)
}

/// The words of a call that runs one plain command and says nothing else.
fn plain_command(arguments: &Value) -> Option<Vec<String>> {
    let members = arguments.as_object()?;
    let mut found = None;
    for (name, value) in members {
        if COMMAND.contains(&name.as_str()) && found.is_none() {
            found = Some(value);
        } else if !IDLE.contains(&name.as_str()) {
            return None;
        }
    }
    let words: Vec<String> = match found? {
        Value::String(text) => text.split(' ').map(str::to_owned).collect(),
        Value::Array(words) => words
            .iter()
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        _ => return None,
    };
    // Break it: leave this out; `tool_gate::call_pattern::no_pattern_crosses_an_operator_of_a_shell` fails.
    let plain = |word: &String| !word.is_empty() && word.chars().all(is_plain);
    let first = words.first()?;
    (words.iter().all(plain) && !first.contains('=') && !runs_others(first)).then_some(words)
}

/// Every file that a call names, from the worktree's top; none where one of them is not below it or not plainly named.
fn files_of(made: &Made<'_>) -> Option<Vec<String>> {
    let call = Call::new(made.tool, made.arguments.clone());
    let found = effects(&call, &[]);
    if found.unreadable.is_some() || found.named.is_empty() {
        return None;
    }
    let top = |path: &str| -> Option<String> {
        let below = path.strip_prefix(made.worktree)?;
        if below.is_empty() {
            return Some(String::new());
        }
        below.strip_prefix('/').map(str::to_owned)
    };
    let folder = made.folder.map_or(Some(String::new()), top)?;
    let named = found.named.iter().map(|touch| {
        let file = if touch.path.starts_with('/') {
            top(&touch.path)?
        } else if folder.is_empty() {
            touch.path.clone()
        } else {
            format!("{folder}/{}", touch.path)
        };
        let sound = |part: &str| !matches!(part, "" | "." | "..");
        (file.split('/').all(sound) && !file.contains(['\\', '\0', '~'])).then_some(file)
    });
    named.collect()
}

/// Whether parts match one by one, `**` any number of them. In time of their product.
fn many(patterns: &[String], parts: &[String], one: fn(&str, &str) -> bool) -> bool {
    let mut reached = vec![false; parts.len() + 1];
    reached[0] = true;
    for pattern in patterns {
        let mut next = vec![false; parts.len() + 1];
        if pattern == "**" {
            for place in 0..=parts.len() {
                let before = place.checked_sub(1);
                // What a wildcard may not stand for, any number of them may not either.
                let goes_on = before.is_some_and(|before| next[before] && one("*", &parts[before]));
                next[place] = reached[place] || goes_on;
            }
        } else {
            for (place, part) in parts.iter().enumerate() {
                next[place + 1] = reached[place] && one(pattern, part);
            }
        }
        reached = next;
    }
    reached[parts.len()]
}

/// A word, in which a wildcard stands for no option, no way up and no other place than below.
fn word_like(pattern: &str, word: &str) -> bool {
    let wild = pattern.contains('*');
    let leads_away = word.split(['/', '=', ':', ',']).any(|part| part == "..")
        || word.starts_with('/')
        || word.contains("=/");
    // Break it: leave out either; `tool_gate::call_pattern::a_wildcard_is_no_option_and_no_way_out` fails.
    if wild && (leads_away || word.starts_with('-') && !pattern.starts_with('-')) {
        return false;
    }
    glob(pattern, word)
}

/// Whether `*` in a pattern can stand for parts of a text so that both are the same.
fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        match rest.find(piece) {
            Some(place) => rest = rest.get(place + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}
