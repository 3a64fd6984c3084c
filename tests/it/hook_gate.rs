//! `caretaker hook-gate` as clients meet it: a process a hook, an event on standard input, 0 or 2.

mod automatic;
mod bad_input;
mod calls;
mod compat;
mod completion;
mod configured;
mod evidence;
mod mentions;
mod nested;
mod parallel;
mod paths;
mod peers;
mod proof;
mod reasons;
mod receipts;
mod remains;
mod render;
mod service;
mod state;
mod table;
mod tokens;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home for the gate and a worktree for an agent.
struct Desk {
    folder: TempDir,
}

/// How a process ended and what it said.
#[derive(Debug)]
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Ran {
    #[track_caller]
    fn allowed(&self) {
        assert_eq!((self.code, self.stdout.as_str()), (0, ""), "{self:?}");
    }

    /// Blocked, and not silently: words on standard error and the same in the document.
    #[track_caller]
    fn blocked(&self) -> String {
        assert_eq!(self.code, 2, "{self:?}");
        let document: Value = serde_json::from_str(&self.stdout).expect("one JSON document");
        assert_eq!(document["decision"], "block");
        let reason = document["reason"].as_str().unwrap();
        assert!(!reason.trim().is_empty(), "silent");
        assert_eq!(self.stderr.trim_end(), reason);
        reason.to_owned()
    }
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_caretaker")
}

/// The usual policy.
fn policy() -> Value {
    json!({
        "v": 1,
        "task_id": "task-1",
        "path_allowlist": ["src/", "docs/*.md"],
        "producers": [{"name": "tests", "kind": "test", "command": ["true"], "required": true}],
    })
}

impl Desk {
    /// Nothing registered yet.
    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work/src", "work/docs", "home"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    /// The session `S1`, with the usual policy.
    fn new() -> Self {
        Self::with(&policy(), &[])
    }

    fn with(policy: &Value, more: &[&str]) -> Self {
        let desk = Self::empty();
        desk.register("S1", policy, more).allowed_to_register();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn session_folder(&self) -> PathBuf {
        self.home().join("hook-gate/S1")
    }

    fn register(&self, session: &str, policy: &Value, more: &[&str]) -> Ran {
        let file = self.path("policy.json");
        std::fs::write(&file, policy.to_string()).unwrap();
        let work = self.work();
        let mut arguments = vec!["hook-gate", "register", "--session", session, "--policy"];
        arguments.extend([file.to_str().unwrap(), "--workdir", work.to_str().unwrap()]);
        arguments.extend(more);
        self.run(&arguments, b"")
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Ran {
        ran(self.command(arguments), input)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env_clear()
            .env("CARETAKER_HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(self.work());
        command
    }

    fn check(&self, event: &str, input: &[u8]) -> Ran {
        self.run(
            &["hook-gate", "check", "--session", "S1", "--event", event],
            input,
        )
    }

    fn before(&self, tool: &str, input: &Value) -> Ran {
        let event = json!({"session_id": "client", "cwd": self.work(), "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input});
        self.check("PreToolUse", event.to_string().as_bytes())
    }

    fn write(&self, path: &str) -> Ran {
        self.before("Write", &json!({"file_path": path, "content": "x"}))
    }

    fn bash(&self, command: &str) -> Ran {
        self.before("Bash", &json!({"command": command}))
    }

    fn stop(&self) -> Ran {
        self.check(
            "Stop",
            b"{\"hook_event_name\":\"Stop\",\"stop_hook_active\":true}",
        )
    }

    /// The `x_gate` members of every receipt, in order.
    fn receipts(&self) -> Vec<Value> {
        caretaker::hook_gate::gates(&self.session_folder()).unwrap()
    }
}

impl Ran {
    #[track_caller]
    fn allowed_to_register(&self) {
        assert_eq!(self.code, 0, "{self:?}");
    }
}

fn ran(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A process that answers without reading has closed its end.
    drop(child.stdin.take().unwrap().write_all(input));
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::symlink_metadata(path)
        .unwrap()
        .permissions()
        .mode()
        & 0o7777
}
