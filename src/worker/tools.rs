//! Which toolchains of this machine a project's tests may see inside the sandbox.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::workspace::toolchain::SearchPath;

/// Folders that every sandbox shows anyway.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"];

/// Programs beyond the system's own: the folders of the search path, and what toolchains keep beside them. Homes are never
/// shown whole, since they hold credentials (`~/.cargo/credentials.toml`, `~/.npmrc`).
#[derive(Debug, Clone)]
pub struct Tools {
    path: OsString,
    readable: Vec<PathBuf>,
    variables: Vec<(String, String)>,
}

impl Tools {
    /// Reads the search path, and where rustup keeps its toolchains.
    pub fn find(path: OsString, home: Option<&Path>, rustup_home: Option<PathBuf>) -> Self {
        let mut readable = BTreeSet::new();
        let outside = |folder: &Path| {
            folder.is_absolute() && !SYSTEM.iter().any(|system| folder.starts_with(system))
        };
        for folder in std::env::split_paths(&path).filter(|folder| outside(folder)) {
            if folder.is_dir() {
                readable.extend(support_of(&folder));
                readable.insert(folder);
            }
        }
        let mut variables = Vec::new();
        let rustup = rustup_home.or_else(|| home.map(|home| home.join(".rustup")));
        if let Some(rustup) = rustup.filter(|folder| folder.is_dir()) {
            variables.push(("RUSTUP_HOME".to_owned(), rustup.display().to_string()));
            readable.insert(rustup);
        }
        Self {
            path,
            readable: readable.into_iter().collect(),
            variables,
        }
    }

    /// What this process would use.
    pub fn of_process() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        Self::find(path, home.as_deref(), rustup)
    }

    /// The programs, to see whether one is installed.
    pub(super) fn search_path(&self) -> SearchPath {
        SearchPath::new(&self.path)
    }

    /// Folders to show, read-only.
    pub fn readable(&self) -> &[PathBuf] {
        &self.readable
    }

    /// Variables for a program whose private home is `home`.
    pub(super) fn variables(&self, home: &Path) -> Vec<(String, String)> {
        let mut variables = self.shared_variables();
        variables.push(("HOME".to_owned(), home.display().to_string()));
        let cargo = home.join("cargo").display().to_string();
        variables.push(("CARGO_HOME".to_owned(), cargo));
        variables
    }

    /// Variables for any program in the sandbox, which has a home of its own there.
    pub fn shared_variables(&self) -> Vec<(String, String)> {
        let mut variables = self.variables.clone();
        let absolute = std::env::split_paths(&self.path).filter(|folder| folder.is_absolute());
        let path = std::env::join_paths(absolute).unwrap_or_default();
        variables.push(("PATH".to_owned(), path.to_string_lossy().into_owned()));
        // Python takes a compiled file for current when its source has the same second and length: an edit right after a run was not
        // seen by the next run (`worker::builtin`, three of ten times).
        variables.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
        // There is no network: without this cargo tries, waits and fails in other words.
        variables.push(("CARGO_NET_OFFLINE".to_owned(), "true".to_owned()));
        variables
    }
}

/// What a folder of programs needs beside it: `PREFIX/bin` its `lib` and `share`, a folder of shims its version manager's root.
fn support_of(folder: &Path) -> Vec<PathBuf> {
    let Some(prefix) = folder.parent() else {
        return Vec::new();
    };
    let beside = [
        "lib", "lib64", "libexec", "share", "include", "versions", "version",
    ];
    beside
        .into_iter()
        .map(|name| prefix.join(name))
        .filter(|path| path.exists())
        .collect()
}
