//! What a shell command writes, as far as that can be told without running it.
//!
//! A command is classified when every program in it is known, every word that matters stands there as it is, and so every file it
//! writes is named. Everything else is *unclassified*, with a reason, and the gate refuses that outside the sandbox. So the reader
//! may be small: a construct it does not know makes the command unclassified, never harmless. It has no recursion that an input
//! can deepen without bound, since a stack that overflows would end the gate by a signal, which most clients take for consent.
//!
//! Grammar: POSIX.1-2017, XCU 2, with bash's additions where an agent's commands use them.

mod copying;
mod git;
mod nested;
mod programs;
mod reader;
mod reading;
mod sed;
mod simple;
mod word;
mod writing;

use super::arguments::MAXIMUM_PATHS;
use super::policy::Producer;
use super::touch::{Access, Mention, Touch};
use reader::Reader;
use simple::Simple;
pub use simple::is_harmless_variable;
use word::Word;

/// Longest command that is read, in bytes.
const MAXIMUM_COMMAND: usize = 1 << 20;
/// Deepest nesting of substitutions, subshells and commands given as text.
const DEPTH: usize = 16;
/// Most places where a command may stand after `cd`.
const MAXIMUM_FOLDERS: usize = 8;

/// What a command touches, and what about it cannot be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shell {
    /// Files that it reads and writes.
    pub touches: Vec<Touch>,
    /// What it reads, in any way that it may be spelled.
    pub mentions: Vec<Mention>,
    /// Why it is unclassified; empty when it is not.
    pub unclassified: Vec<String>,
    /// Folders in which git runs. It takes its configuration, and programs to run, from any folder that looks like a repository,
    /// so each must be the worktree's top.
    pub git_folders: Vec<Touch>,
}

impl Shell {
    /// A command of which nothing can be told.
    pub(super) fn unclassified(reason: &str) -> Self {
        Self {
            unclassified: vec![reason.to_owned()],
            ..Self::default()
        }
    }

    /// How many paths it names.
    pub(super) fn count(&self) -> usize {
        self.touches.len() + self.mentions.len()
    }

    /// What it does together with another command.
    pub(super) fn join(&mut self, other: Self) {
        self.touches.extend(other.touches);
        self.mentions.extend(other.mentions);
        self.unclassified.extend(other.unclassified);
        self.git_folders.extend(other.git_folders);
    }
}

/// The name of a program that is given by its name alone or by its place in a folder of the system.
pub(super) fn system_program(program: &str) -> Option<&str> {
    let name = programs::SYSTEM
        .iter()
        .find_map(|folder| program.strip_prefix(folder))
        .unwrap_or(program);
    (!name.contains('/')).then_some(name)
}

/// Classifies a command text that starts in each of `starts` (in the client's folder when there are none).
pub fn classify(text: &str, starts: &[String], producers: &[Producer]) -> Shell {
    let mut findings = Findings::new(starts, producers);
    if text.len() > MAXIMUM_COMMAND {
        return Shell::unclassified("it is longer than a command that is read");
    }
    findings.script(text, 0);
    findings.shell
}

/// Classifies one program with its arguments, which no shell reads.
pub fn classify_words(words: Vec<String>, starts: &[String], producers: &[Producer]) -> Shell {
    let mut findings = Findings::new(starts, producers);
    let simple = Simple::of_words(words.into_iter().map(Word::literal).collect());
    findings.simple(&simple, 0);
    findings.shell
}

/// The simple commands of a text by their words, and whether any of them writes to a file by redirection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commands {
    /// The words of each; those of commands given as text to a shell as well.
    pub commands: Vec<Vec<String>>,
    /// Whether output goes to a file.
    pub redirects: bool,
}

/// The words of every simple command of a text; none when some of them do not stand there as they are.
pub fn commands(text: &str) -> Option<Commands> {
    let mut found = Commands::default();
    (text.len() <= MAXIMUM_COMMAND && found.collect(text, DEPTH)).then_some(found)
}

/// The same of a program with its arguments, which no shell reads.
pub(super) fn commands_of_words(words: Vec<String>) -> Option<Commands> {
    let mut found = Commands::default();
    let simple = Simple::of_words(words.into_iter().map(Word::literal).collect());
    found.take(&simple, DEPTH).then_some(found)
}

impl Commands {
    /// The same commands behind these.
    pub fn join(&mut self, other: Self) {
        self.commands.extend(other.commands);
        self.redirects |= other.redirects;
    }

    fn collect(&mut self, text: &str, depth: usize) -> bool {
        let Ok(read) = Reader::read(text, depth) else {
            return false;
        };
        read.iter().all(|simple| self.take(simple, depth))
    }

    fn take(&mut self, simple: &Simple, depth: usize) -> bool {
        let to_file = |redirect: &simple::Redirect| matches!(redirect, simple::Redirect::To(_));
        self.redirects |= simple.redirects.iter().any(to_file);
        let Some(words) = simple.texts() else {
            return false;
        };
        let nested = match words.as_slice() {
            ["eval", text @ ..] => Some(text.join(" ")),
            _ => text_for_a_shell(&words).map(str::to_owned),
        };
        self.commands
            .push(words.into_iter().map(str::to_owned).collect());
        match nested {
            Some(nested) => depth > 0 && self.collect(&nested, depth - 1),
            None => true,
        }
    }
}

