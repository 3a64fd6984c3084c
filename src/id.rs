//! Typed identifiers. They sort by the time at which they were made and are safe in paths, branch names and URLs.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::change::read_text;
use crate::clock::Millis;

/// An identifier that does not have the form `<kind>-<26 lower-case letters and digits>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading {kind} id: {found:?} is not of the form {kind}-… (26 characters of 0-9 and a-v); copy it from `caretaker incident list` or `project list`"
)]
pub struct IdError {
    kind: &'static str,
    found: String,
}

/// Sixteen bytes from which an identifier is made unique; a parameter, so that tests can fix them.
pub type Entropy = [u8; 10];

const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// Digits of an identifier.
const DIGITS: usize = 26;

/// 48 bits of time and 80 bits of entropy as base-32 digits, most significant first.
fn digits(now: Millis, entropy: Entropy) -> [u8; DIGITS] {
    let mut value = u128::from(u64::try_from(now.0).unwrap_or(0) & 0xffff_ffff_ffff) << 80;
    value |= entropy
        .iter()
        .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    let mut digits = [0; DIGITS];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        *digit = ALPHABET[(value >> (5 * place) & 31) as usize];
    }
    digits
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        // Its characters, without an allocation: a verifier of a log reads and compares millions.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; concat!($kind, "-").len() + DIGITS]);

        impl $name {
            const PREFIX: &'static str = concat!($kind, "-");

            /// Makes a new identifier from the present moment and fresh entropy.
            pub fn new(now: Millis, entropy: Entropy) -> Self {
                Self::of(&digits(now, entropy))
            }

            fn of(digits: &[u8; DIGITS]) -> Self {
                let mut text = [0; concat!($kind, "-").len() + DIGITS];
                let (prefix, rest) = text.split_at_mut(Self::PREFIX.len());
                prefix.copy_from_slice(Self::PREFIX.as_bytes());
                rest.copy_from_slice(digits);
                Self(text)
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                // Always ASCII.
                str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = text.strip_prefix(Self::PREFIX).and_then(|rest| rest.as_bytes().as_array());
                match digits.filter(|digits| digits.iter().all(|digit| ALPHABET.contains(digit))) {
                    Some(digits) => Ok(Self::of(digits)),
                    None => Err(IdError { kind: $kind, found: text.chars().take(80).collect() }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.as_str().to_owned()
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_text(deserializer)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.as_str()).finish()
            }
        }
    )*};
}

identifiers! {
    /// An organisation: the scope of everything that is read.
    OrganisationId = "org";
    /// A registered repository with its policy.
    ProjectId = "prj";
    /// One failure being worked on.
    IncidentId = "inc";
    /// One proposed change.
    ProposalId = "prp";
    /// One attempt to merge an approved change.
    ExecutionId = "exe";
    /// One signed event.
    EventId = "evt";
    /// One approval link.
    ApprovalId = "apr";
    /// One call of a tool that a person is asked about.
    ToolCallId = "call";
    /// One pattern that a person always allows.
    AlwaysId = "alw";
}
