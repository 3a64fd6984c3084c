//! Text to pieces of words.

use caretaker::embedder::embedded::wordpiece::{MOST_PIECES, WordPiece};
use proptest::prelude::*;

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nread\na\nfile\nun\n##read\n##able\n,\n.\ncafe\n\u{4e2d}\n{\n:\n\"\npath\nss\n\u{df}\ni\n##s\n\u{2192}\n\u{2014}";

fn pieces() -> WordPiece {
    WordPiece::new(VOCABULARY).unwrap()
}

fn words(text: &str) -> Vec<&'static str> {
    let list: Vec<&str> = VOCABULARY.lines().collect();
    pieces()
        .pieces(text)
        .into_iter()
        .map(|id| list[usize::try_from(id).unwrap()])
        .collect()
}

#[test]
fn text_is_cleaned_split_and_cut_into_the_longest_known_pieces() {
    assert_eq!(
        words("Read a FILE"),
        ["[CLS]", "read", "a", "file", "[SEP]"]
    );
    assert_eq!(
        words("unreadable"),
        ["[CLS]", "un", "##read", "##able", "[SEP]"]
    );
    assert_eq!(
        words("Café,  cafe\u{301}."),
        ["[CLS]", "cafe", ",", "cafe", ".", "[SEP]"]
    );
    assert_eq!(
        words("a\u{4e2d}a"),
        ["[CLS]", "a", "\u{4e2d}", "a", "[SEP]"]
    );
    assert_eq!(
        words("{\"path\":\"a\""),
        [
            "[CLS]", "{", "\"", "path", "\"", ":", "\"", "a", "\"", "[SEP]"
        ]
    );
    // A dash is punctuation, an arrow is a letter like any other.
    assert_eq!(
        words("a\u{2014}a"),
        ["[CLS]", "a", "\u{2014}", "a", "[SEP]"]
    );
    assert_eq!(words("a\u{2192}a"), ["[CLS]", "[UNK]", "[SEP]"]);
    assert_eq!(
        words("\u{df} \u{130}S"),
        ["[CLS]", "\u{df}", "i", "##s", "[SEP]"]
    );
}

#[test]
fn what_is_not_shown_is_not_read() {
    assert_eq!(
        words("re\u{200b}ad\0 \u{feff}a\u{202e}\u{b} fi\u{e0041}le\u{fffd}"),
        ["[CLS]", "read", "a", "file", "[SEP]"]
    );
    assert_eq!(
        words("read\ta\r\n\u{a0}file"),
        ["[CLS]", "read", "a", "file", "[SEP]"]
    );
    assert_eq!(words(""), ["[CLS]", "[SEP]"]);
}

#[test]
fn what_is_unknown_is_one_unknown_piece() {
    assert_eq!(words("reading"), ["[CLS]", "[UNK]", "[SEP]"]);
    assert_eq!(words(&"un".repeat(60)), ["[CLS]", "[UNK]", "[SEP]"]);
}

#[test]
fn no_text_is_too_long() {
    let long = "read ".repeat(100_000);
    let pieces = pieces().pieces(&long);
    assert_eq!(pieces.len(), MOST_PIECES);
    assert_eq!(pieces.last(), Some(&3));
    assert_eq!(self::pieces().pieces(&"x".repeat(1_000_000)), [2, 1, 3]);
}

#[test]
fn a_vocabulary_without_its_marks_is_none() {
    assert!(WordPiece::new("read\na").is_err());
}

proptest! {
    #[test]
    fn any_text_is_a_bounded_number_of_known_pieces(text in any::<String>()) {
        let ids = pieces().pieces(&text);
        prop_assert!(ids.len() >= 2 && ids.len() <= MOST_PIECES);
        prop_assert!(ids[0] == 2 && ids[ids.len() - 1] == 3);
        let known = u32::try_from(VOCABULARY.lines().count()).unwrap();
        prop_assert!(ids.iter().all(|id| *id < known));
    }
}