/// What a shell among the words is given to run (`sh -c TEXT`).
fn text_for_a_shell<'a>(words: &[&'a str]) -> Option<&'a str> {
    let is_shell = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash")
    };
    let shell = words.iter().position(is_shell)?;
    let options = words.get(shell + 1..)?;
    let takes_text =
        |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let option = options.iter().position(takes_text)?;
    options.get(option + 1).copied()
}

/// What is found while commands are looked at in their order.
struct Findings<'a> {
    shell: Shell,
    /// Where relative paths may count from; the empty one is the client's folder.
    folders: Vec<String>,
    /// Links and moved files that the command itself makes: where they lead cannot be looked up before it runs.
    made: Vec<String>,
    producers: &'a [Producer],
}

impl<'a> Findings<'a> {
    fn new(starts: &[String], producers: &'a [Producer]) -> Self {
        Self {
            shell: Shell::default(),
            folders: if starts.is_empty() {
                vec![String::new()]
            } else {
                starts.to_vec()
            },
            made: Vec::new(),
            producers,
        }
    }

    /// Looks at a text as a shell reads it.
    fn script(&mut self, text: &str, depth: usize) {
        match Reader::read(text, DEPTH.saturating_sub(depth)) {
            Ok(commands) => {
                for command in &commands {
                    self.simple(command, depth);
                }
            }
            Err(reason) => self.refuse(reason),
        }
    }

    /// Records why the command is unclassified.
    fn refuse(&mut self, reason: impl Into<String>) {
        self.shell.unclassified.push(reason.into());
    }

    /// Records a file that is written.
    fn writes(&mut self, path: &str) {
        self.touch(path, Access::Write);
    }

    /// Records a folder or file that is removed or moved with what lies below it.
    fn moves(&mut self, path: &str) {
        let before = self.shell.touches.len();
        self.touch(path, Access::Write);
        for touch in self.shell.touches.iter_mut().skip(before) {
            touch.whole = true;
        }
    }

    /// Records a file that is read.
    fn reads(&mut self, path: &str) {
        self.touch(path, Access::Read);
    }

    /// Records a text that may be read as a path or a pattern.
    fn mentions(&mut self, text: &str, search: bool, pattern: bool) {
        if self.is_full() {
            return;
        }
        for text in self.places(text) {
            self.shell.mentions.push(Mention {
                text,
                search,
                pattern,
            });
        }
    }

    /// Whether it names more than one call may, so that nothing more has to be kept.
    fn is_full(&self) -> bool {
        self.shell.count() > MAXIMUM_PATHS
    }

    /// Records a file that is written, whose name counts from the worktree's top as well.
    fn writes_from_top(&mut self, path: &str) {
        self.touch(path, Access::Write);
        self.shell.touches.push(Touch {
            from_top: true,
            ..Touch::new(path, Access::Write)
        });
    }

    /// Records where git runs.
    fn runs_at_top(&mut self, folder: &str) {
        for place in self.places(folder) {
            let place = if place.is_empty() { "." } else { &place };
            self.shell.git_folders.push(Touch::new(place, Access::Read));
        }
    }

    /// Records a link or a moved file: what later commands find there is not there yet.
    fn makes(&mut self, path: &str) {
        let paths: Vec<String> = self.places(path);
        self.made.extend(paths);
    }

    fn places(&self, path: &str) -> Vec<String> {
        self.folders
            .iter()
            .map(|folder| joined(folder, path))
            .collect()
    }

    fn touch(&mut self, given: &str, access: Access) {
        if access == Access::Write && DEVICES.contains(&given) {
            return;
        }
        if self.is_full() {
            return;
        }
        for path in self.places(given) {
            let plain = plain(&path);
            // Break it: leave this out; `tool_gate::shell::a_link_made_by_the_same_command_is_not_trusted` fails.
            if access == Access::Write
                && self.made.iter().any(|made| {
                    let made = self::plain(made);
                    plain == made
                        || plain
                            .strip_prefix(&made)
                            .is_some_and(|rest| rest.starts_with('/'))
                })
            {
                self.refuse(format!(
                    "it writes to {given}, which it has just linked or moved"
                ));
            }
            self.shell.touches.push(Touch {
                given: given.to_owned(),
                path,
                from_top: false,
                access,
                whole: false,
            });
        }
    }

    /// Follows `cd`.
    fn enters(&mut self, folder: &str) {
        if folder.split('/').any(|name| name == "..") {
            self.refuse("it goes up with cd, and where that is depends on links");
            return;
        }
        for place in self.places(folder) {
            if !self.folders.contains(&place) {
                self.folders.push(place);
            }
        }
        if self.folders.len() > MAXIMUM_FOLDERS {
            self.refuse("it changes folders too often");
            self.folders.truncate(MAXIMUM_FOLDERS);
        }
    }
}

/// Devices that swallow or show what is written to them.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

fn joined(folder: &str, path: &str) -> String {
    if folder.is_empty() || path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{path}")
    }
}

/// A path without what changes nothing, to compare two.
fn plain(path: &str) -> String {
    let mut out = if path.starts_with('/') { "/" } else { "" }.to_owned();
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        if !out.is_empty() && !out.ends_with('/') {
            out.push('/');
        }
        out.push_str(name);
    }
    out
}
