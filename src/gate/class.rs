//! The blast radius of a change.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a change can reach. Ordered: of two classes the greater is the stricter, so [`Ord::max`] is "the stricter wins".
/// A path that no rule names is [`Class::Functional`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Behaviour of the program only.
    #[default]
    Functional,
    /// Stored data and its shape: migrations, schemas, fixtures that reach production.
    Data,
    /// Where and how things are built, deployed, checked and guarded.
    Infrastructure,
}

impl Class {
    /// The word used in JSON, in signed statements and on pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Functional => "functional",
            Self::Data => "data",
            Self::Infrastructure => "infrastructure",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
