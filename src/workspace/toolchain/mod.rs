//! How a project runs its own tests: found from the files it tracks, never from a log and never guessed.
//!
//! A command that the project's rules name (`test: [argv…]`) wins. Otherwise the nearest markers decide, in this order: a
//! declared package manager, a lockfile, a manifest, a task runner. What was found is kept with its evidence, so that the choice
//! is part of the provenance of a fix.

mod choose;
mod markers;
mod node;
mod python;
mod table;
mod tree;

pub use table::Ecosystem;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::change::{Oid, RepoPath, Sha256Digest};

use super::{RepositoryReader, WorkspaceError};

/// A file that spoke for the choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The file.
    pub file: RepoPath,
    /// SHA-256 of its bytes at that commit.
    pub sha256: Sha256Digest,
    /// What it says.
    pub why: String,
}

/// How to run a project's tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectedToolchain {
    /// Language or build system.
    pub ecosystem: Ecosystem,
    /// Directory of the project inside the repository, without slashes around it; empty for the top.
    pub root: String,
    /// Package manager or task runner, e.g. `cargo` or `pnpm`.
    pub manager: String,
    /// What spoke for it.
    pub evidence: Vec<Evidence>,
    /// The command, run in [`Self::root`].
    pub test: Vec<String>,
    /// Globs of the files that are tests, from the repository's top; `*` does not cross a slash.
    pub test_globs: Vec<String>,
    /// How sure the choice is, 0 to 1000; 1000 is a command that the project itself names.
    pub confidence: u16,
}

impl DetectedToolchain {
    /// The test globs, ready to match.
    ///
    /// # Errors
    /// A glob that cannot be parsed.
    pub fn matcher(&self) -> Result<TestFiles, WorkspaceError> {
        let malformed = |error: globset::Error| WorkspaceError::Unwritable {
            what: "the list of test files".to_owned(),
            reason: format!("{error}; correct the glob"),
        };
        let mut set = GlobSetBuilder::new();
        for glob in &self.test_globs {
            let glob = GlobBuilder::new(glob)
                .literal_separator(true)
                .build()
                .map_err(malformed)?;
            set.add(glob);
        }
        set.build().map(TestFiles).map_err(malformed)
    }
}

/// Decides which paths are test files.
#[derive(Debug, Clone)]
pub struct TestFiles(GlobSet);

impl TestFiles {
    /// Whether the path is a test file.
    pub fn contains(&self, path: &RepoPath) -> bool {
        use std::os::unix::ffi::OsStrExt as _;
        self.0.is_match(OsStr::from_bytes(path.as_bytes()))
    }
}

/// What detection came to. Only [`Self::Found`] is acted on; each of the others is an outcome that people see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detection {
    /// One way to run the tests.
    Found(DetectedToolchain),
    /// No file names a way to run tests.
    NoneFound,
    /// Several ways, and nothing decides between them.
    Ambiguous {
        /// Each as a phrase, e.g. `npm test in web`.
        candidates: Vec<String>,
    },
    /// The program is not installed on this machine.
    ToolMissing {
        /// The program.
        tool: String,
        /// What would have been run.
        toolchain: DetectedToolchain,
    },
}

impl Detection {
    /// The name of the outcome in records and on pages.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Found(_) => "toolchain-found",
            Self::NoneFound => "toolchain-not-found",
            Self::Ambiguous { .. } => "toolchain-ambiguous",
            Self::ToolMissing { .. } => "toolchain-missing",
        }
    }
}

impl std::fmt::Display for Detection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const MEND: &str = "name the command in the project's rules (test: [argv…])";
        match self {
            Self::Found(found) => {
                write!(f, "{} with {}", found.test.join(" "), found.manager)
            }
            Self::NoneFound => write!(f, "no tracked file says how the tests are run; {MEND}"),
            Self::Ambiguous { candidates } => write!(
                f,
                "the tests could be run by {}; {MEND}",
                candidates.join(", or by ")
            ),
            Self::ToolMissing { tool, toolchain } => write!(
                f,
                "the tests are run by `{}`, but {tool} is not installed on this machine; install it, or {MEND}",
                toolchain.test.join(" ")
            ),
        }
    }
}

/// Which programs this machine has.
pub trait Tools {
    /// Whether a program of this name, or at this path, can be executed.
    fn has(&self, program: &str) -> bool;
}

/// The programs on a search path.
#[derive(Debug, Clone)]
pub struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    /// A search path as the environment variable `PATH` holds it. Relative directories are left out: they would mean another
    /// program in every scratch tree.
    pub fn new(path: &OsString) -> Self {
        let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
        Self(directories.collect())
    }
}

impl Tools for SearchPath {
    fn has(&self, program: &str) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        self.0.iter().any(|directory| {
            std::fs::metadata(directory.join(program))
                .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
        })
    }
}

/// Finds how a project's tests are run at a commit.
///
/// `configured` is the command of the project's rules. `hints` are the files that the failure names; between several projects
/// in one repository the one that holds them all is chosen.
///
/// # Errors
/// The repository cannot be read. That nothing was found is a [`Detection`], not an error.
pub fn detect(
    repository: &RepositoryReader,
    commit: Oid,
    configured: Option<&[String]>,
    hints: &[RepoPath],
    tools: &dyn Tools,
) -> Result<Detection, WorkspaceError> {
    let tree = tree::ProjectTree::read(repository, commit)?;
    let candidates = markers::candidates(&tree)?;
    let found = match configured {
        Some(argv) if !argv.is_empty() => choose::configured(argv, &candidates),
        _ => match choose::among(&candidates, hints) {
            Ok(found) => found,
            Err(outcome) => return Ok(*outcome),
        },
    };
    Ok(choose::check_tool(found, &tree, tools))
}
