//! How much of a text a model is shown.

/// Most bytes of one answer of a tool, but for `read_file`.
pub(super) const MOST_SHOWN: usize = 64 << 10;

/// The beginning of a text, at most so many bytes, not in the middle of a character.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let end = text.floor_char_boundary(most);
    text.get(..end).unwrap_or_default()
}

/// The end of a text, at most so many bytes, not in the middle of a character.
pub(super) fn end(text: &str, most: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
    text.get(start..).unwrap_or_default()
}

/// A text that is no longer than so many bytes, and says what it lacks.
pub(super) fn cut(mut text: String, most: usize) -> String {
    let all = text.len();
    if all > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str("\n(cut: the first ");
        text.push_str(&most.to_string());
        text.push_str(" of ");
        text.push_str(&all.to_string());
        text.push_str(" bytes)\n");
    }
    text
}
