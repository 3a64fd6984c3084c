//! What of a tool call is embedded.

/// How much of a text an embedder is given, in bytes. Models read some thousand tokens at most and refuse longer texts, so that a
/// tool call that writes a large file would always be denied otherwise. The whole text is what `deny_prompts` look at, and what
/// an embedding is remembered under.
pub const EMBEDDED_BYTES: usize = 16 * 1024;

/// The text of a tool call: the tool's description, two line feeds, `args: ` and the arguments exactly as they came. A tool without
/// a description is named instead: names are handles that say little, so descriptions come first.
pub fn action_text(tool: &str, description: Option<&str>, arguments: &str) -> String {
    let described = description.filter(|text| !text.trim().is_empty());
    let about = described.unwrap_or(tool);
    let mut text = String::with_capacity(about.len() + arguments.len() + 8);
    text.push_str(about);
    text.push_str("\n\nargs: ");
    text.push_str(arguments);
    text
}

/// The beginning of a text that an embedder is given: at most [`EMBEDDED_BYTES`], whole characters.
pub fn embedded_part(text: &str) -> &str {
    let end = text.floor_char_boundary(EMBEDDED_BYTES);
    text.get(..end).unwrap_or(text)
}
