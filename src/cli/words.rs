//! Text from outside on its way to a terminal.

use crate::attest::text::shown;

/// Characters on one line.
const WIDTH: usize = 100;
/// Lines of one text.
const MOST_LINES: usize = 40;
/// Characters before the text of an entry.
const NAME: usize = 13;

/// Text in lines that fit, cut off after forty, with everything that steers a terminal or hides itself escaped.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    within(text, WIDTH)
}

/// The same in lines of another width, in characters.
pub(super) fn within(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        let mut length = 0;
        for piece in line.split_whitespace().flat_map(|word| pieces(word, width)) {
            let more = piece.chars().count();
            if length > 0 && length + 1 + more > width {
                lines.push(shown(&std::mem::take(&mut current)));
                length = 0;
            }
            if length > 0 {
                current.push(' ');
                length += 1;
            }
            current.push_str(&piece);
            length += more;
            if lines.len() >= MOST_LINES {
                lines.push("…".to_owned());
                return lines;
            }
        }
        lines.push(shown(&current));
    }
    lines
}

/// A word in parts that fit on a line.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters
        .chunks(width)
        .map(|chunk| chunk.iter().collect())
        .collect()
}

/// A name, and beside it a text in as many lines as it needs.
pub(super) fn entry(name: &str, text: &str) -> String {
    let beside = format!("\n{:NAME$}", "");
    let text = within(text, WIDTH - NAME).join(&beside);
    format!("{name:<NAME$}{text}").trim_end().to_owned()
}
