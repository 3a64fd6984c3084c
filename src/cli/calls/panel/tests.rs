#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::{Panel, Wish};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::ToolCallId;
use crate::store::{CallDecision, ToolCall};
use crate::tool_gate::call_pattern::CallOrigin;

const NOON: Millis = Millis(1_796_040_000_000);

fn call(number: u8, tool: &str) -> ToolCall {
    ToolCall {
        id: ToolCallId::new(NOON, [number; 10]),
        session: format!("session-{number}"),
        task: "inc-1".to_owned(),
        role: "worker".to_owned(),
        tool: tool.to_owned(),
        arguments: "{\"command\":\"cargo publish\\u001b[2J\"}".to_owned(),
        arguments_digest: Sha256Digest::of(b""),
        nonce: "00".repeat(16),
        created_at: NOON,
        expires_at: NOON.plus_seconds(600),
        resolution: None,
        origin: CallOrigin::default(),
    }
}

fn screen(panel: &Panel) -> String {
    let mut terminal = Terminal::new(TestBackend::new(84, 22)).unwrap();
    terminal
        .draw(|frame| panel.draw(frame, NOON.plus_seconds(42)))
        .unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_panel_shows_what_waits_and_what_is_selected() {
    let mut panel = Panel::new();
    insta::assert_snapshot!("empty", screen(&panel));
    panel.take(vec![call(1, "Bash"), call(2, "Wri\u{202e}te")]);
    panel.key(KeyCode::Down);
    insta::assert_snapshot!("two", screen(&panel));
}

/// A key answers the call that was looked at, whatever happens to the queue meanwhile.
#[test]
fn the_selection_stays_with_its_call() {
    let mut panel = Panel::new();
    panel.take(vec![call(1, "Bash"), call(2, "Write"), call(3, "Edit")]);
    panel.key(KeyCode::Down);
    panel.take(vec![call(2, "Write"), call(3, "Edit")]);
    assert_eq!(panel.selected().unwrap().tool, "Write");
    panel.take(vec![call(3, "Edit")]);
    assert!(panel.said.contains("not waiting any more"));
    assert_eq!(panel.selected(), None);
    panel.key(KeyCode::Down);
    assert_eq!(panel.selected().unwrap().tool, "Edit");
}

#[test]
fn keys_mean_what_the_last_line_says() {
    let mut panel = Panel::new();
    panel.take(vec![call(1, "Bash")]);
    assert_eq!(
        panel.key(KeyCode::Char('a')),
        Wish::Answer(CallDecision::Allow)
    );
    assert_eq!(
        panel.key(KeyCode::Char('A')),
        Wish::Answer(CallDecision::Always)
    );
    assert_eq!(
        panel.key(KeyCode::Char('r')),
        Wish::Answer(CallDecision::Reject)
    );
    assert_eq!(panel.key(KeyCode::Char('q')), Wish::Leave);
    assert_eq!(panel.key(KeyCode::Char('x')), Wish::Nothing);
    for _ in 0..3 {
        panel.key(KeyCode::Down);
    }
    assert_eq!(panel.selected().unwrap().tool, "Bash");
}

#[test]
fn a_pattern_is_written_for_the_selected_call_and_for_no_other() {
    let mut panel = Panel::new();
    assert_eq!(panel.key(KeyCode::Char('p')), Wish::Nothing);
    assert_eq!(panel.writing, None, "there is no call");
    panel.take(vec![call(1, "Bash"), call(2, "Write")]);
    panel.key(KeyCode::Char('p'));
    assert_eq!(panel.key(KeyCode::Enter), Wish::Nothing, "it is empty");
    for character in "cargo test ar".chars() {
        // Letters that mean something elsewhere are letters here.
        assert_eq!(panel.key(KeyCode::Char(character)), Wish::Nothing);
    }
    panel.key(KeyCode::Backspace);
    assert!(screen(&panel).contains("always allow by this pattern: cargo test a_"));
    assert_eq!(panel.key(KeyCode::Enter), Wish::AnswerByPattern);
    assert_eq!(panel.writing.as_deref(), Some("cargo test a"));
    panel.key(KeyCode::Esc);
    assert_eq!(panel.writing, None);
    panel.key(KeyCode::Char('p'));
    panel.take(vec![call(2, "Write")]);
    assert_eq!(panel.writing, None, "its call is gone");
}
