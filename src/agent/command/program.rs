//! Which program is meant by the configured words.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Why configured words name no program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Nothing to run.
    #[error("reading agent.command: the list is empty; name a program, e.g. [python3, coder.py]")]
    Empty,
    /// The program is written as a path, but there is no such file.
    #[error(
        "reading agent.command: {program:?} is not a file, looked for in {folder:?}; write a path relative to the configuration file, an absolute path, or the name of a program on PATH"
    )]
    Missing {
        /// The program as written.
        program: String,
        /// The configuration file's folder.
        folder: PathBuf,
    },
    /// A file of the command cannot be read.
    #[error("reading agent.command: the file {file:?} cannot be reached: {reason}")]
    Unreachable {
        /// The file.
        file: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    /// A word that is no file beside the configuration, but one in the repository being worked on.
    #[error(
        "agent.command: {word:?} is no file beside the configuration file but names a file of the repository, which must not become part of the coder; put the coder's file beside the configuration, or write its absolute path"
    )]
    InRepository {
        /// The word.
        word: String,
    },
}

/// The command line, with the files that belong to it.
pub(super) struct Program {
    /// Words without the last one (`diagnose` or `fix`).
    pub(super) argv: Vec<OsString>,
    /// Files to be mounted read-only.
    pub(super) files: Vec<PathBuf>,
    /// The program and its files by name, for people and records; other words may hold what should not be recorded.
    pub(super) shown: String,
    /// Relative words that are no files; none of them may name a file of the repository.
    unresolved: Vec<String>,
}

impl Program {
    /// Resolves words that exist as files against `folder`; the others stay as they are.
    pub(super) fn resolve(argv: &[String], folder: &Path) -> Result<Self, ProgramError> {
        let first = argv.first().filter(|program| !program.is_empty());
        let first = first.ok_or(ProgramError::Empty)?;
        if first.contains('/') && !folder.join(first).is_file() {
            return Err(ProgramError::Missing {
                program: first.clone(),
                folder: folder.to_owned(),
            });
        }
        let mut program = Self {
            argv: Vec::new(),
            files: Vec::new(),
            shown: String::new(),
            unresolved: Vec::new(),
        };
        for word in argv {
            program.add(word, folder)?;
        }
        let is_shown =
            |(index, word): &(usize, &String)| *index == 0 || folder.join(word).is_file();
        let shown = argv.iter().enumerate().filter(is_shown);
        let names = shown.map(|(_, word)| word.rsplit('/').next().unwrap_or(word));
        program.shown = names.collect::<Vec<_>>().join(" ");
        Ok(program)
    }

    fn add(&mut self, word: &str, folder: &Path) -> Result<(), ProgramError> {
        let path = folder.join(word);
        if word.is_empty() || word.starts_with('-') || !path.is_file() {
            self.argv.push(word.into());
            self.unresolved.push(word.to_owned());
            return Ok(());
        }
        let real = std::fs::canonicalize(&path).map_err(|reason| ProgramError::Unreachable {
            file: path.clone(),
            reason: reason.to_string(),
        })?;
        if Path::new(word).is_absolute() {
            // Kept as written, since some programs look at the name they are called by; a link needs both ends.
            self.argv.push(word.into());
            if path != real {
                self.files.push(path);
            }
        } else {
            self.argv.push(real.clone().into());
        }
        self.files.push(real);
        Ok(())
    }

    /// Refuses a tree that holds a file of an unresolved word's name: an interpreter started there would run it.
    pub(super) fn check_tree(&self, tree: &Path) -> Result<(), ProgramError> {
        let in_tree = |word: &&String| {
            !word.is_empty() && !Path::new(word).is_absolute() && tree.join(word).is_file()
        };
        // The program itself is looked up on PATH alone.
        let arguments = self
            .unresolved
            .iter()
            .filter(|word| self.argv.first().is_none_or(|first| first != word.as_str()));
        match arguments.into_iter().find(in_tree) {
            Some(word) => Err(ProgramError::InRepository { word: word.clone() }),
            None => Ok(()),
        }
    }
}
