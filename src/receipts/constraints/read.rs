//! From a JSON document to constraints in normal form.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{ConstraintError, Constraints, Fields, Kind, Scalar, compared};
use crate::attest::json::Json;
use crate::attest::text::shown;
use crate::receipts::canonical::utf16_order;

type Read<T> = Result<T, ConstraintError>;

impl Constraints {
    /// Reads constraints and brings them into normal form. Unknown kinds are refused, never left out.
    pub fn from_json(json: &Json<'_>) -> Read<Self> {
        let Json::Members(kinds) = json else {
            return Err(ConstraintError::Object);
        };
        let mut out = Self::default();
        for (name, value) in kinds {
            let known = Kind::ALL.into_iter().find(|kind| kind.name() == name);
            // Break it: skip an unknown kind; `receipts::constraints::a_misspelt_kind_is_refused_and_not_left_out` fails.
            let kind = known.ok_or_else(|| ConstraintError::UnknownKind { found: shown(name) })?;
            match kind {
                Kind::AllowedValues => out.allowed_values = Some(lists(kind, value)?),
                Kind::ForbiddenValues => out.forbidden_values = Some(lists(kind, value)?),
                Kind::MaxValue => out.max_value = Some(bounds(kind, value)?),
                Kind::MinValue => out.min_value = Some(bounds(kind, value)?),
                Kind::StartsWith => out.starts_with = Some(prefixes(kind, value)?),
                Kind::RequiredPresent => {
                    let mut names = names(kind, value)?;
                    distinct(kind, names.iter().map(String::as_str))?;
                    names.sort_by(|left, right| utf16_order(left, right));
                    out.required_present = Some(names);
                }
                Kind::ForbiddenFieldCombinations => {
                    out.forbidden_field_combinations = Some(groups(kind, value)?);
                }
            }
        }
        Ok(out)
    }
}

fn shape<T>(kind: Kind, expected: &'static str) -> Read<T> {
    Err(ConstraintError::Shape { kind, expected })
}

/// The members of a kind that is an object from names of fields.
fn fields<'a, 'b>(
    kind: Kind,
    value: &'b Json<'a>,
    expected: &'static str,
) -> Read<&'b BTreeMap<Cow<'a, str>, Json<'a>>> {
    let Json::Members(members) = value else {
        return shape(kind, expected);
    };
    if members.keys().any(|name| name.is_empty()) {
        return Err(ConstraintError::EmptyField { kind });
    }
    distinct(kind, members.keys().map(AsRef::as_ref))?;
    Ok(members)
}

/// Refuses different spellings that are one name in normal form C: a tool could read either.
fn distinct<'a>(kind: Kind, names: impl Iterator<Item = &'a str>) -> Read<()> {
    let mut seen: BTreeMap<Cow<'a, str>, &'a str> = BTreeMap::new();
    for name in names {
        let first = *seen.entry(compared(name)).or_insert(name);
        // Break it: leave this out; `receipts::constraints::two_spellings_of_one_field_are_refused` fails.
        if first != name {
            let field = shown(name);
            return Err(ConstraintError::SameField { kind, field });
        }
    }
    Ok(())
}

fn lists(kind: Kind, value: &Json<'_>) -> Read<Fields<Vec<Scalar>>> {
    const EXPECTED: &str =
        "an object of lists of strings, integers and booleans, as in {\"to\": [\"alice\"]}";
    let mut out = Fields::new();
    for (field, values) in fields(kind, value, EXPECTED)? {
        let Json::List(values) = values else {
            return shape(kind, EXPECTED);
        };
        let scalars = values.iter().map(|value| match value {
            Json::Text(value) => Ok(Scalar::Text(value.to_string())),
            Json::Bool(value) => Ok(Scalar::Bool(*value)),
            Json::Integer(value) => Ok(Scalar::Integer(*value)),
            Json::Null | Json::List(_) | Json::Members(_) => shape(kind, EXPECTED),
        });
        let mut scalars = scalars.collect::<Read<Vec<_>>>()?;
        scalars.sort_by(Scalar::order);
        out.insert(field.to_string(), scalars);
    }
    Ok(out)
}

fn bounds(kind: Kind, value: &Json<'_>) -> Read<Fields<i64>> {
    const EXPECTED: &str = "an object of integers, as in {\"amount\": 100}";
    let mut out = Fields::new();
    for (field, bound) in fields(kind, value, EXPECTED)? {
        let Json::Integer(bound) = bound else {
            return shape(kind, EXPECTED);
        };
        out.insert(field.to_string(), *bound);
    }
    Ok(out)
}

fn prefixes(kind: Kind, value: &Json<'_>) -> Read<Fields<String>> {
    const EXPECTED: &str = "an object of strings, as in {\"path\": \"src/\"}";
    let mut out = Fields::new();
    for (field, prefix) in fields(kind, value, EXPECTED)? {
        let Json::Text(prefix) = prefix else {
            return shape(kind, EXPECTED);
        };
        out.insert(field.to_string(), prefix.to_string());
    }
    Ok(out)
}

fn names(kind: Kind, value: &Json<'_>) -> Read<Vec<String>> {
    const EXPECTED: &str = "a list of names of fields, as in [\"subject\"]";
    let Json::List(items) = value else {
        return shape(kind, EXPECTED);
    };
    let names = items.iter().map(|item| match item {
        Json::Text(name) if name.is_empty() => Err(ConstraintError::EmptyField { kind }),
        Json::Text(name) => Ok(name.to_string()),
        _ => shape(kind, EXPECTED),
    });
    names.collect()
}

fn groups(kind: Kind, value: &Json<'_>) -> Read<Vec<Vec<String>>> {
    let Json::List(items) = value else {
        return shape(kind, "a list of lists of names of fields");
    };
    let sorted = |item| {
        let mut group = names(kind, item)?;
        group.sort_by(|left, right| utf16_order(left, right));
        Ok(group)
    };
    let mut groups = items.iter().map(sorted).collect::<Read<Vec<_>>>()?;
    groups.sort_by(|left, right| group_order(left, right));
    Ok(groups)
}

/// The format's order of groups of names: by the UTF-16 units of the first name in which they differ.
pub(super) fn group_order(left: &[String], right: &[String]) -> std::cmp::Ordering {
    let units = |group: &[String]| -> Vec<Vec<u16>> {
        let names = group.iter();
        names.map(|name| name.encode_utf16().collect()).collect()
    };
    units(left).cmp(&units(right))
}
