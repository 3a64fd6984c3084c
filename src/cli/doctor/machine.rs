//! What the machine has: git, a sandbox, the coder's program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::Finding;
use crate::attest::text::shown;
use crate::config::{Adapter, Agent, SandboxMode};
use crate::sandbox::{Mode, Sandbox};

/// The oldest git with `merge-tree --write-tree`.
const OLDEST_GIT: (u32, u32) = (2, 38);
/// How long `git --version` may take.
const WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn git() -> Finding {
    const CHECK: &str = "git";
    let Some(program) = find_program("git") else {
        return Finding::failed(CHECK, "git is not in PATH; install git 2.38 or newer");
    };
    let path = program.display();
    match version_line(&program).await {
        Err(reason) => Finding::failed(
            CHECK,
            format!("{path} --version: {reason}; install git 2.38 or newer"),
        ),
        Ok(line) => match version(&line) {
            Some(found) if found >= OLDEST_GIT => {
                Finding::ok(CHECK, format!("{}, {path}", shown(&line)))
            }
            Some(_) => Finding::failed(
                CHECK,
                format!("{path} is {}; install git 2.38 or newer", shown(&line)),
            ),
            None => Finding::failed(
                CHECK,
                format!(
                    "{path} --version says {}, which is no version of git; install git 2.38 or newer",
                    shown(&line)
                ),
            ),
        },
    }
}

/// An executable of this name in an absolute folder of `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| {
            std::fs::metadata(file).is_ok_and(|metadata| {
                metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
            })
        })
}

async fn version_line(git: &Path) -> Result<String, String> {
    let output = tokio::process::Command::new(git)
        .arg("--version")
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(WITHIN, output).await {
        Err(_) => Err(format!("no answer within {} seconds", WITHIN.as_secs())),
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(output)) => Ok(String::from_utf8_lossy(&output.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()),
    }
}

/// Major and minor of `git version 2.39.5`.
fn version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.strip_prefix("git version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) async fn sandbox(configured: SandboxMode) -> Finding {
    const CHECK: &str = "sandbox";
    let mode = match configured {
        SandboxMode::Auto => Mode::Auto,
        SandboxMode::Bubblewrap => Mode::Bubblewrap,
        SandboxMode::Landlock => Mode::Landlock,
        SandboxMode::None => Mode::None,
    };
    let launcher = match std::env::current_exe() {
        Ok(launcher) => launcher,
        Err(error) => {
            return Finding::failed(
                CHECK,
                format!("caretaker's own program cannot be found ({error}); start it by its path"),
            );
        }
    };
    match Sandbox::detect(mode, launcher).await {
        Err(error) => Finding::failed(CHECK, error.to_string()),
        Ok(found) if found.confines() => {
            Finding::ok(CHECK, format!("{} (mode {mode})", found.describe()))
        }
        Ok(_) => Finding::warning(
            CHECK,
            "mode none: tests and coders may do whatever this user can; remove sandbox.mode unless that is meant",
        ),
    }
}

pub(super) fn agent(agent: &Agent) -> Finding {
    const CHECK: &str = "agent";
    match (agent.adapter, agent.command.first()) {
        (None, _) => Finding::warning(
            CHECK,
            "none: incidents are opened and reported, and nothing is fixed; name a coder under agent.adapter",
        ),
        (Some(Adapter::Scripted), _) => Finding::ok(CHECK, "scripted: answers fixed in advance"),
        (Some(Adapter::Command), None) => Finding::failed(
            CHECK,
            "the command is empty; name a program under agent.command",
        ),
        (Some(Adapter::Builtin), _) => Finding::ok(CHECK, format!("builtin{}", modelled(agent))),
        (Some(adapter), program) => {
            let program = program.map_or(adapter.program().unwrap_or_default(), String::as_str);
            let there = Path::new(program).is_absolute() && Path::new(program).is_file()
                || find_program(program).is_some();
            let program = shown(program);
            if there {
                Finding::ok(CHECK, format!("command {program}{}", modelled(agent)))
            } else {
                Finding::failed(
                    CHECK,
                    format!(
                        "the program {program} is not in PATH; install it, or name another under agent.command"
                    ),
                )
            }
        }
    }
}

fn modelled(agent: &Agent) -> String {
    agent.model.as_ref().map_or_else(String::new, |model| {
        format!(" model {} at {}", shown(&model.name), model.base_url)
    })
}
