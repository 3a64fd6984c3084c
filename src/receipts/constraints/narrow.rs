//! Whether constraints are as tight as others, and what both together are.
//!
//! That the narrower of two allows nothing that the wider does not is a property test
//! (`receipts::properties::whatever_a_child_allows_its_parents_allow`).

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::read::group_order;
use super::{Constraints, Fields, Kind, Scalar, compared};
use crate::attest::text::shown;
use crate::receipts::canonical::utf16_order;

/// A constraint that a child has looser than its parent, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind} of {field} is wider than the parent's")]
pub struct WiderConstraint {
    /// The kind.
    pub kind: Kind,
    /// The field, made printable.
    pub field: String,
}

type Narrow<T> = Result<T, WiderConstraint>;

fn wider<T>(kind: Kind, field: &str) -> Narrow<T> {
    let field = shown(field);
    Err(WiderConstraint { kind, field })
}

impl Constraints {
    /// Whether these are at least as tight as `parent` in every constraint of it: the first that is not.
    pub fn narrows(&self, parent: &Self) -> Narrow<()> {
        let (own, theirs) = (self.allowed_values.as_ref(), parent.allowed_values.as_ref());
        keeps(Kind::AllowedValues, own, theirs, |own, theirs| {
            subset(own, theirs)
        })?;
        let (own, theirs) = (
            self.forbidden_values.as_ref(),
            parent.forbidden_values.as_ref(),
        );
        keeps(Kind::ForbiddenValues, own, theirs, |own, theirs| {
            subset(theirs, own)
        })?;
        let (own, theirs) = (self.max_value.as_ref(), parent.max_value.as_ref());
        keeps(Kind::MaxValue, own, theirs, |own, theirs| own <= theirs)?;
        let (own, theirs) = (self.min_value.as_ref(), parent.min_value.as_ref());
        keeps(Kind::MinValue, own, theirs, |own, theirs| own >= theirs)?;
        let (own, theirs) = (self.starts_with.as_ref(), parent.starts_with.as_ref());
        keeps(Kind::StartsWith, own, theirs, |own, theirs| {
            own.starts_with(theirs.as_str())
        })?;
        let own = self.required_present.as_deref().unwrap_or_default();
        for field in parent.required_present.iter().flatten() {
            if !own.contains(field) {
                return wider(Kind::RequiredPresent, field);
            }
        }
        let own = self.forbidden_field_combinations.as_deref();
        for group in parent.forbidden_field_combinations.iter().flatten() {
            if !own.unwrap_or_default().contains(group) {
                let kind = Kind::ForbiddenFieldCombinations;
                return wider(kind, &group.join(" and "));
            }
        }
        Ok(())
    }

    /// These with further ones: what a child of a token gets that asks for `extra`. Where both speak of a field, `extra` must be as
    /// tight, or it is refused; it is not quietly made tighter.
    pub fn with(&self, extra: &Self) -> Narrow<Self> {
        let (own, new) = (self.allowed_values.as_ref(), extra.allowed_values.as_ref());
        let allowed_values = added(Kind::AllowedValues, own, new, |own, new| {
            subset(new, own).then(|| new.clone())
        })?;
        let (own, new) = (
            self.forbidden_values.as_ref(),
            extra.forbidden_values.as_ref(),
        );
        let forbidden_values = added(Kind::ForbiddenValues, own, new, |own, new| {
            Some(own.iter().chain(new).cloned().collect())
        })?;
        let (own, new) = (self.max_value.as_ref(), extra.max_value.as_ref());
        let max_value = added(Kind::MaxValue, own, new, |own, new| {
            (new <= own).then_some(*new)
        })?;
        let (own, new) = (self.min_value.as_ref(), extra.min_value.as_ref());
        let min_value = added(Kind::MinValue, own, new, |own, new| {
            (new >= own).then_some(*new)
        })?;
        let (own, new) = (self.starts_with.as_ref(), extra.starts_with.as_ref());
        let starts_with = added(Kind::StartsWith, own, new, |own, new| {
            new.starts_with(own.as_str()).then(|| new.clone())
        })?;
        let mut required_present = joined(
            self.required_present.as_deref(),
            extra.required_present.as_deref(),
        );
        if let Some(names) = &mut required_present {
            names.sort_by(|left, right| utf16_order(left, right));
            names.dedup();
            let mut seen = BTreeSet::new();
            if let Some(again) = names.iter().find(|name| !seen.insert(compared(name))) {
                return wider(Kind::RequiredPresent, again);
            }
        }
        let mut groups = joined(
            self.forbidden_field_combinations.as_deref(),
            extra.forbidden_field_combinations.as_deref(),
        );
        if let Some(groups) = &mut groups {
            groups.sort_by(|left, right| group_order(left, right));
            groups.dedup();
        }
        Ok(Self {
            allowed_values: allowed_values.map(each_once),
            forbidden_field_combinations: groups,
            forbidden_values: forbidden_values.map(each_once),
            max_value,
            min_value,
            required_present,
            starts_with,
        })
    }
}

/// Every field of the parent's is there and `tighter`.
fn keeps<T>(
    kind: Kind,
    own: Option<&Fields<T>>,
    theirs: Option<&Fields<T>>,
    tighter: impl Fn(&T, &T) -> bool,
) -> Narrow<()> {
    for (field, theirs) in theirs.into_iter().flatten() {
        let own = own.and_then(|own| own.get(field));
        // Break it: pass over a field that the child lacks; `receipts::attenuation::a_child_that_drops_a_constraint_is_wider` fails.
        if !own.is_some_and(|own| tighter(own, theirs)) {
            return wider(kind, field);
        }
    }
    Ok(())
}

/// The fields of both; where both have one, what `both` makes of the two, or a refusal.
fn added<T: Clone>(
    kind: Kind,
    own: Option<&Fields<T>>,
    extra: Option<&Fields<T>>,
    both: impl Fn(&T, &T) -> Option<T>,
) -> Narrow<Option<Fields<T>>> {
    let Some(extra) = extra else {
        return Ok(own.cloned());
    };
    let mut out = own.cloned().unwrap_or_default();
    for (field, new) in extra {
        let again = |known: &String| compared(known) == compared(field);
        let value = match out.get(field) {
            Some(own) => both(own, new),
            // Another spelling of a name that the parent has is another field to a tool that compares bytes.
            None if out.keys().any(again) => None,
            None => Some(new.clone()),
        };
        match value {
            Some(value) => out.insert(field.clone(), value),
            None => return wider(kind, field),
        };
    }
    Ok(Some(out))
}

fn joined<T: Clone>(own: Option<&[T]>, extra: Option<&[T]>) -> Option<Vec<T>> {
    match (own, extra) {
        (None, None) => None,
        (own, extra) => Some([own.unwrap_or_default(), extra.unwrap_or_default()].concat()),
    }
}

fn subset(own: &[Scalar], theirs: &[Scalar]) -> bool {
    own.iter().all(|value| theirs.contains(value))
}

/// In the format's order, without repetitions: the form in which the published gate compares a child with its parent.
fn each_once(fields: Fields<Vec<Scalar>>) -> Fields<Vec<Scalar>> {
    let sorted = fields.into_iter().map(|(field, mut values)| {
        values.sort_by(Scalar::order);
        values.dedup();
        (field, values)
    });
    sorted.collect::<BTreeMap<_, _>>()
}
