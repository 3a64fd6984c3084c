//! The arguments of a call, as a gate looks at them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use thiserror::Error;

use super::canonical::to_canonical;
use super::constraints::compared;
use crate::attest::json::{self, Json, JsonError};
use crate::attest::text::shown;
use crate::change::Sha256Digest;

/// The longest arguments that are read, in bytes.
pub const MAX_ARGUMENTS: usize = 16 * 1024 * 1024;

/// Why arguments cannot be judged. What a gate reads in another way than the tool is refused, not guessed at.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArgumentError {
    /// Not JSON as it is read here. Numbers with a fraction are among it: the receipts' profile has integers only.
    #[error("the call's arguments cannot be judged: {0}")]
    Json(#[from] JsonError),
    /// Not an object.
    #[error("the call's arguments are not a JSON object")]
    Object,
    /// Two spellings of one name.
    #[error(
        "the call's arguments name {name} twice, in two spellings that are one in Unicode normal form C"
    )]
    SameName {
        /// The name, made printable.
        name: String,
    },
}

/// Arguments that can be judged: an object, its names in Unicode normal form C.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments<'a>(BTreeMap<Cow<'a, str>, Json<'a>>);

impl<'a> Arguments<'a> {
    /// Takes a document that was read strictly.
    pub fn new(json: Json<'a>) -> Result<Self, ArgumentError> {
        let Json::Members(members) = json else {
            return Err(ArgumentError::Object);
        };
        if members.keys().all(|name| name.is_ascii()) {
            return Ok(Self(members));
        }
        let mut out = BTreeMap::new();
        for (name, value) in members {
            let compared = Cow::Owned(compared(&name).into_owned());
            // Break it: leave this out; `receipts::constraints::a_call_that_names_one_field_in_two_spellings_is_refused` fails.
            if out.insert(compared, value).is_some() {
                return Err(ArgumentError::SameName { name: shown(&name) });
            }
        }
        Ok(Self(out))
    }

    /// The argument of this name, however both are spelt.
    pub fn find(&self, name: &str) -> Option<&Json<'a>> {
        self.0.get(compared(name).as_ref())
    }

    /// Those of these fields that the call has.
    pub fn among<'b>(&self, fields: impl IntoIterator<Item = &'b str>) -> Json<'static> {
        let found = fields.into_iter().filter_map(|field| {
            let value = self.find(field)?;
            Some((Cow::Owned(compared(field).into_owned()), kept(value)))
        });
        Json::Members(found.collect())
    }
}

/// What came with a call: its arguments if they can be judged, and in any case their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenArguments<'a> {
    /// As judged.
    pub judged: Result<Arguments<'a>, ArgumentError>,
    /// The digest of their canonical spelling, or of the bytes as they came where there is none.
    pub digest: Sha256Digest,
}

impl<'a> GivenArguments<'a> {
    /// Reads the JSON text of a call's arguments.
    pub fn read(bytes: &'a [u8]) -> Self {
        match json::read(bytes, MAX_ARGUMENTS) {
            Ok(json) => {
                let digest = Sha256Digest::of(&to_canonical(&json));
                let judged = Arguments::new(json);
                Self { judged, digest }
            }
            Err(error) => Self {
                judged: Err(error.into()),
                digest: Sha256Digest::of(bytes),
            },
        }
    }
}

/// A copy that outlives the text it was read from.
pub(super) fn kept(json: &Json<'_>) -> Json<'static> {
    match json {
        Json::Null => Json::Null,
        Json::Bool(value) => Json::Bool(*value),
        Json::Integer(value) => Json::Integer(*value),
        Json::Text(value) => Json::Text(Cow::Owned(value.to_string())),
        Json::List(items) => Json::List(items.iter().map(kept).collect()),
        Json::Members(members) => {
            let kept = members
                .iter()
                .map(|(name, value)| (Cow::Owned(name.to_string()), kept(value)));
            Json::Members(kept.collect())
        }
    }
}
