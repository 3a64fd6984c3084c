//! Bounded text and lists: what a signed statement may hold. Longer things go by digest and count.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// How many characters of foreign text an error message repeats.
const SHOWN: usize = 160;

/// Why a value may not stand in a signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TextError {
    /// Too many bytes.
    #[error(
        "text of {length} bytes, at most {} are signed; put the whole into the evidence store",
        Text::MAX_BYTES
    )]
    TooLong {
        /// Length found, in bytes.
        length: usize,
    },
    /// Not normalised.
    #[error("text is not in Unicode normal form C")]
    NotNormal,
    /// Contains NUL.
    #[error("text contains a NUL")]
    Nul,
    /// Not a label.
    #[error(
        "{found} is not a label: 1 to {} visible ASCII characters",
        Label::MAX_BYTES
    )]
    Label {
        /// What was found, made printable.
        found: String,
    },
    /// Too many items.
    #[error(
        "a list of {length} items, at most {MAX_ITEMS} are signed; put the whole into the evidence store"
    )]
    TooMany {
        /// Items found.
        length: usize,
    },
}

/// Free text: at most 500 bytes of UTF-8 in normal form C, without NUL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Text(String);

impl Text {
    /// The longest text, in bytes.
    pub const MAX_BYTES: usize = 500;

    /// Normalises and takes `text`, refusing what is too long or holds a NUL.
    pub fn new(text: &str) -> Result<Self, TextError> {
        Self::check_length(text)?;
        Self::try_from(text.nfc().collect::<String>())
    }

    /// Normalises `text` and cuts it to what fits, ending in `…` where something was cut; a NUL becomes U+FFFD.
    pub fn clipped(text: &str) -> Self {
        let mut out = String::new();
        // Whatever the normal form does to the length, more than this many characters cannot fit.
        let head: String = text.chars().take(Self::MAX_BYTES + 1).collect();
        for character in head.nfc().map(|character| {
            if character == '\0' {
                '\u{fffd}'
            } else {
                character
            }
        }) {
            if out.len() + character.len_utf8() > Self::MAX_BYTES {
                while out.len() + '…'.len_utf8() > Self::MAX_BYTES {
                    out.pop();
                }
                out.push('…');
                break;
            }
            out.push(character);
        }
        Self(out)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn check_length(text: &str) -> Result<(), TextError> {
        if text.len() > Self::MAX_BYTES {
            Err(TextError::TooLong { length: text.len() })
        } else {
            Ok(())
        }
    }
}

impl TryFrom<String> for Text {
    type Error = TextError;

    fn try_from(text: String) -> Result<Self, TextError> {
        Self::check_length(&text)?;
        if text.contains('\0') {
            Err(TextError::Nul)
        } else if !text.is_ascii() && !is_nfc(&text) {
            Err(TextError::NotNormal)
        } else {
            Ok(Self(text))
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A machine word: an id, a version, a repository number. 1 to 200 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Label(String);

impl Label {
    /// The longest label, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Takes `label`, refusing anything but 1 to 200 visible ASCII characters.
    pub fn new(label: &str) -> Result<Self, TextError> {
        Self::try_from(label.to_owned())
    }

    /// A label that is a constant of the program.
    pub(crate) fn fixed(label: &'static str) -> Self {
        debug_assert!(Self::new(label).is_ok(), "a constant label must be sound");
        Self(label.to_owned())
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Label {
    type Error = TextError;

    fn try_from(label: String) -> Result<Self, TextError> {
        let sound = (1..=Self::MAX_BYTES).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_graphic());
        if sound {
            Ok(Self(label))
        } else {
            Err(TextError::Label {
                found: shown(&label),
            })
        }
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The most items a list in a statement may have.
pub const MAX_ITEMS: usize = 20;

/// A list of at most [`MAX_ITEMS`] items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<T>", bound(deserialize = "T: Deserialize<'de>"))]
pub struct List<T>(Vec<T>);

impl<T> List<T> {
    /// Takes `items`, refusing more than [`MAX_ITEMS`].
    pub fn new(items: Vec<T>) -> Result<Self, TextError> {
        if items.len() > MAX_ITEMS {
            Err(TextError::TooMany {
                length: items.len(),
            })
        } else {
            Ok(Self(items))
        }
    }

    /// The first [`MAX_ITEMS`] of `items`.
    pub fn first_of(items: impl IntoIterator<Item = T>) -> Self {
        Self(items.into_iter().take(MAX_ITEMS).collect())
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> TryFrom<Vec<T>> for List<T> {
    type Error = TextError;

    fn try_from(items: Vec<T>) -> Result<Self, TextError> {
        Self::new(items)
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// Foreign text for a message: at most 160 characters, with control, ESC and bidirectional characters escaped, so that
/// what a verifier prints cannot move a terminal's cursor or reorder a line.
pub fn shown(text: &str) -> String {
    let mut out = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN {
            out.push('…');
            break;
        }
        match character {
            '\'' | '"' | '\\' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out
}
