//! Each client's own configuration of hooks: match everything, our binary by its absolute path, a timeout that ours stays below.

use std::path::Path;

use serde_json::{Value, json};

/// How much longer than a person may take a client waits for the hook.
const BEYOND_TTL: u64 = 60;

/// A client whose hooks can block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adapter {
    /// Claude Code.
    Claude,
    /// Claude Code run by a schedule.
    ClaudeRoutine,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// Copilot CLI.
    Copilot,
    /// opencode: a plugin calls the gate, since its configuration has no hooks.
    Opencode,
    /// goose.
    Goose,
}

impl Adapter {
    /// Every one.
    pub const ALL: [Self; 8] = [
        Self::Claude,
        Self::ClaudeRoutine,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Copilot,
        Self::Opencode,
        Self::Goose,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeRoutine => "claude_routine",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// The client of this name; `None` for one without hooks that block.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|adapter| adapter.name() == name)
    }

    /// Where its configuration belongs, for people.
    pub const fn place(self) -> &'static str {
        match self {
            Self::Claude | Self::ClaudeRoutine => "a settings file, given with --settings",
            Self::Codex => "~/.codex/hooks.json of the user that runs it",
            Self::Gemini => "~/.gemini/settings.json of the user that runs it",
            Self::Qwen => "~/.qwen/settings.json of the user that runs it",
            Self::Copilot => "~/.copilot/hooks/caretaker.json of the user that runs it",
            Self::Opencode => "~/.config/opencode/plugin/caretaker.js of the user that runs it",
            Self::Goose => "~/.agents/plugins/caretaker/hooks/hooks.json of the user that runs it",
        }
    }
}

/// What is to be rendered.
#[derive(Debug, Clone, Copy)]
pub struct Hooks<'a> {
    /// Our own binary: an absolute path.
    pub program: &'a Path,
    /// The session.
    pub session: &'a str,
    /// The socket that answers, if one does.
    pub socket: Option<&'a Path>,
    /// Where the state lies; clients run hooks with an environment of their own.
    pub home: Option<&'a Path>,
    /// How long a person may take, in seconds.
    pub ttl: u64,
}

impl Hooks<'_> {
    fn words(&self, event: &str) -> Vec<String> {
        let mut words = vec![self.program.display().to_string()];
        words.extend(
            [
                "hook-gate",
                "check",
                "--session",
                self.session,
                "--event",
                event,
            ]
            .map(str::to_owned),
        );
        if let Some(socket) = self.socket {
            words.extend(["--socket".to_owned(), socket.display().to_string()]);
        }
        if let Some(home) = self.home {
            words.extend(["--home".to_owned(), home.display().to_string()]);
        }
        if self.ttl != super::TTL {
            words.extend(["--ttl".to_owned(), self.ttl.to_string()]);
        }
        words
    }

    fn line(&self, event: &str) -> String {
        let words = self.words(event);
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        quoted.join(" ")
    }

    const fn seconds(&self) -> u64 {
        self.ttl.saturating_add(BEYOND_TTL)
    }

    const fn milliseconds(&self) -> u64 {
        self.seconds().saturating_mul(1000)
    }

    /// The client's configuration.
    pub fn render(&self, adapter: Adapter) -> String {
        let document = match adapter {
            Adapter::Claude | Adapter::ClaudeRoutine => self.claude(),
            Adapter::Codex => json!({"hooks": {
                "PreToolUse": [{"matcher": ".*", "hooks": [self.command("PreToolUse", self.seconds())]}],
                "Stop": [{"hooks": [self.command("Stop", self.seconds())]}],
            }}),
            // These two count in milliseconds.
            // Break it: give them seconds; `hook_gate::render::every_clients_configuration_is_as_it_reads_it` fails.
            Adapter::Gemini => json!({"hooks": {
                "BeforeTool": [{"matcher": "*", "hooks": [self.command("PreToolUse", self.milliseconds())]}],
                "AfterAgent": [{"matcher": "*", "hooks": [self.command("Stop", self.milliseconds())]}],
            }}),
            Adapter::Qwen => json!({"hooks": {
                "PreToolUse": [{"matcher": "*", "hooks": [self.command("PreToolUse", self.milliseconds())]}],
                "Stop": [{"hooks": [self.command("Stop", self.milliseconds())]}],
            }}),
            Adapter::Copilot => json!({"version": 1, "hooks": {
                "preToolUse": [{"type": "command", "bash": self.line("PreToolUse"), "timeoutSec": self.seconds()}],
                // At the end of a turn it reads the document, and only with exit code 0.
                "agentStop": [{"type": "command", "bash": format!("{} || [ $? -eq 2 ]", self.line("Stop")), "timeoutSec": self.seconds()}],
            }}),
            Adapter::Goose => json!({"hooks": {
                // `*` is no regular expression there, and a rule with one is skipped without a word.
                "PreToolUse": [{"matcher": ".*", "on_failure": "block", "hooks": [self.command("PreToolUse", self.seconds())]}],
                "Stop": [{"hooks": [self.command("Stop", self.seconds())]}],
            }}),
            Adapter::Opencode => return self.plugin(),
        };
        pretty(&document)
    }

    fn command(&self, event: &str, timeout: u64) -> Value {
        json!({"type": "command", "command": self.line(event), "timeout": timeout})
    }

    fn claude(&self) -> Value {
        let hook = |event: &str| {
            let mut words = self.words(event).into_iter();
            let program = words.next().unwrap_or_default();
            let mut hook = json!({
                "type": "command",
                "command": program,
                "args": words.collect::<Vec<_>>(),
                "timeout": self.seconds(),
            });
            if event == "PreToolUse"
                && let Some(members) = hook.as_object_mut()
            {
                members.insert("onFailure".to_owned(), json!("block"));
            }
            hook
        };
        json!({
            "hooks": {
                "SessionStart": [{"hooks": [hook("SessionStart")]}],
                "PreToolUse": [{"matcher": "*", "hooks": [hook("PreToolUse")]}],
                "Stop": [{"hooks": [hook("Stop")]}],
            },
            "disableAllHooks": false,
        })
    }

    /// opencode runs JavaScript: it throws unless the gate says 0, so that a gate that is gone, killed or late blocks too.
    fn plugin(&self) -> String {
        let words = self.words("PreToolUse");
        let (program, arguments) = words
            .split_first()
            .map_or(("", [].as_slice()), |(program, rest)| {
                (program.as_str(), rest)
            });
        format!(
            r#"import {{ spawnSync }} from "node:child_process";
export const CaretakerGate = async (context) => ({{
  "tool.execute.before": async (input, output) => {{
    const event = {{
      session_id: input.sessionID, hook_event_name: "PreToolUse", tool_name: input.tool,
      tool_use_id: input.callID, tool_input: output.args, cwd: context.directory,
    }};
    const ran = spawnSync({program}, {arguments},
      {{ input: JSON.stringify(event), timeout: {timeout}, encoding: "utf8" }});
    if (ran.status !== 0) {{
      throw new Error(ran.stderr || "caretaker: the gate did not answer (" + (ran.error || ran.signal || ran.status) + ")");
    }}
  }},
}});
"#,
            program = json!(program),
            arguments = json!(arguments),
            timeout = self.milliseconds(),
        )
    }
}

fn pretty(document: &Value) -> String {
    // A value made here always serialises.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// A word as a POSIX shell reads it back.
fn quoted(word: &str) -> String {
    let plain = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '/' | '.' | '_' | '-' | '=' | ':')
    };
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
