//! The ways in which somebody outside holds checkpoints.

use std::fmt;

/// A way to anchor a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnchorKind {
    /// A branch of a repository at the provider.
    Branch,
    /// A timestamp authority (RFC 3161).
    Timestamp,
    /// A witness (C2SP tlog-witness).
    Witness,
}

impl AnchorKind {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Branch, Self::Timestamp, Self::Witness];

    /// The word in configuration, rules, tables and bundles.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Branch => "branch",
            Self::Timestamp => "timestamp",
            Self::Witness => "witness",
        }
    }
}

impl fmt::Display for AnchorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
