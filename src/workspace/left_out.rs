//! Which untracked files of a scratch tree are no part of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Repository, RepositoryInitOptions};
use tempfile::TempDir;

use crate::change::{Mode, RepoPath, Side};

use super::{RepositoryReader, TrustedRepository, WorkspaceError};

/// Longest `.gitignore` that is read, in bytes, and how many of them.
const IGNORE_BYTES: u64 = 1 << 20;
const IGNORE_FILES: usize = 1_000;

/// Directories that test runners and package managers leave behind, whatever the project ignores.
const BUILD_DIRECTORIES: [&[u8]; 13] = [
    b"__pycache__",
    b".pytest_cache",
    b".mypy_cache",
    b".ruff_cache",
    b".hypothesis",
    b".tox",
    b".nox",
    b".venv",
    b".eggs",
    b"node_modules",
    b".nyc_output",
    b".gradle",
    b".cache",
];
/// Endings of files that compilers leave behind.
const BUILD_FILES: [&[u8]; 3] = [b".pyc", b".pyo", b".egg-info"];

/// Decides which *untracked* files are left out of a change: those that the `.gitignore` files of the base commit ignore, and
/// the leftovers of well-known tools. What an agent writes into a `.gitignore` has no say, so that it can neither hide a file
/// from the change nor smuggle build output in. A file that the base tracks is never left out.
///
/// The rules are evaluated by the git library in an empty throw-away repository, beside the trusted one, that holds nothing
/// but the base's `.gitignore` files.
pub(super) struct LeftOut<'a> {
    rules: Repository,
    // Removed when dropped.
    _place: TempDir,
    base: &'a BTreeMap<RepoPath, Side>,
    tracked_directories: BTreeSet<&'a [u8]>,
}

impl<'a> LeftOut<'a> {
    pub(super) fn of_base(
        repository: &TrustedRepository,
        base: &'a BTreeMap<RepoPath, Side>,
    ) -> Result<Self, WorkspaceError> {
        let place = tempfile::Builder::new()
            .prefix("ignore-rules-")
            .tempdir_in(repository.path())
            .map_err(WorkspaceError::io(
                "creating a directory in",
                repository.path(),
            ))?;
        let doing = || WorkspaceError::git("preparing the base's ignore rules");
        let mut options = RepositoryInitOptions::new();
        options.external_template(false).no_reinit(true);
        let rules = Repository::init_opts(place.path(), &options).map_err(doing())?;
        // The machine's own ignore file must not decide what a change is.
        let nothing = place.path().join(".git").join("no-such-file");
        rules
            .config()
            .and_then(|mut config| {
                config.set_str("core.excludesFile", &nothing.to_string_lossy())?;
                config.set_bool("core.ignoreCase", false)
            })
            .map_err(doing())?;
        write_rules(repository, base, place.path())?;
        Ok(Self {
            rules,
            _place: place,
            base,
            tracked_directories: base
                .keys()
                .flat_map(|path| above(path.as_bytes()))
                .collect(),
        })
    }

    /// Whether a file of the scratch tree is left out.
    pub(super) fn file(&self, path: &RepoPath) -> Result<bool, WorkspaceError> {
        if self.base.contains_key(path) {
            return Ok(false);
        }
        let leftover = BUILD_FILES
            .iter()
            .any(|ending| path.as_bytes().ends_with(ending));
        Ok(leftover || self.matches(path.as_bytes())?)
    }

    /// Whether a whole directory is left out, so that it is not even looked into.
    pub(super) fn directory(&self, path: &RepoPath) -> Result<bool, WorkspaceError> {
        if self.tracked_directories.contains(path.as_bytes()) {
            return Ok(false);
        }
        if self.is_build_output(path.as_bytes()) {
            return Ok(true);
        }
        let mut slashed = path.as_bytes().to_vec();
        slashed.push(b'/');
        self.matches(&slashed)
    }

    fn is_build_output(&self, path: &[u8]) -> bool {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => path.split_at(slash + 1),
            None => (&b""[..], path),
        };
        let beside = |file: &[u8]| {
            RepoPath::from_bytes(&[parent, file].concat())
                .is_ok_and(|path| self.base.contains_key(&path))
        };
        BUILD_DIRECTORIES.contains(&name)
            || BUILD_FILES.iter().any(|ending| name.ends_with(ending))
            || (name == b"target" && (beside(b"Cargo.toml") || beside(b"pom.xml")))
    }

    fn matches(&self, path: &[u8]) -> Result<bool, WorkspaceError> {
        self.rules
            .is_path_ignored(Path::new(OsStr::from_bytes(path)))
            .map_err(WorkspaceError::git("matching a path against ignore rules"))
    }
}

fn write_rules(
    reader: &RepositoryReader,
    base: &BTreeMap<RepoPath, Side>,
    place: &Path,
) -> Result<(), WorkspaceError> {
    let is_rules = |path: &RepoPath| {
        let bytes = path.as_bytes();
        bytes == b".gitignore" || bytes.ends_with(b"/.gitignore")
    };
    let files = base
        .iter()
        .filter(|(path, side)| {
            is_rules(path) && matches!(side.mode, Mode::Regular | Mode::Executable)
        })
        .take(IGNORE_FILES);
    for (path, side) in files {
        let target = place.join(OsStr::from_bytes(path.as_bytes()));
        let bytes = reader.read_blob(side.oid, IGNORE_BYTES)?;
        let parent = target.parent().unwrap_or(place);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&target, bytes))
            .map_err(WorkspaceError::io("writing ignore rules to", &target))?;
    }
    Ok(())
}

/// Every directory above a path.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .filter_map(|(at, _)| path.get(..at))
}
