//! What a refusal quotes is the agent's, and is shown so that it can do nothing.

use super::Desk;

#[test]
fn nothing_in_a_reason_moves_a_terminals_cursor() {
    let desk = Desk::new();
    let nasty = "secrets/\u{1b}[2K\u{1b}]0;x\u{7}\u{202e}gnp\u{2066}\r\nallowed: everything";
    for ran in [
        desk.write(nasty),
        desk.bash(&format!("echo x > '{nasty}'")),
        desk.bash(&format!("'{nasty}' x")),
        desk.bash(&format!("find . '-{nasty}'")),
        desk.before(nasty, &serde_json::json!({"x": nasty})),
        desk.bash(&format!("sed '-{nasty}' x")),
    ] {
        let reason = ran.blocked();
        let raw = |text: &str| {
            text.trim_end().chars().any(|found| {
                found.is_control()
                    || matches!(found, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            })
        };
        assert!(!raw(&reason) && !raw(&ran.stderr), "{reason:?}");
        // The document has no other text of the agent's than the reason, which was looked at.
        assert!(!raw(&ran.stdout), "{:?}", ran.stdout);
    }
}
