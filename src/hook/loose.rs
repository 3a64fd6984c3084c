//! JSON values read as far as they are of use. A member of another kind than expected counts as not there, and costs no
//! memory: a payload's lists and texts are passed over, not kept.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The longest text that is kept, in bytes: a git reference may have 255.
const LONGEST_TEXT: usize = 255;

/// One plain value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Scalar {
    /// `null`, or not there at all.
    #[default]
    Absent,
    /// A whole number from 0 to 2^64 - 1.
    Number(u64),
    /// A text that is not too long.
    Text(String),
    /// Anything else.
    Other,
}

/// What a visitor answers to every kind of value that it does not name itself.
macro_rules! otherwise {
    ($answer:expr; $($kind:ident($($value:ty)?)),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        $(fn $kind<E: Error>(self $(, _: $value)?) -> Result<Self::Value, E> {
            Ok($answer)
        })*
    };
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    otherwise!(Scalar::Other; visit_bool(bool), visit_i64(i64), visit_f64(f64));

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Absent)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(if text.len() <= LONGEST_TEXT {
            Scalar::Text(text.to_owned())
        } else {
            Scalar::Other
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Scalar, A::Error> {
        pass_over_list(list).map(|()| Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Scalar, A::Error> {
        pass_over_members(members).map(|()| Scalar::Other)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

fn pass_over_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn pass_over_members<'de, A: MapAccess<'de>>(mut members: A) -> Result<(), A::Error> {
    while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// An object; none when something else stands there.
#[derive(Debug, Default)]
pub(super) struct Members<T>(pub(super) Option<T>);

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
    type Value = Members<T>;

    otherwise!(Members(None); visit_unit(), visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Members<T>, A::Error> {
        pass_over_list(list).map(|()| Members(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Members<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(|read| Members(Some(read)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MembersVisitor(PhantomData))
    }
}

/// The first objects of a list; empty when something else stands there.
#[derive(Debug)]
pub(super) struct Listed<T, const MOST: usize>(pub(super) Vec<T>);

impl<T, const MOST: usize> Default for Listed<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct ListedVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for ListedVisitor<T, MOST> {
    type Value = Listed<T, MOST>;

    otherwise!(Listed::default(); visit_unit(), visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < MOST {
            match list.next_element::<Members<T>>()? {
                Some(Members(item)) => kept.extend(item),
                None => return Ok(Listed(kept)),
            }
        }
        pass_over_list(list).map(|()| Listed(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        pass_over_members(members).map(|()| Listed::default())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Listed<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListedVisitor(PhantomData))
    }
}
