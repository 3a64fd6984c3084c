//! What a client is told: the exit code, a reason on standard error, and one JSON document that every client understands.

use serde_json::json;

/// Longest reason that is handed to a client, in bytes.
const LONGEST: usize = 4_000;

/// An answer to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the call or the turn's end is refused.
    pub blocked: bool,
    /// Why, in words for the agent; empty only when nothing is to be said.
    pub reason: String,
    /// Something for the operator, which the client does not show: why nobody looked.
    pub warning: Option<String>,
}

impl Reply {
    /// It goes on.
    pub const fn allow() -> Self {
        Self {
            blocked: false,
            reason: String::new(),
            warning: None,
        }
    }

    /// It goes on although nobody looked.
    pub fn allow_with(warning: impl Into<String>) -> Self {
        Self {
            blocked: false,
            reason: String::new(),
            warning: Some(plain(&warning.into())),
        }
    }

    /// It does not.
    pub fn block(reason: impl Into<String>) -> Self {
        // Break it: take it as it is; `hook_gate::reasons::nothing_in_a_reason_moves_a_terminals_cursor` fails.
        let mut reason = plain(&reason.into());
        if reason.trim().is_empty() {
            // Every client but one takes a silent 2 for consent.
            "refused by the gate".clone_into(&mut reason);
        }
        if reason.len() > LONGEST {
            let end = (0..=LONGEST)
                .rev()
                .find(|end| reason.is_char_boundary(*end));
            reason.truncate(end.unwrap_or_default());
            reason.push('…');
        }
        Self {
            blocked: true,
            reason,
            warning: None,
        }
    }

    /// 0 or 2, and nothing else ever.
    pub const fn exit_code(&self) -> u8 {
        if self.blocked { 2 } else { 0 }
    }

    /// The JSON that blocks in every client that reads any of its members; nothing when the call goes on.
    pub fn document(&self, event: HookEvent) -> Option<String> {
        if !self.blocked {
            return None;
        }
        let reason = &self.reason;
        let document = match event {
            HookEvent::PreToolUse | HookEvent::SessionStart => json!({
                "decision": "block",
                "reason": reason,
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                },
            }),
            HookEvent::Stop => json!({"decision": "block", "reason": reason}),
        };
        Some(document.to_string())
    }
}

/// Text in which nothing moves a terminal's cursor or turns its direction: what a reason quotes is the agent's.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\'' | '"' | '\\' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a tool is used.
    PreToolUse,
    /// When the agent wants to end its turn.
    Stop,
    /// When a session begins: the handshake.
    SessionStart,
}

impl HookEvent {
    /// As the command line spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::Stop => "Stop",
            Self::SessionStart => "SessionStart",
        }
    }

    /// The event of this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::PreToolUse, Self::Stop, Self::SessionStart]
            .into_iter()
            .find(|event| event.name() == name)
    }
}
