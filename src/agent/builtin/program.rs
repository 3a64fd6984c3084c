//! `run_command`: a program in the sandbox, with the tree writable and without a network.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::shown;
use crate::sandbox::{Captured, Command, Limits, Sandbox, Status};

/// Most bytes of each stream that the model is shown: its end, where what failed is said.
const MOST_OF_A_STREAM: usize = 24 << 10;

/// What programs of a session see of this machine beyond what every sandbox shows, and their limits.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Their environment.
    pub environment: Vec<(String, String)>,
    /// Folders and files that they may read: toolchains.
    pub readable: Vec<PathBuf>,
    /// Their limits.
    pub limits: Limits,
}

/// Runs words in a tree and tells how it went. `left` is what is left of the session's time.
pub(super) async fn run(
    sandbox: &Sandbox,
    programs: &Programs,
    tree: &Path,
    words: &[String],
    left: Duration,
) -> Result<String, String> {
    let mut command = Command::new(words, tree);
    command.environment.clone_from(&programs.environment);
    command.readable.clone_from(&programs.readable);
    command.private_loopback = true;
    command.limits = programs.limits;
    command.limits.wall = programs.limits.wall.min(left);
    let outcome = sandbox.run(&command).await;
    let outcome = outcome.map_err(|error| error.to_string())?;
    let ended = match outcome.status {
        Status::Exited(code) => format!("exit code {code}"),
        Status::Signalled(signal) => format!("ended by signal {signal}"),
        Status::TimedOut => format!(
            "killed: it ran longer than {} seconds",
            command.limits.wall.as_secs()
        ),
        Status::OutputLimit => format!(
            "killed: it printed more than {} bytes",
            command.limits.output
        ),
        Status::ProcessLimit => format!(
            "killed: it had more than {} processes",
            command.limits.processes
        ),
    };
    let mut told = format!("{ended}\n");
    stream(&mut told, "standard output", &outcome.stdout);
    stream(&mut told, "standard error", &outcome.stderr);
    Ok(told)
}

fn stream(told: &mut String, name: &str, captured: &Captured) {
    let text = captured.text();
    let end = shown::end(&text, MOST_OF_A_STREAM);
    if end.is_empty() {
        return;
    }
    let cut = if end.len() < text.len() {
        format!(" (cut: the last {} of {} bytes)", end.len(), text.len())
    } else {
        String::new()
    };
    let _infallible = writeln!(told, "{name}{cut}:\n{end}");
}
