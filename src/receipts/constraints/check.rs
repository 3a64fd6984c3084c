//! Whether a call's arguments keep to constraints. What must hold fails when it cannot be seen to hold: an absent field, a value of
//! another kind, an empty list.

use std::fmt;

use super::{Constraints, Kind, Scalar};
use crate::attest::json::Json;
use crate::attest::text::shown;
use crate::receipts::arguments::Arguments;

/// Which constraint a call breaks, and how. The values of the call are not repeated: they may be what nobody may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The constraint.
    pub kind: Kind,
    /// The field, made printable; of a combination, its fields.
    pub field: String,
    why: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} {}", self.kind, self.field, self.why)
    }
}

type Checked = Result<(), Violation>;

impl Constraints {
    /// Judges arguments: the first constraint they break.
    pub fn check(&self, arguments: &Arguments<'_>) -> Checked {
        self.check_forbidden(arguments)?;
        self.check_allowed(arguments)?;
        self.check_prefixes(arguments)?;
        self.check_bounds(arguments)?;
        self.check_presence(arguments)
    }

    fn check_forbidden(&self, arguments: &Arguments<'_>) -> Checked {
        let kind = Kind::ForbiddenValues;
        for (field, listed) in self.forbidden_values.iter().flatten() {
            let Some(value) = arguments.find(field) else {
                continue;
            };
            let forbidden = |leaf: &Leaf<'_>| listed.iter().any(|value| leaf.resembles(value));
            if leaves(value).iter().any(forbidden) {
                return broken(kind, field, "holds a value that is forbidden");
            }
        }
        Ok(())
    }

    fn check_allowed(&self, arguments: &Arguments<'_>) -> Checked {
        let kind = Kind::AllowedValues;
        for (field, listed) in self.allowed_values.iter().flatten() {
            let allowed = |leaf: &Leaf<'_>| listed.iter().any(|value| leaf.is(value));
            for_all(
                kind,
                field,
                arguments,
                allowed,
                "holds a value that is not allowed",
            )?;
        }
        Ok(())
    }

    fn check_prefixes(&self, arguments: &Arguments<'_>) -> Checked {
        let kind = Kind::StartsWith;
        for (field, prefix) in self.starts_with.iter().flatten() {
            let value = present(kind, field, arguments)?;
            let Json::Text(value) = value else {
                return broken(kind, field, "is not a string");
            };
            if !value.starts_with(prefix.as_str()) {
                return broken(kind, field, "does not begin as it must");
            }
            // Break it: leave this out; `receipts::constraints::a_path_that_leads_back_out_does_not_begin_with_its_folder` fails.
            if leads_back(value) {
                return broken(kind, field, "leads back out by `..`");
            }
        }
        Ok(())
    }

    fn check_bounds(&self, arguments: &Arguments<'_>) -> Checked {
        for (field, bound) in self.max_value.iter().flatten() {
            let within = |leaf: &Leaf<'_>| matches!(leaf, Leaf::Integer(number) if number <= bound);
            let why = "holds something that is not a number up to the bound";
            for_all(Kind::MaxValue, field, arguments, within, why)?;
        }
        for (field, bound) in self.min_value.iter().flatten() {
            let within = |leaf: &Leaf<'_>| matches!(leaf, Leaf::Integer(number) if number >= bound);
            let why = "holds something that is not a number from the bound on";
            for_all(Kind::MinValue, field, arguments, within, why)?;
        }
        Ok(())
    }

    fn check_presence(&self, arguments: &Arguments<'_>) -> Checked {
        for field in self.required_present.iter().flatten() {
            present(Kind::RequiredPresent, field, arguments)?;
        }
        for group in self.forbidden_field_combinations.iter().flatten() {
            if group.iter().all(|field| arguments.find(field).is_some()) {
                let kind = Kind::ForbiddenFieldCombinations;
                return broken(kind, &group.join(" and "), "are there together");
            }
        }
        Ok(())
    }
}

fn broken<T>(kind: Kind, field: &str, why: &'static str) -> Result<T, Violation> {
    Err(Violation {
        kind,
        field: shown(field),
        why,
    })
}

fn present<'a, 'b>(
    kind: Kind,
    field: &str,
    arguments: &'b Arguments<'a>,
) -> Result<&'b Json<'a>, Violation> {
    match arguments.find(field) {
        Some(value) => Ok(value),
        // Break it: take an absent field as satisfied; `receipts::constraints::an_absent_field_satisfies_nothing` fails.
        None => broken(kind, field, "is absent from the call"),
    }
}

/// The field is there, holds something, and every value in it `holds`.
fn for_all(
    kind: Kind,
    field: &str,
    arguments: &Arguments<'_>,
    holds: impl Fn(&Leaf<'_>) -> bool,
    why: &'static str,
) -> Checked {
    let leaves = leaves(present(kind, field, arguments)?);
    if leaves.is_empty() {
        return broken(kind, field, "holds no value");
    }
    if leaves.iter().all(holds) {
        Ok(())
    } else {
        broken(kind, field, why)
    }
}

/// A value in a call, wherever it lies: in lists, in objects, and as the name of a member.
#[derive(Debug, Clone, Copy)]
enum Leaf<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Text(&'a str),
}

impl Leaf<'_> {
    /// Whether this is the listed value. `true` is not 1.
    fn is(&self, listed: &Scalar) -> bool {
        match (self, listed) {
            (Self::Text(own), Scalar::Text(listed)) => own == listed,
            (Self::Bool(own), Scalar::Bool(listed)) => own == listed,
            (Self::Integer(own), Scalar::Integer(listed)) => own == listed,
            // Break it: compare a boolean with the integer it is in other languages; `receipts::constraints::true_is_not_one` fails.
            _ => false,
        }
    }

    /// Whether this is the listed value, or would be to a tool for which `true` is 1: what is forbidden is forbidden in both forms.
    fn resembles(&self, listed: &Scalar) -> bool {
        self.is(listed)
            || match (self, listed) {
                (Self::Bool(own), Scalar::Integer(listed)) => i64::from(*own) == *listed,
                (Self::Integer(own), Scalar::Bool(listed)) => *own == i64::from(*listed),
                _ => false,
            }
    }
}

fn leaves<'a>(json: &'a Json<'_>) -> Vec<Leaf<'a>> {
    let mut out = Vec::new();
    gather(json, &mut out);
    out
}

/// The reader has bounded how deep this goes.
fn gather<'a>(json: &'a Json<'_>, out: &mut Vec<Leaf<'a>>) {
    match json {
        Json::Null => out.push(Leaf::Null),
        Json::Bool(value) => out.push(Leaf::Bool(*value)),
        Json::Integer(value) => out.push(Leaf::Integer(*value)),
        Json::Text(value) => out.push(Leaf::Text(value)),
        Json::List(items) => items.iter().for_each(|item| gather(item, out)),
        Json::Members(members) => {
            for (name, value) in members {
                out.push(Leaf::Text(name));
                gather(value, out);
            }
        }
    }
}

/// Whether some part of a path is `..`, also spelt for an address (`%2e`), between slashes of either kind.
fn leads_back(value: &str) -> bool {
    value.split(['/', '\\']).any(|part| {
        part.contains('.') && part == ".."
            || part.contains('%') && part.to_ascii_lowercase().replace("%2e", ".") == ".."
    })
}
