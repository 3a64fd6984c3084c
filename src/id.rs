//! Typed identifiers. They sort by the time at which they were made and are safe in paths, branch names and URLs.

use std::fmt;

use serde::{Deserialize, Serialize};

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

/// 48 bits of time and 80 bits of entropy as 26 base-32 digits, most significant first.
fn digits(now: Millis, entropy: Entropy) -> String {
    let mut value = u128::from(u64::try_from(now.0).unwrap_or(0) & 0xffff_ffff_ffff) << 80;
    value |= entropy
        .iter()
        .fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    (0..26)
        .rev()
        .map(|place| char::from(ALPHABET[(value >> (5 * place) & 31) as usize]))
        .collect()
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Makes a new identifier from the present moment and fresh entropy.
            pub fn new(now: Millis, entropy: Entropy) -> Self {
                Self(format!(concat!($kind, "-{}"), digits(now, entropy)))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                let valid = text.strip_prefix(concat!($kind, "-")).is_some_and(|rest| {
                    rest.len() == 26 && rest.bytes().all(|byte| ALPHABET.contains(&byte))
                });
                if valid { Ok(Self(text.to_owned())) } else { Err(IdError { kind: $kind, found: text.chars().take(80).collect() }) }
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
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
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
