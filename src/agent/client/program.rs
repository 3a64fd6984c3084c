//! A client's program: where it is, and what of the disk belongs to it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::Client;

/// How far above a program its package's folder may be.
const HIGHEST: usize = 6;

/// A program with its first arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The words; the first is absolute.
    pub argv: Vec<OsString>,
    /// What the sandbox has to show for it.
    pub readable: Vec<PathBuf>,
}

impl Program {
    /// The configured words, or else the client's own name; a program without a slash is looked up in `search` (`PATH`).
    ///
    /// # Errors
    /// It is not there: in words, with the mend.
    pub fn find(
        client: Client,
        command: &[String],
        search: Option<&OsStr>,
    ) -> Result<Self, String> {
        let own = [client.name().to_owned()];
        let words = if command.is_empty() { &own } else { command };
        let first = words.first().map(String::as_str).unwrap_or_default();
        let found = if first.contains('/') {
            Some(PathBuf::from(first)).filter(|path| path.is_absolute() && path.is_file())
        } else {
            search
                .map(std::env::split_paths)
                .into_iter()
                .flatten()
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join(first))
                .find(|path| path.is_file())
        };
        let found = found.ok_or_else(|| {
            format!(
                "the program {first:?} of {} is not found; install it, or name it by an absolute path under agent.command",
                client.shown()
            )
        })?;
        let mut program = Self {
            argv: Vec::new(),
            readable: Vec::new(),
        };
        program.add(&found)?;
        for word in &words[1..] {
            let path = Path::new(word);
            if path.is_absolute() && path.is_file() {
                program.add(path)?;
            } else {
                program.argv.push(word.into());
            }
        }
        Ok(program)
    }

    /// A word that is a file, by its own name without links.
    fn add(&mut self, path: &Path) -> Result<(), String> {
        let real = std::fs::canonicalize(path)
            .map_err(|error| format!("the file {} cannot be reached: {error}", path.display()))?;
        let belongs = package(&real);
        if !self.readable.contains(&belongs) {
            self.readable.push(belongs);
        }
        self.argv.push(real.into());
        Ok(())
    }
}

/// The folder of the package that a file belongs to: the outermost `node_modules` above it, or the nearest folder with a
/// `package.json`. A program that belongs to none is only itself.
fn package(file: &Path) -> PathBuf {
    let modules = file
        .ancestors()
        .filter(|folder| folder.file_name() == Some(OsStr::new("node_modules")))
        .last();
    let described = || {
        file.ancestors()
            .skip(1)
            .take(HIGHEST)
            .find(|folder| folder.join("package.json").is_file())
    };
    modules.or_else(described).unwrap_or(file).to_owned()
}
