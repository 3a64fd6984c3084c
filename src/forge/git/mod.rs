//! The git executable over one bare repository: everything git-shaped that the forge says is computed here.

mod difference;
mod inspect;
mod stamp;
mod write;

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::ForgeError;

pub(crate) use difference::{Comparison, FileChange};
pub(crate) use inspect::{CommitFacts, Signature, TreeEntry, valid_name};
pub(crate) use stamp::ReferenceStamp;
pub use write::FileEdit;
pub(crate) use write::{NewCommit, Person};

/// The id of a git object: forty lower-case hex digits (SHA-1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(String);

impl ObjectId {
    /// Reads a full id; `None` for anything but forty hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .then(|| Self(text.to_ascii_lowercase()))
    }

    /// The forty digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id git writes where there is no object.
    pub(crate) fn zero() -> Self {
        Self("0".repeat(40))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl PartialEq<str> for ObjectId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ObjectId {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// What a finished git command left.
pub(crate) struct Finished {
    /// The exit code; -1 when a signal ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// The last part of standard error, for messages.
    pub(crate) complaint: String,
}

/// One bare repository.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    directory: PathBuf,
}

impl Git {
    /// Makes an empty bare repository whose HEAD is `branch`.
    pub(crate) fn initialise(directory: &Path, branch: &str) -> Result<Self, ForgeError> {
        let git = Self {
            directory: directory.to_path_buf(),
        };
        let head = format!("--initial-branch={branch}");
        git.run(&[
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--object-format=sha1",
            &head,
        ])?;
        Ok(git)
    }

    /// A copy of a repository in which nothing happens any more, made without git: its files are all there is to it.
    pub(crate) fn copied_from(source: &Path, directory: &Path) -> Result<Self, ForgeError> {
        let failed = |source| ForgeError::Folder {
            path: directory.to_path_buf(),
            source,
        };
        copy_folder(source, directory).map_err(failed)?;
        Ok(Self {
            directory: directory.to_path_buf(),
        })
    }

    /// Where the repository lies.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A command that sees nothing of the user's configuration, credentials or replacement objects.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir("/")
            .env_clear()
            .envs(closed_environment())
            .env("GIT_DIR", &self.directory);
        command
    }

    /// Runs git to its end with `input` on standard input.
    pub(crate) fn attempt(&self, arguments: &[&str], input: &[u8]) -> Result<Finished, ForgeError> {
        let unavailable = |source| ForgeError::GitUnavailable {
            command: arguments.join(" "),
            source,
        };
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(unavailable)?;
        let stdin = child.stdin.take();
        // Writing beside reading: git may answer before it has read everything, and both pipes are of limited size.
        let output = std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // A broken pipe only says that git did not want the rest; its exit code tells whether that is an error.
                scope.spawn(move || stdin.write_all(input).is_ok());
            }
            child.wait_with_output()
        });
        let output = output.map_err(unavailable)?;
        Ok(Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            complaint: last_lines(&output.stderr),
        })
    }

    /// Runs git and demands exit code 0.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, ForgeError> {
        self.run_with(arguments, b"")
    }

    /// Runs git with standard input and demands exit code 0.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, ForgeError> {
        let finished = self.attempt(arguments, input)?;
        if finished.code == 0 {
            Ok(finished.stdout)
        } else {
            Err(finished.refused(arguments))
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Finished {
    /// The error for an exit code that was not expected.
    pub(crate) fn refused(&self, arguments: &[&str]) -> ForgeError {
        ForgeError::Git {
            command: arguments.join(" "),
            detail: format!("exit code {} ({})", self.code, self.complaint),
        }
    }
}

/// Settings that the answers of every git process must not lack.
pub(crate) const CLOSED_SETTINGS: [(&str, &str); 11] = [
    ("core.hooksPath", "/dev/null"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("receive.autogc", "false"),
    ("receive.fsckObjects", "true"),
    ("receive.unpackLimit", "1"),
    ("http.receivepack", "true"),
    ("receive.hideRefs", "refs/pull"),
    ("transfer.hideRefs", "refs/forge"),
    ("uploadpack.allowFilter", "true"),
    ("uploadpack.allowAnySHA1InWant", "true"),
];

/// The environment of every git process of the forge: closed against the machine's and the user's configuration, and
/// with the settings that answers must not depend on.
pub(crate) fn closed_environment() -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let mut environment: Vec<(String, String)> = [
        ("PATH", path.as_str()),
        ("HOME", "/nonexistent"),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_PROTOCOL_FROM_USER", "0"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    environment.push((
        "GIT_CONFIG_COUNT".to_owned(),
        CLOSED_SETTINGS.len().to_string(),
    ));
    for (index, (key, value)) in CLOSED_SETTINGS.into_iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{index}"), key.to_owned()));
        environment.push((format!("GIT_CONFIG_VALUE_{index}"), value.to_owned()));
    }
    environment
}

/// At most the last 500 characters of what git complained about.
fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let start = text
        .char_indices()
        .rev()
        .nth(499)
        .map_or(0, |(index, _)| index);
    text[start..].replace('\n', "; ")
}
