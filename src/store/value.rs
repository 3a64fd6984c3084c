//! Values as both databases hold them: TEXT, BIGINT, BLOB; and back, refusing what was not written by this program.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::StoreError;
use crate::change::Sha256Digest;

fn unreadable(what: &'static str, reason: impl Display) -> StoreError {
    StoreError::Unreadable {
        what,
        reason: reason.to_string(),
    }
}

pub(super) fn text(row: &AnyRow, column: &'static str) -> Result<String, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn optional_text(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<String>, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn integer(row: &AnyRow, column: &'static str) -> Result<i64, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn optional_integer(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<i64>, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn bytes(row: &AnyRow, column: &'static str) -> Result<Vec<u8>, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

pub(super) fn optional_bytes(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<Vec<u8>>, StoreError> {
    row.try_get(column)
        .map_err(|error| unreadable(column, error))
}

/// A count or position: never negative.
pub(super) fn count(row: &AnyRow, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(integer(row, column)?).map_err(|error| unreadable(column, error))
}

/// A value with a text form of its own, e.g. an identifier.
pub(super) fn parsed<T: FromStr<Err: Display>>(
    row: &AnyRow,
    column: &'static str,
) -> Result<T, StoreError> {
    let text = text(row, column)?;
    text.parse().map_err(|error| unreadable(column, error))
}

/// A digest, if there is one.
pub(super) fn optional_digest(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<Sha256Digest>, StoreError> {
    optional_text(row, column)?
        .map(|text| text.parse().map_err(|error| unreadable(column, error)))
        .transpose()
}

/// One word of an enumeration, as its serialisation spells it.
pub(super) fn word<T: DeserializeOwned>(
    row: &AnyRow,
    column: &'static str,
) -> Result<T, StoreError> {
    spelt(column, &text(row, column)?)
}

/// One word, if there is one.
pub(super) fn optional_word<T: DeserializeOwned>(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    optional_text(row, column)?
        .map(|text| spelt(column, &text))
        .transpose()
}

fn spelt<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<T, StoreError> {
    let source: StrDeserializer<'_, WordError> = text.into_deserializer();
    T::deserialize(source).map_err(|error| unreadable(column, error))
}

/// A JSON document.
pub(super) fn document<T: DeserializeOwned>(
    row: &AnyRow,
    column: &'static str,
) -> Result<T, StoreError> {
    let text = text(row, column)?;
    serde_json::from_str(&text).map_err(|error| unreadable(column, error))
}

/// A value as JSON, for a TEXT column.
pub(super) fn json<T: serde::Serialize>(
    what: &'static str,
    value: &T,
) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Value {
        what,
        reason: "it cannot be put into JSON",
    })
}

/// The word that an enumeration's serialisation spells.
pub(super) fn spelling<T: serde::Serialize>(
    what: &'static str,
    value: &T,
) -> Result<String, StoreError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word),
        _ => Err(StoreError::Value {
            what,
            reason: "it is not one word",
        }),
    }
}

/// A number for a BIGINT column.
pub(super) fn bigint(what: &'static str, value: impl TryInto<i64>) -> Result<i64, StoreError> {
    value.try_into().map_err(|_| StoreError::Value {
        what,
        reason: "it is above 2^63 - 1",
    })
}

/// Free text, in which NUL becomes U+FFFD: PostgreSQL's TEXT does not take it, and a message is no reason to fail.
pub(super) fn message(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Text that means something exactly as it is: refused with a NUL, which only one of the databases takes.
pub(super) fn exact<'a>(what: &'static str, text: &'a str) -> Result<&'a str, StoreError> {
    if text.contains('\0') {
        return Err(StoreError::Value {
            what,
            reason: "it contains a NUL character",
        });
    }
    Ok(text)
}
