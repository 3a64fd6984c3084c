//! Text to pieces of words, as BERT without case does it: clean, part accents from letters and drop them, lower case, split at white
//! space and punctuation, then the longest known pieces from the left.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// Pieces of one text at most, its two marks included: what the model was trained with. What follows is not looked at.
pub const MOST_PIECES: usize = 256;
/// A longer word is an unknown one.
const LONGEST_WORD: usize = 100;

/// Something is missing in a list of pieces.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the vocabulary does not hold {0}")]
pub struct VocabularyError(&'static str);

/// The known pieces.
#[derive(Debug, Clone)]
pub struct WordPiece {
    pieces: HashMap<Box<str>, u32>,
    unknown: u32,
    begin: u32,
    end: u32,
}

impl WordPiece {
    /// Takes a list of pieces, one a line; a piece inside of a word begins with `##`.
    ///
    /// # Errors
    /// One of the marks `[UNK]`, `[CLS]` and `[SEP]` is missing.
    pub fn new(vocabulary: &str) -> Result<Self, VocabularyError> {
        let lines = vocabulary.lines().zip(0_u32..);
        let pieces: HashMap<Box<str>, u32> =
            lines.map(|(piece, id)| (Box::from(piece), id)).collect();
        let mark = |name| pieces.get(name).copied().ok_or(VocabularyError(name));
        Ok(Self {
            unknown: mark("[UNK]")?,
            begin: mark("[CLS]")?,
            end: mark("[SEP]")?,
            pieces,
        })
    }

    /// The pieces of a text between the marks of its beginning and end, [`MOST_PIECES`] at most.
    pub fn pieces(&self, text: &str) -> Vec<u32> {
        let mut ids = vec![self.begin];
        let mut word = Vec::new();
        for letter in letters(text) {
            if ids.len() >= MOST_PIECES {
                break;
            }
            match letter {
                Letter::Gap => self.word(&mut word, &mut ids),
                Letter::Alone(letter) => {
                    self.word(&mut word, &mut ids);
                    word.push(letter);
                    self.word(&mut word, &mut ids);
                }
                Letter::Part(letter) if word.len() <= LONGEST_WORD => word.push(letter),
                Letter::Part(_) => {}
            }
        }
        self.word(&mut word, &mut ids);
        ids.truncate(MOST_PIECES - 1);
        ids.push(self.end);
        ids
    }

    /// Adds the pieces of one word and empties it. A word that is not made of known pieces only is one unknown piece.
    fn word(&self, word: &mut Vec<char>, ids: &mut Vec<u32>) {
        let known = ids.len();
        let mut rest = word.as_slice();
        if word.len() > LONGEST_WORD {
            ids.push(self.unknown);
            rest = &[];
        }
        let mut piece = String::new();
        while !rest.is_empty() {
            let begin = if rest.len() < word.len() { "##" } else { "" };
            let longest = (1..=rest.len()).rev().find_map(|length| {
                piece.clear();
                piece.push_str(begin);
                piece.extend(rest.iter().take(length));
                let id = self.pieces.get(piece.as_str())?;
                Some((length, *id))
            });
            let Some((length, id)) = longest else {
                ids.truncate(known);
                ids.push(self.unknown);
                break;
            };
            ids.push(id);
            rest = rest.get(length..).unwrap_or_default();
        }
        word.clear();
    }
}

/// A character, as far as words go.
enum Letter {
    /// White space.
    Gap,
    /// A word of its own.
    Alone(char),
    /// Part of a word.
    Part(char),
}

fn letters(text: &str) -> impl Iterator<Item = Letter> {
    let clean = text.chars().filter_map(clean);
    let plain = clean
        .nfd()
        .filter(|letter| letter.general_category() != GeneralCategory::NonspacingMark);
    plain.flat_map(char::to_lowercase).map(|letter| {
        if letter.is_whitespace() {
            Letter::Gap
        } else if is_ideograph(letter) || is_punctuation(letter) {
            Letter::Alone(letter)
        } else {
            Letter::Part(letter)
        }
    })
}

/// What is neither shown nor space is dropped: controls, marks of direction and the like, letters of private use.
fn clean(letter: char) -> Option<char> {
    use GeneralCategory::{Control, Format, PrivateUse};
    match (letter, letter.general_category()) {
        ('\t' | '\n' | '\r', _) => Some(' '),
        ('\u{fffd}', _) | (_, Control | Format | PrivateUse) => None,
        _ if letter.is_whitespace() => Some(' '),
        _ => Some(letter),
    }
}

fn is_punctuation(letter: char) -> bool {
    letter.is_ascii_punctuation()
        || letter.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The blocks of ideographs that BERT takes letter by letter.
const fn is_ideograph(letter: char) -> bool {
    matches!(
        letter as u32,
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x2_0000..=0x2_A6DF
            | 0x2_A700..=0x2_B73F
            | 0x2_B740..=0x2_B81F
            | 0x2_B920..=0x2_CEAF
            | 0xF900..=0xFAFF
            | 0x2_F800..=0x2_FA1F
    )
}
