//! One simple command: assignments, a program, its words, redirections.

use super::word::Word;
use super::{Findings, programs};

/// What a redirection does with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redirect {
    /// `>`, `>>`, `>|`, `<>`, `&>`, `&>>`, `>&file`.
    To(Word),
    /// `<`.
    From(Word),
    /// A here-document or here-string: the text, if all of it stands there.
    Text(Option<String>),
}

/// A simple command. One without words is a redirection alone, or assignments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Names and values before the program.
    pub(super) assignments: Vec<(String, Word)>,
    /// The program and its arguments.
    pub(super) words: Vec<Word>,
    /// Redirections.
    pub(super) redirects: Vec<Redirect>,
    /// Whether it may run more than once, so that `cd` adds up.
    pub(super) repeated: bool,
}

/// Variables that change nothing but how programs show things.
const HARMLESS: [&str; 14] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LINES",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TERM",
    "TZ",
];

/// Whether setting a variable cannot change which program runs or what it does beyond its output.
pub fn is_harmless_variable(name: &str) -> bool {
    HARMLESS.contains(&name)
}

/// Whether a loop or `read` may set a variable: none in capitals, and none of those by which zsh looks for programs and functions.
pub(super) fn is_harmless_loop_variable(name: &str) -> bool {
    const SPECIAL: [&str; 12] = [
        "path",
        "fpath",
        "cdpath",
        "manpath",
        "mailpath",
        "argv",
        "aliases",
        "commands",
        "functions",
        "options",
        "prompt",
        "module_path",
    ];
    !name.is_empty()
        && name
            .chars()
            .all(|found| found.is_ascii_lowercase() || found == '_')
        && !SPECIAL.contains(&name)
}

impl Simple {
    /// A program and its arguments.
    pub(super) fn of_words(words: Vec<Word>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.assignments.is_empty() && self.redirects.is_empty()
    }

    /// Every word, if all of each stands there.
    pub(super) fn texts(&self) -> Option<Vec<&str>> {
        self.words.iter().map(Word::text).collect()
    }

    /// The text of its last here-document, when that is its standard input and all of it stands there.
    pub(super) fn here_text(&self) -> Option<&str> {
        match self.redirects.as_slice() {
            [Redirect::Text(Some(text))] => Some(text),
            _ => None,
        }
    }
}

impl Findings<'_> {
    /// Looks at one command.
    pub(super) fn simple(&mut self, command: &Simple, depth: usize) {
        for (name, _) in &command.assignments {
            // Break it: let every variable through; `tool_gate::shell::a_variable_that_changes_programs_is_refused` fails.
            if !is_harmless_variable(name) {
                self.refuse(format!("it sets {name}, which may change what programs do"));
            }
        }
        for redirect in &command.redirects {
            match redirect {
                Redirect::To(word) => match word.text() {
                    Some(path) => self.writes(path),
                    None => self.refuse("it redirects to a file whose name is computed"),
                },
                Redirect::From(word) => programs::read_word(self, word, false),
                Redirect::Text(_) => {}
            }
        }
        if command.words.is_empty() {
            return;
        }
        if let Some(words) = command.texts()
            && self.producers.iter().any(|producer| {
                producer
                    .command
                    .iter()
                    .map(String::as_str)
                    .eq(words.iter().copied())
            })
        {
            return;
        }
        programs::look(self, command, depth);
    }
}
