//! Whether the gate ran: a session whose client made more calls than there are receipts is ungated.

use std::collections::BTreeSet;
use std::io::{BufRead, Read as _};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::home::StateError;
use super::record::Receipts;
use super::render::Adapter;

/// Longest line of a stream that is read, in bytes; a longer one makes the stream unreadable.
const LONGEST_LINE: u64 = 32 << 20;

/// What is known of a session's gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// `gated` or `ungated`.
    pub standing: Standing,
    /// Receipts beside the root and the turn's ends.
    pub receipts: u64,
    /// Calls of tools in the client's own stream.
    pub calls: u64,
}

/// Whether every call came by the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It did.
    Gated,
    /// It did not, or nothing shows that it did: the session's fix is not proposed.
    Ungated,
}

/// Holds a session's receipts against the calls in the client's stream.
///
/// # Errors
/// The receipts cannot be read.
pub fn proof(folder: &Path, calls: u64) -> Result<Proof, StateError> {
    let receipts = decisions(folder)?;
    let heard = Receipts::count(folder)? > 0;
    // Break it: leave out the comparison; `hook_gate::proof::fewer_receipts_than_calls_are_an_ungated_session` fails.
    let standing = if heard && receipts >= calls {
        Standing::Gated
    } else {
        Standing::Ungated
    };
    Ok(Proof {
        standing,
        receipts,
        calls,
    })
}

/// Receipts of calls: neither the root, nor handshakes, nor the ends of turns.
fn decisions(folder: &Path) -> Result<u64, StateError> {
    let mut count = 0;
    for gate in super::evidence::gates(folder)? {
        count += u64::from(is_call(&gate));
    }
    Ok(count)
}

/// Whether the `x_gate` member of a receipt is about a call of a tool.
pub fn is_call(gate: &Value) -> bool {
    let of_the_gate = [
        super::COMPLETION,
        super::COMPLETION_REFUSED,
        "session-start",
    ];
    let tool = gate.get("tool").and_then(Value::as_str);
    tool.is_some_and(|tool| !of_the_gate.contains(&tool))
}

/// Counts the calls of tools in a client's stream of events (`--output-format stream-json`, `exec --json`, …).
///
/// # Errors
/// A line that cannot be read: what cannot be counted cannot be held against anything.
pub fn count_calls(adapter: Adapter, mut stream: impl BufRead) -> Result<u64, String> {
    let mut seen = BTreeSet::new();
    let mut number = 0_u64;
    loop {
        let mut line = Vec::new();
        let read = stream
            .by_ref()
            .take(LONGEST_LINE + 1)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("reading the client's stream: {error}"))?;
        if read == 0 {
            return Ok(seen.len() as u64);
        }
        number += 1;
        if line.len() as u64 > LONGEST_LINE {
            return Err(format!(
                "line {number} of the client's stream is longer than {LONGEST_LINE} bytes"
            ));
        }
        // Clients print a word or two beside their events.
        let Ok(event) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        if let Some(call) = never_made(adapter, &event) {
            seen.remove(&call);
        }
        for call in calls(adapter, &event) {
            seen.insert(call.unwrap_or_else(|| format!("line {number}")));
        }
    }
}

/// The call that one event says was refused by the client itself before any hook: its arguments were not a tool's.
fn never_made(adapter: Adapter, event: &Value) -> Option<String> {
    let refused = adapter == Adapter::Gemini
        && event["type"] == "tool_result"
        && event["error"]["type"] == "invalid_tool_params";
    refused
        .then(|| event["tool_id"].as_str().map(str::to_owned))
        .flatten()
}

/// The calls that one event tells of, each by its id where it has one.
fn calls(adapter: Adapter, event: &Value) -> Vec<Option<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let kind = event["type"].as_str().unwrap_or_default();
    match adapter {
        Adapter::Claude | Adapter::ClaudeRoutine | Adapter::Qwen => event["message"]["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|part| kind == "assistant" && part["type"] == "tool_use")
            .map(|part| text(&part["id"]))
            .collect(),
        Adapter::Codex => {
            let item = &event["item"];
            let called = matches!(
                item["type"].as_str(),
                Some("command_execution" | "file_change" | "mcp_tool_call")
            );
            called.then(|| text(&item["id"])).into_iter().collect()
        }
        Adapter::Gemini => (kind == "tool_use")
            .then(|| text(&event["tool_id"]))
            .into_iter()
            .collect(),
        Adapter::Copilot => (kind == "tool.execution_start")
            .then(|| text(&event["data"]["toolCallId"]))
            .into_iter()
            .collect(),
        Adapter::Opencode => (kind == "tool_use")
            .then(|| text(&event["part"]["callID"]))
            .into_iter()
            .collect(),
        Adapter::Goose => event["message"]["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|part| part["type"] == "toolRequest")
            .map(|part| text(&part["id"]))
            .collect(),
    }
}
