//! The one spelling of JSON that is signed and hashed: the Raucle profile of RFC 8785.
//!
//! Members sorted by UTF-16 code unit at every depth, no white space, UTF-8 without `\u` escapes but for control characters,
//! integers within ±(2⁵³−1) only, no Unicode normalisation. Reading is [`crate::attest::json`]'s, which refuses everything that two
//! readers could read differently; what is written here is its inverse.

use std::borrow::Cow;
use std::collections::BTreeMap;

use thiserror::Error;

use crate::attest::json::{self, Json, JsonError, MAX_INTEGER};

/// Why bytes are not the canonical spelling of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CanonicalError {
    /// Not JSON as it is read here.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON, but spelt another way: white space, another order of members, an escape that is not needed.
    #[error(
        "the JSON is not in its canonical spelling (RFC 8785): members sorted by UTF-16 code unit, no white space, no needless escapes"
    )]
    Spelling,
}

/// The canonical spelling of a document.
pub fn to_canonical(json: &Json<'_>) -> Vec<u8> {
    let mut out = String::with_capacity(512);
    write(json, &mut out);
    out.into_bytes()
}

/// Reads a document of at most `limit` bytes, refusing every other spelling than the canonical one.
pub fn read_canonical(bytes: &[u8], limit: usize) -> Result<Json<'_>, CanonicalError> {
    let json = json::read(bytes, limit)?;
    // Break it: leave the comparison out; `receipts::canonical::another_spelling_of_a_signed_document_is_refused` fails.
    if to_canonical(&json) == bytes {
        Ok(json)
    } else {
        Err(CanonicalError::Spelling)
    }
}

/// An object with these members.
pub(super) fn members<'a, const N: usize>(pairs: [(&'static str, Json<'a>); N]) -> Json<'a> {
    Json::Members(named(pairs))
}

/// The members of an object.
pub(super) fn named<'a, const N: usize>(
    pairs: [(&'static str, Json<'a>); N],
) -> BTreeMap<Cow<'a, str>, Json<'a>> {
    pairs
        .into_iter()
        .map(|(name, value)| (Cow::Borrowed(name), value))
        .collect()
}

/// A string.
pub(super) fn text(text: &str) -> Json<'_> {
    Json::Text(Cow::Borrowed(text))
}

/// A string that stands nowhere yet.
pub(super) fn owned(text: String) -> Json<'static> {
    Json::Text(Cow::Owned(text))
}

/// An integer, kept within what the profile has.
pub(super) fn integer(number: i64) -> Json<'static> {
    Json::Integer(number.clamp(-MAX_INTEGER, MAX_INTEGER))
}

/// The order of strings in signed documents: by UTF-16 code unit, which differs from the order of their bytes where characters
/// beyond U+FFFF meet those from U+E000 on.
pub(super) fn utf16_order(left: &str, right: &str) -> std::cmp::Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

fn write(json: &Json<'_>, out: &mut String) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Integer(number) => out.push_str(&number.to_string()),
        Json::Text(text) => write_text(text, out),
        Json::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Json::Members(members) => write_members(members, out),
    }
}

fn write_members(members: &BTreeMap<Cow<'_, str>, Json<'_>>, out: &mut String) {
    let mut ordered: Vec<_> = members.iter().collect();
    // The map is in the order of bytes, which is already right unless a name has a character of four bytes.
    let beyond = |name: &str| name.bytes().any(|byte| byte >= 0xf0);
    if ordered.iter().any(|(name, _)| beyond(name)) {
        // Break it: leave the sorting out; `receipts::canonical::members_are_in_the_order_of_their_utf_16_units` fails.
        ordered.sort_by(|(left, _), (right, _)| utf16_order(left, right));
    }
    out.push('{');
    for (place, (name, value)) in ordered.into_iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    while let Some(at) = rest.bytes().position(special) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = tail.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                let code = u32::from(control) as usize;
                out.push_str("\\u00");
                out.push(char::from(DIGITS[code >> 4 & 15]));
                out.push(char::from(DIGITS[code & 15]));
            }
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}
