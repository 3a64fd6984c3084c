//! Events as real clients sent them, and what nobody should send.

use caretaker::attest::predicate::GateStage;
use caretaker::tool_gate::{Answer, Call, EventError, MAXIMUM_EVENT_BYTES, ToolClass};

use super::{Tree, decided};
use crate::support::corpus_folder;

/// Every captured event before a tool call, by client: what the tool is, and where it wrote.
#[test]
fn every_clients_events_are_understood() {
    let mut lines = Vec::new();
    for client in [
        "claude-code-constructed",
        "codex-0.171.0",
        "copilot-1.0.102",
        "gemini-cli-0.61.0",
        "opencode-1.18.33",
        "qwen-0.15.10",
    ] {
        let Some(files) = corpus_folder(&format!("agents/{client}")) else {
            return;
        };
        for (name, bytes) in files {
            let pre = name.starts_with("event-") && name.contains("pre.")
                || name.starts_with("pretooluse");
            if !pre {
                continue;
            }
            let call =
                Call::read(&bytes).unwrap_or_else(|error| panic!("{client}/{name}: {error}"));
            assert!(
                call.folder.is_some() && call.client_session.is_some(),
                "{client}/{name}"
            );
            let folder = call.folder.clone().unwrap();
            // The session may write src and README.md.
            let decision = decided(&call, &["src/", "README.md"], &Tree::at(&folder));
            lines.push(format!(
                "{client}/{name}: {} {} -> {:?} {:?}{}",
                call.tool,
                decision.class,
                decision.answer,
                decision.stage,
                call.subagent
                    .map_or_else(String::new, |agent| format!(" (sub-agent {agent})")),
            ));
        }
    }
    insta::assert_snapshot!("every_clients_events_are_understood", lines.join("\n"));
}

#[test]
fn events_of_clients_that_were_not_captured_are_understood_from_their_documentation() {
    for (event, tool, class, folder) in [
        // goose
        (
            r#"{"event":"PreToolUse","session_id":"s","matcher_context":"x","tool_name":"developer__write","tool_input":{"path":"src/a","content":"b"},"working_dir":"/w","tool_call_id":"1"}"#,
            "developer__write",
            ToolClass::Write,
            "/w",
        ),
        // Cursor: a shell command alone, and arguments as text.
        (
            r#"{"hook_event_name":"beforeShellExecution","conversation_id":"s","command":"echo x > secrets/a","cwd":"/w"}"#,
            "Bash",
            ToolClass::Execute,
            "/w",
        ),
        (
            r#"{"hook_event_name":"preToolUse","conversation_id":"s","tool_name":"write","tool_input":"{\"path\":\"secrets/a\"}","cwd":"/w"}"#,
            "write",
            ToolClass::Write,
            "/w",
        ),
    ] {
        let call = Call::read(event.as_bytes()).unwrap();
        assert_eq!(call.tool, tool);
        assert_eq!(call.folder.as_deref(), Some(folder));
        let decision = decided(&call, &["src/"], &Tree::at("/w"));
        assert_eq!(decision.class, class);
        let inside = event.contains("src/a");
        assert_eq!(decision.answer == Answer::Allow, inside, "{event}");
    }
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    for bytes in [
        &b""[..],
        b"\xff\xfe",
        b"%%% not json {",
        b"[1,2]",
        b"\"Write\"",
        b"null",
        b"{",
        b"{\"tool_name\":\"Write\"} {}",
    ] {
        assert!(
            matches!(Call::read(bytes), Err(EventError::NotAnObject(_))),
            "{bytes:?}"
        );
    }
    for bytes in [
        &b"{}"[..],
        b"{\"tool_name\":7}",
        b"{\"tool_name\":\"\"}",
        b"{\"tool_input\":{\"file_path\":\"x\"}}",
    ] {
        assert_eq!(Call::read(bytes), Err(EventError::NoTool), "{bytes:?}");
    }
    let large = vec![b' '; MAXIMUM_EVENT_BYTES + 1];
    assert_eq!(Call::read(&large), Err(EventError::TooLong));
    let deep = format!(
        "{{\"tool_name\":\"Write\",\"tool_input\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(Call::read(deep.as_bytes()).is_err());
}

#[test]
fn paths_count_from_the_events_folder() {
    let event =
        br#"{"tool_name":"write_file","cwd":"/work/docs","tool_input":{"file_path":"a.md"}}"#;
    let call = Call::read(event).unwrap();
    let tree = Tree::new();
    assert_eq!(decided(&call, &super::USUAL, &tree).answer, Answer::Allow);
    let event = br#"{"tool_name":"write_file","cwd":"/tmp","tool_input":{"file_path":"src/a"}}"#;
    let decision = decided(&Call::read(event).unwrap(), &super::USUAL, &tree);
    super::assert_denied(&decision, GateStage::PathPolicy);
}
