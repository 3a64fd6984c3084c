//! Hexadecimal digits without an allocation: a verifier reads and writes dozens of digests an event.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// The lower-case digits of at most 32 bytes.
pub(super) struct Digits {
    digits: [u8; 64],
    length: usize,
}

impl Digits {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut digits = [b'0'; 64];
        let length = (2 * bytes.len()).min(digits.len());
        if let Some(place) = digits.get_mut(..length) {
            // Fails for another length only, which it is not.
            let _ = hex::encode_to_slice(bytes, place);
        }
        Self { digits, length }
    }

    pub(super) fn as_str(&self) -> &str {
        let digits = self.digits.get(..self.length).unwrap_or_default();
        str::from_utf8(digits).unwrap_or_default()
    }
}

/// Reads lower-case digits, twice as many as there are bytes to fill. False for anything else.
pub(super) fn fill(text: &str, bytes: &mut [u8]) -> bool {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let whole = pairs.len() == bytes.len() && rest.is_empty();
    whole
        && bytes.iter_mut().zip(pairs).all(|(byte, [high, low])| {
            let read = value(*high).zip(value(*low));
            read.is_some_and(|(high, low)| {
                *byte = high << 4 | low;
                true
            })
        })
}

/// Reads a value from its text, wherever the text stands.
pub(crate) fn read<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_str(Text(PhantomData))
}

struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
