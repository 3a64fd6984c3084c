//! Strict JSON, by a reader of our own.
//!
//! A signed document must mean the same to every reader, so everything two parsers could read differently is refused:
//! repeated members (also when one of them is spelt with escapes), floats, integers beyond ±(2⁵³−1), `-0`, unpaired
//! surrogates, nesting deeper than [`MAX_DEPTH`], bytes after the end. The reader does not build on `serde_json`'s own
//! numbers, whose behaviour changes with a feature flag that another crate of the build may switch on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::text::shown;

/// The largest magnitude of an integer: what a double holds exactly (2⁵³−1).
pub const MAX_INTEGER: i64 = 9_007_199_254_740_991;

/// How many objects and arrays may be nested.
pub const MAX_DEPTH: usize = 32;

/// Why bytes are not acceptable JSON. Positions are byte offsets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonError {
    /// More bytes than this kind of document may have.
    #[error("the document has {length} bytes, at most {limit} are read")]
    TooLong {
        /// Length found.
        length: usize,
        /// Length allowed.
        limit: usize,
    },
    /// Not UTF-8.
    #[error("byte {at} is not UTF-8")]
    NotUtf8 {
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The grammar is broken.
    #[error("at byte {at}: expected {expected}")]
    Syntax {
        /// Offset.
        at: usize,
        /// What would have been right there.
        expected: &'static str,
    },
    /// A member occurs twice in one object.
    #[error("at byte {at}: the member {name} occurs twice")]
    Duplicate {
        /// Offset after the second name.
        at: usize,
        /// The name, made printable.
        name: String,
    },
    /// A number that is not a plain integer in range.
    #[error(
        "at byte {at}: only integers from -(2^53-1) to 2^53-1 are allowed, without fraction, exponent or -0"
    )]
    Number {
        /// Offset.
        at: usize,
    },
    /// Half of a surrogate pair.
    #[error("at byte {at}: an escape names half of a surrogate pair")]
    Surrogate {
        /// Offset.
        at: usize,
    },
    /// Too many nested objects and arrays.
    #[error("at byte {at}: nested deeper than {MAX_DEPTH}")]
    Depth {
        /// Offset.
        at: usize,
    },
    /// Good JSON, but not the expected document.
    #[error("not the expected document: {reason}")]
    Shape {
        /// What did not fit, made printable.
        reason: String,
    },
    /// The typed reading loses or changes something: an unknown member, an array in place of an object, an explicit
    /// null in place of an absent member.
    #[error(
        "not the expected document: it has members or forms that this kind of document does not define"
    )]
    NotExact,
    /// A value of ours that does not serialise.
    #[error("the document cannot be written: {reason}")]
    Unwritable {
        /// What did not serialise.
        reason: String,
    },
}

