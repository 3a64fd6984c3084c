//! Trusted repositories and scratch trees: what is read is what git has, whatever an agent or a project does to hide it.

mod languages;
mod objects;
mod proof;
mod red_green;
mod repository;
mod scratch;
mod toolchain;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use caretaker::change::{Mode, Oid, RepoPath};
use caretaker::workspace::TrustedRepository;
use tempfile::TempDir;

/// A trusted repository in a directory of its own.
struct Bench {
    place: TempDir,
    repository: TrustedRepository,
}

/// Content of a tree: path, mode and bytes. For a submodule the bytes are the 40 digits of a commit.
type Files = BTreeMap<Vec<u8>, (Mode, Vec<u8>)>;

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let repository = TrustedRepository::open_or_create(&place.path().join("trusted")).unwrap();
        Self { place, repository }
    }

    /// Runs git on the trusted repository and gives what it prints.
    fn git(&self, arguments: &[&str], stdin: &[u8]) -> Vec<u8> {
        let index = self.place.path().join("index");
        git(
            self.repository.path(),
            arguments,
            stdin,
            &[("GIT_INDEX_FILE", index.as_os_str())],
        )
    }

    fn git_oid(&self, arguments: &[&str], stdin: &[u8]) -> Oid {
        oid(&self.git(arguments, stdin))
    }

    /// A tree made by git itself.
    fn tree(&self, files: &Files) -> Oid {
        drop(std::fs::remove_file(self.place.path().join("index")));
        let mut listing = Vec::new();
        for (path, (mode, bytes)) in files {
            let id = if *mode == Mode::Gitlink {
                String::from_utf8(bytes.clone()).unwrap()
            } else {
                self.git_oid(&["hash-object", "-w", "--stdin"], bytes)
                    .to_string()
            };
            listing.extend_from_slice(format!("{} {id}\t", mode.as_str()).as_bytes());
            listing.extend_from_slice(path);
            listing.push(0);
        }
        self.git(&["update-index", "-z", "--index-info"], &listing);
        self.git_oid(&["write-tree", "--missing-ok"], b"")
    }

    /// A commit made by git itself.
    fn commit(&self, tree: Oid, parents: &[Oid]) -> Oid {
        let tree = tree.to_string();
        let mut arguments = vec!["commit-tree", tree.as_str(), "-m", "made by git"];
        let parents: Vec<String> = parents.iter().map(Oid::to_string).collect();
        for parent in &parents {
            arguments.extend(["-p", parent]);
        }
        self.git_oid(&arguments, b"")
    }
}

fn git(
    directory: &Path,
    arguments: &[&str],
    stdin: &[u8],
    environment: &[(&str, &OsStr)],
) -> Vec<u8> {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_AUTHOR_DATE", "1700000000 +0000")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_DATE", "1700000000 +0000")
        .envs(environment.iter().copied())
        .current_dir(directory)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("git is installed");
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn oid(printed: &[u8]) -> Oid {
    std::str::from_utf8(printed)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn files(listing: &[(&str, Mode, &str)]) -> Files {
    listing
        .iter()
        .map(|(path, mode, bytes)| {
            let bytes = bytes.as_bytes().to_vec();
            (path.as_bytes().to_vec(), (*mode, bytes))
        })
        .collect()
}

/// Ordinary files only.
fn sources(listing: &[(&str, &str)]) -> Files {
    let listing: Vec<(&str, Mode, &str)> = listing
        .iter()
        .map(|(path, bytes)| (*path, Mode::Regular, *bytes))
        .collect();
    files(&listing)
}
