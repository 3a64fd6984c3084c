//! Running a session's evidence producers: program and arguments without a shell, in the worktree, within limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::registration::Registered;
use crate::change::Sha256Digest;
use crate::sandbox::{Command, Limits, Outcome, Sandbox, SandboxError, Status};
use crate::tool_gate::{Producer, ProducerKind};

/// Longest run of one producer.
pub const PRODUCER_WITHIN: Duration = Duration::from_mins(10);
/// Most that a producer may print on each stream, in bytes; more ends it.
const OUTPUT: u64 = 8 << 20;
/// Variables that a producer is given outside of a sandbox, where they are set. None of them is a secret.
const PASSED_ON: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
];

/// What producers may see beside the worktree and the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerTools {
    /// Variables, in place of those of this process.
    pub environment: Vec<(String, String)>,
    /// Folders to read, such as toolchains.
    pub readable: Vec<PathBuf>,
    /// Folders to write, such as a private home.
    pub writable: Vec<PathBuf>,
    /// Whether they may talk over a loopback of their own.
    pub private_loopback: bool,
}

/// What became of one producer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// What it produces.
    pub kind: ProducerKind,
    /// Whether the session may not end before it exits with 0.
    pub required: bool,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The folder that it ran in, where that is not the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// `passed`, `failed`, `timed-out`, `output-limit`, `process-limit`, `signalled` or `not-started`.
    pub status: String,
    /// Its exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// SHA-256 of its standard output, as far as it is kept.
    pub stdout_sha256: Sha256Digest,
    /// SHA-256 of its standard error, as far as it is kept.
    pub stderr_sha256: Sha256Digest,
    /// Whether it printed more than is kept.
    pub cut: bool,
    /// Time on the wall, in milliseconds.
    pub elapsed_ms: u64,
}

impl Item {
    /// Whether it ended by itself with 0.
    pub fn passed(&self) -> bool {
        self.exit_code == Some(0) && self.status == "passed"
    }
}

/// Runs producers one after the other, all of them within `within`.
pub(super) async fn run(
    session: &Registered,
    sandbox: &Sandbox,
    tools: &ProducerTools,
    within: Duration,
    only_required: bool,
) -> Vec<Item> {
    let end = tokio::time::Instant::now() + within;
    let mut items = Vec::new();
    let wanted = session
        .policy
        .producers()
        .iter()
        .filter(|producer| producer.required || !only_required);
    for producer in wanted {
        let left = end.saturating_duration_since(tokio::time::Instant::now());
        let item = if left.is_zero() {
            item(producer, "timed-out", None, None)
        } else {
            let within = left.min(PRODUCER_WITHIN);
            match place(producer, &session.worktree) {
                Some(place) => {
                    let mut command = command(producer, &place, sandbox, tools, within);
                    if place != session.worktree {
                        command.writable.push(session.worktree.clone());
                    }
                    judged(producer, sandbox.run(&command).await)
                }
                None => item(producer, "not-started", None, None),
            }
        };
        items.push(item);
    }
    items
}

/// Where a producer runs. The agent can put a link in a folder's place: one that leads out of the worktree is none.
fn place(producer: &Producer, worktree: &Path) -> Option<PathBuf> {
    let Some(folder) = &producer.folder else {
        return Some(worktree.to_owned());
    };
    let place = std::fs::canonicalize(worktree.join(folder)).ok()?;
    // Break it: leave this out; `hook_gate::completion::a_producer_runs_in_its_folder_and_not_behind_a_link` fails.
    place.starts_with(worktree).then_some(place)
}

fn command(
    producer: &Producer,
    worktree: &Path,
    sandbox: &Sandbox,
    tools: &ProducerTools,
    within: Duration,
) -> Command {
    let mut command = Command::new(producer.command.iter(), worktree);
    command.limits = Limits {
        wall: within,
        output: OUTPUT,
        ..Limits::default()
    };
    let names: &[&str] = if sandbox.confines() {
        &["PATH", "LANG", "LC_ALL"]
    } else {
        &PASSED_ON
    };
    // Break it: pass everything on; `hook_gate::completion::producers_see_no_secrets` fails.
    command.environment = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
        .filter(|(name, _)| tools.environment.iter().all(|(own, _)| own != name))
        .collect();
    command
        .environment
        .extend(tools.environment.iter().cloned());
    command.readable.extend(tools.readable.iter().cloned());
    command.writable.extend(tools.writable.iter().cloned());
    command.private_loopback = tools.private_loopback;
    command
}

fn judged(producer: &Producer, outcome: Result<Outcome, SandboxError>) -> Item {
    let Ok(outcome) = outcome else {
        return item(producer, "not-started", None, None);
    };
    let (status, code) = match outcome.status {
        Status::Exited(0) => ("passed", Some(0)),
        Status::Exited(code) => ("failed", Some(code)),
        Status::Signalled(_) => ("signalled", None),
        Status::TimedOut => ("timed-out", None),
        Status::OutputLimit => ("output-limit", None),
        Status::ProcessLimit => ("process-limit", None),
    };
    item(producer, status, code, Some(&outcome))
}

fn item(
    producer: &Producer,
    status: &str,
    exit_code: Option<i32>,
    outcome: Option<&Outcome>,
) -> Item {
    let digest = |bytes: Option<&[u8]>| Sha256Digest::of(bytes.unwrap_or_default());
    Item {
        name: producer.name.clone(),
        kind: producer.kind,
        required: producer.required,
        command: producer.command.clone(),
        folder: producer.folder.clone(),
        status: status.to_owned(),
        exit_code,
        stdout_sha256: digest(outcome.map(|outcome| outcome.stdout.bytes.as_slice())),
        stderr_sha256: digest(outcome.map(|outcome| outcome.stderr.bytes.as_slice())),
        cut: outcome.is_some_and(|outcome| outcome.stdout.cut || outcome.stderr.cut),
        elapsed_ms: outcome.map_or(0, |outcome| {
            u64::try_from(outcome.elapsed.as_millis()).unwrap_or(u64::MAX)
        }),
    }
}