/// A JSON document as strictly read. Numbers are integers; members are unique and ordered by name. Strings that stand there as
/// they are stay where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer within ±[`MAX_INTEGER`].
    Integer(i64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Members(BTreeMap<Cow<'a, str>, Self>),
}

impl Json<'_> {
    /// The string member `name` of an object, if this is one and has it.
    pub fn text_member(&self, name: &str) -> Option<&str> {
        match self {
            Self::Members(members) => match members.get(name) {
                Some(Self::Text(text)) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Reads one document of at most `limit` bytes.
pub fn read(bytes: &[u8], limit: usize) -> Result<Json<'_>, JsonError> {
    if bytes.len() > limit {
        return Err(JsonError::TooLong {
            length: bytes.len(),
            limit,
        });
    }
    let text = str::from_utf8(bytes).map_err(|error| JsonError::NotUtf8 {
        at: error.valid_up_to(),
    })?;
    let mut reader = Reader { text, bytes, at: 0 };
    let json = reader.value(0)?;
    reader.skip_space();
    if reader.at == bytes.len() {
        Ok(json)
    } else {
        Err(reader.expected("the end of the document"))
    }
}

/// Reads one document of at most `limit` bytes as a `T`, refusing whatever `T` does not define.
pub fn parse<T: DeserializeOwned + Serialize>(bytes: &[u8], limit: usize) -> Result<T, JsonError> {
    let json = read(bytes, limit)?;
    typed(bytes, &json)
}

/// The typed reading of `bytes`, of which `json` is the strict reading. What `T` writes back must be the same document.
pub fn typed<T: DeserializeOwned + Serialize>(
    bytes: &[u8],
    json: &Json<'_>,
) -> Result<T, JsonError> {
    let value: T = serde_json::from_slice(bytes).map_err(|error| JsonError::Shape {
        reason: shown(&error.to_string()),
    })?;
    let written = to_bytes(&value)?;
    if written == bytes || read(&written, written.len()).is_ok_and(|again| again == *json) {
        Ok(value)
    } else {
        Err(JsonError::NotExact)
    }
}

/// The typed reading of a text that is, byte for byte, what `T` writes of it; none of any other, which [`read`] and [`typed`] then
/// take or refuse. It costs half of what those do.
///
/// What a type writes is strict JSON already, but for integers beyond ±(2⁵³−1): a text with a long run of digits is left to the
/// strict reading. Types that hold floats, JSON of any shape or themselves are not for this reading.
pub(super) fn exact<T: DeserializeOwned + Serialize>(text: &str) -> Option<T> {
    guessed(text).filter(|value| is_written(text, value))
}

/// The first half of [`exact`]: what a text seems to say. It counts only once [`is_written`] has found the text to be what is written
/// of it.
pub(super) fn guessed<T: DeserializeOwned>(text: &str) -> Option<T> {
    // Break it: leave this out (`attest::exact::what_is_read_exactly_is_what_is_read_strictly`).
    if has_long_number(text.as_bytes()) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Whether a text is, byte for byte, what is written of `value`.
pub(super) fn is_written<T: Serialize>(text: &str, value: &T) -> bool {
    let mut rest = Rest(text.as_bytes());
    serde_json::to_writer(&mut rest, value).is_ok() && rest.0.is_empty()
}

/// Digits of the shortest number beyond 2⁵³−1.
const LONG_NUMBER: usize = 16;

/// Whether there are so many digits in a row where a number may begin; that may also be in a string, which costs no more than the
/// slower reading.
fn has_long_number(bytes: &[u8]) -> bool {
    let digits =
        |run: &mut dyn Iterator<Item = &u8>| run.take_while(|byte| byte.is_ascii_digit()).count();
    // Every such run covers one of these places.
    (0..bytes.len()).step_by(LONG_NUMBER).any(|place| {
        let (before, after) = bytes.split_at(place);
        let behind = digits(&mut after.iter());
        if behind == 0 {
            return false;
        }
        let ahead = digits(&mut before.iter().rev());
        let begins = before.iter().rev().nth(ahead);
        behind + ahead >= LONG_NUMBER
            && !begins.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'"')
    })
}

/// What is still to be written; writing anything else fails.
struct Rest<'a>(&'a [u8]);

impl std::io::Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let behind = self.0.strip_prefix(bytes);
        self.0 = behind.ok_or(std::io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The one compact serialisation: members in the order of the type's definition, no white space.
pub fn to_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    serde_json::to_vec(value).map_err(|error| JsonError::Unwritable {
        reason: shown(&error.to_string()),
    })
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.members(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.integer(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn members(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.enter(depth)?;
        let mut members = BTreeMap::new();
        if self.closes(b'}') {
            return Ok(Json::Members(members));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            if members.contains_key(&name) {
                return Err(JsonError::Duplicate {
                    at: self.at,
                    name: shown(&name),
                });
            }
            self.skip_space();
            self.take(b':', "a colon")?;
            let value = self.value(depth + 1)?;
            members.insert(name, value);
            if self.closes(b'}') {
                return Ok(Json::Members(members));
            }
            self.take(b',', "a comma or the end of the object")?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.closes(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.closes(b']') {
                return Ok(Json::List(items));
            }
            self.take(b',', "a comma or the end of the array")?;
        }
    }

    /// Steps over an opening bracket; `depth` is the number of brackets already open, which bounds the recursion.
    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth >= MAX_DEPTH {
            return Err(JsonError::Depth { at: self.at });
        }
        self.at += 1;
        Ok(())
    }

    fn closes(&mut self, bracket: u8) -> bool {
        self.skip_space();
        let closes = self.peek() == Some(bracket);
        if closes {
            self.at += 1;
        }
        closes
    }

    fn integer(&mut self) -> Result<Json<'a>, JsonError> {
        let start = self.at;
        let refused = JsonError::Number { at: start };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = &self.text[first..self.at];
        let leading_zero = digits.len() > 1 && digits.starts_with('0');
        let negative_zero = digits == "0" && first > start;
        if leading_zero || negative_zero || matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return Err(refused);
        }
        match self.text[start..self.at].parse::<i64>() {
            Ok(number) if number.unsigned_abs() <= MAX_INTEGER.unsigned_abs() => {
                Ok(Json::Integer(number))
            }
            _ => Err(refused),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.take(b'"', "a string")?;
        let plain = self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut out = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(out));
                }
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.expected("no raw control character in a string")),
                None => return Err(self.expected("the end of the string")),
            }
            out.push_str(self.plain());
        }
    }

    /// What of a string stands for itself, from here on.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
        self.at += rest.iter().position(special).unwrap_or(rest.len());
        // Between special bytes, which are no part of a longer character.
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.expected("an escape that JSON knows")),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let start = self.at - 1;
        let unpaired = JsonError::Surrogate { at: start };
        let high = self.code_unit()?;
        if !(0xd800..0xe000).contains(&high) {
            return char::from_u32(high).ok_or(unpaired);
        }
        if self.bytes.get(self.at..self.at + 2) != Some(b"\\u") {
            return Err(unpaired);
        }
        self.at += 1;
        let low = self.code_unit()?;
        if high >= 0xdc00 || !(0xdc00..0xe000).contains(&low) {
            return Err(unpaired);
        }
        char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)).ok_or(unpaired)
    }

    /// The four hexadecimal digits after a `u`.
    fn code_unit(&mut self) -> Result<u32, JsonError> {
        let digits = self.bytes.get(self.at + 1..self.at + 5);
        let Some(digits) = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)) else {
            return Err(self.expected("four hexadecimal digits"));
        };
        let unit = digits.iter().fold(0, |unit, digit| {
            unit * 16 + char::from(*digit).to_digit(16).unwrap_or(0)
        });
        self.at += 5;
        Ok(unit)
    }

    fn word(&mut self, word: &'static str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.expected("a value"))
        }
    }

    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.expected(expected))
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError::Syntax {
            at: self.at,
            expected,
        }
    }
}
