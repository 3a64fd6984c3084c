//! What a call's arguments must be like: a closed vocabulary, in one normal form so that it can be signed and compared.

mod check;
mod narrow;
mod read;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

pub use check::Violation;
pub use narrow::WiderConstraint;

use super::canonical::{integer, text, utf16_order};
use crate::attest::json::Json;

/// A kind of constraint. There are no others: an unknown kind is refused when a token is made and when one is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The field is present and every value in it is listed.
    AllowedValues,
    /// Not all of these fields are present together.
    ForbiddenFieldCombinations,
    /// No value in the field is listed; an absent field passes.
    ForbiddenValues,
    /// The field is present and every value in it is a number of at most this.
    MaxValue,
    /// The field is present and every value in it is a number of at least this.
    MinValue,
    /// The field is present; null counts.
    RequiredPresent,
    /// The field is present, a string, and begins with this; a path does not lead back out by `..`.
    StartsWith,
}

impl Kind {
    /// Every kind, in the order of their names.
    pub const ALL: [Self; 7] = [
        Self::AllowedValues,
        Self::ForbiddenFieldCombinations,
        Self::ForbiddenValues,
        Self::MaxValue,
        Self::MinValue,
        Self::RequiredPresent,
        Self::StartsWith,
    ];

    /// The name in tokens and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllowedValues => "allowed_values",
            Self::ForbiddenFieldCombinations => "forbidden_field_combinations",
            Self::ForbiddenValues => "forbidden_values",
            Self::MaxValue => "max_value",
            Self::MinValue => "min_value",
            Self::RequiredPresent => "required_present",
            Self::StartsWith => "starts_with",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Why a document is no set of constraints. Names in it are made printable.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConstraintError {
    /// Not an object of kinds.
    #[error("constraints are an object of kinds, as in {{\"max_value\": {{\"amount\": 100}}}}")]
    Object,
    /// A kind that is not in the vocabulary.
    #[error(
        "`{found}` is no kind of constraint; there are allowed_values, forbidden_field_combinations, forbidden_values, max_value, min_value, required_present and starts_with"
    )]
    UnknownKind {
        /// The name found.
        found: String,
    },
    /// A kind with the wrong form.
    #[error("{kind} must be {expected}")]
    Shape {
        /// The kind.
        kind: Kind,
        /// What it is, in words.
        expected: &'static str,
    },
    /// An empty name of a field.
    #[error("{kind} names a field that is empty")]
    EmptyField {
        /// The kind.
        kind: Kind,
    },
    /// Two names of fields that look the same.
    #[error(
        "{kind} names the field {field} twice: two spellings that are one in Unicode normal form C"
    )]
    SameField {
        /// The kind.
        kind: Kind,
        /// The second of them.
        field: String,
    },
}

/// A value that a list may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// `true` or `false`, which are no numbers.
    Bool(bool),
    /// An integer.
    Integer(i64),
}

impl Scalar {
    fn to_json(&self) -> Json<'_> {
        match self {
            Self::Text(value) => text(value),
            Self::Bool(value) => Json::Bool(*value),
            Self::Integer(value) => integer(*value),
        }
    }

    /// The format's order: strings by UTF-16 code unit, then `false`, `true`, then integers.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        let rank = |scalar: &Self| match scalar {
            Self::Text(_) => (0, 0),
            Self::Bool(value) => (1, i64::from(*value)),
            Self::Integer(value) => (2, *value),
        };
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => utf16_order(left, right),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// A map from names of fields.
type Fields<T> = BTreeMap<String, T>;

/// Constraints in normal form: lists sorted, every name and value checked. What is absent is not written; what is there but empty
/// is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    allowed_values: Option<Fields<Vec<Scalar>>>,
    forbidden_field_combinations: Option<Vec<Vec<String>>>,
    forbidden_values: Option<Fields<Vec<Scalar>>>,
    max_value: Option<Fields<i64>>,
    min_value: Option<Fields<i64>>,
    required_present: Option<Vec<String>>,
    starts_with: Option<Fields<String>>,
}

impl Constraints {
    /// The document that is signed.
    pub fn to_json(&self) -> Json<'_> {
        let kinds = [
            (Kind::AllowedValues, self.allowed_values.as_ref().map(lists)),
            (
                Kind::ForbiddenFieldCombinations,
                self.forbidden_field_combinations.as_deref().map(groups),
            ),
            (
                Kind::ForbiddenValues,
                self.forbidden_values.as_ref().map(lists),
            ),
            (Kind::MaxValue, self.max_value.as_ref().map(bounds)),
            (Kind::MinValue, self.min_value.as_ref().map(bounds)),
            (
                Kind::RequiredPresent,
                self.required_present.as_deref().map(names),
            ),
            (Kind::StartsWith, self.starts_with.as_ref().map(prefixes)),
        ];
        Json::Members(
            kinds
                .into_iter()
                .filter_map(|(kind, value)| Some((Cow::Borrowed(kind.name()), value?)))
                .collect(),
        )
    }

    /// Every field that some constraint names, each once.
    pub fn fields(&self) -> BTreeSet<&str> {
        let lists = self.allowed_values.iter().chain(&self.forbidden_values);
        let bounds = self.max_value.iter().chain(&self.min_value);
        let groups = self.forbidden_field_combinations.iter().flatten();
        lists
            .flat_map(Fields::keys)
            .chain(bounds.flat_map(Fields::keys))
            .chain(self.starts_with.iter().flat_map(Fields::keys))
            .chain(self.required_present.iter().flatten())
            .chain(groups.flatten())
            .map(String::as_str)
            .collect()
    }
}

fn object<'a, T>(fields: &'a Fields<T>, value: impl Fn(&'a T) -> Json<'a>) -> Json<'a> {
    let pairs = fields.iter();
    Json::Members(
        pairs
            .map(|(field, own)| (Cow::Borrowed(field.as_str()), value(own)))
            .collect(),
    )
}

fn lists(fields: &Fields<Vec<Scalar>>) -> Json<'_> {
    object(fields, |values| {
        Json::List(values.iter().map(Scalar::to_json).collect())
    })
}

fn bounds(fields: &Fields<i64>) -> Json<'_> {
    object(fields, |bound| integer(*bound))
}

fn prefixes(fields: &Fields<String>) -> Json<'_> {
    object(fields, |prefix| text(prefix))
}

fn names(names: &[String]) -> Json<'_> {
    Json::List(names.iter().map(|name| text(name)).collect())
}

fn groups(groups: &[Vec<String>]) -> Json<'_> {
    Json::List(groups.iter().map(|group| names(group)).collect())
}

/// A field's name in the form in which names are compared (Unicode normal form C).
pub(super) fn compared(name: &str) -> Cow<'_, str> {
    if is_nfc_quick(name.chars()) == IsNormalized::Yes {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(name.nfc().collect())
    }
}
