//! Whether the gate ran.

use caretaker::hook_gate::{Adapter, count_calls};
use serde_json::{Value, json};

use super::Desk;
use crate::support::corpus;

#[test]
fn calls_are_counted_in_every_clients_own_stream() {
    for (adapter, file, calls) in [
        (Adapter::Codex, "codex-0.171.0/stream-patch.ndjson", 1),
        (Adapter::Codex, "codex-0.171.0/stream-codemode.ndjson", 2),
        (
            Adapter::Gemini,
            "gemini-cli-0.61.0/stream-replace.ndjson",
            // The third never came to a hook: the client refused its arguments.
            2,
        ),
        (Adapter::Qwen, "qwen-0.15.10/stream-allow.ndjson", 1),
        (Adapter::Copilot, "copilot-1.0.102/stream-allow.ndjson", 2),
        (Adapter::Opencode, "opencode-1.18.33/stream-allow.ndjson", 2),
    ] {
        let Some(stream) = corpus(&format!("agents/{file}")) else {
            return;
        };
        assert_eq!(count_calls(adapter, stream.as_slice()), Ok(calls), "{file}");
    }
    assert!(count_calls(Adapter::Codex, vec![b' '; 40 << 20].as_slice()).is_err());
}

fn proof(desk: &Desk, calls: usize) -> Value {
    let stream = desk.path("stream.ndjson");
    let lines: Vec<String> = (0..calls)
        .map(|id| json!({"type": "tool_use", "tool_id": format!("{id}")}).to_string())
        .collect();
    std::fs::write(&stream, lines.join("\n")).unwrap();
    let ran = desk.run(
        &[
            "hook-gate",
            "proof",
            "--session",
            "S1",
            "--adapter",
            "gemini",
            "--stream",
            stream.to_str().unwrap(),
            "--json",
        ],
        b"",
    );
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code == 0, document["standing"] == "gated", "{ran:?}");
    document
}

#[test]
fn fewer_receipts_than_calls_are_an_ungated_session() {
    let desk = Desk::new();
    assert_eq!(
        proof(&desk, 0)["standing"],
        "ungated",
        "no handshake, no receipt"
    );
    desk.check("SessionStart", b"{}").allowed();
    assert_eq!(proof(&desk, 0)["standing"], "gated");
    assert_eq!(
        proof(&desk, 1)["standing"],
        "ungated",
        "a handshake is no receipt of a call"
    );
    desk.write("src/a").allowed();
    desk.write("secrets/a").blocked();
    desk.stop().allowed();
    let two = proof(&desk, 2);
    assert_eq!(
        (&two["standing"], &two["receipts"]),
        (&json!("gated"), &json!(2))
    );
    assert_eq!(proof(&desk, 3)["standing"], "ungated");
}
