//! What a token may do, and what each use needs: the one table that tokens, the App's manifest and `app show` follow.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::super::credential::Use;

/// How much of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Looking.
    Read,
    /// Changing.
    Write,
    /// Everything.
    Admin,
    /// A word that is not known here: it covers nothing and is covered by nothing.
    Unknown,
}

impl Level {
    fn of(word: &str) -> Self {
        match word {
            "read" => Self::Read,
            "write" => Self::Write,
            "admin" => Self::Admin,
            _ => Self::Unknown,
        }
    }

    /// The provider's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Unknown => "unknown",
        }
    }

    fn covers(self, other: Self) -> bool {
        self != Self::Unknown && other != Self::Unknown && self >= other
    }
}

/// Permissions by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Permissions(BTreeMap<String, Level>);

impl Permissions {
    /// From a table.
    pub fn of(table: &[(&str, Level)]) -> Self {
        let entries = table
            .iter()
            .map(|(name, access)| ((*name).to_owned(), *access));
        Self(entries.collect())
    }

    /// As the provider writes them. A value that is no word counts as unknown; it costs no other entry.
    pub(super) fn from_answer(answer: Option<BTreeMap<String, Value>>) -> Self {
        let entries = answer.unwrap_or_default().into_iter();
        let entries = entries.map(|(name, value)| {
            let access = value.as_str().map_or(Level::Unknown, Level::of);
            (name, access)
        });
        Self(entries.collect())
    }

    /// How much of one.
    pub fn get(&self, name: &str) -> Option<Level> {
        self.0.get(name).copied()
    }

    /// Each with its name, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Level)> {
        self.0.iter().map(|(name, access)| (name.as_str(), *access))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is here and not covered by `others`.
    #[must_use]
    pub fn beyond(&self, others: &Self) -> Self {
        let rest = self
            .0
            .iter()
            .filter(|(name, access)| !others.get(name).is_some_and(|held| held.covers(**access)));
        Self(rest.map(|(name, access)| (name.clone(), *access)).collect())
    }

    /// Both together, the larger of each.
    #[must_use]
    pub fn with(mut self, others: &Self) -> Self {
        for (name, access) in &others.0 {
            let held = self.0.entry(name.clone()).or_insert(*access);
            *held = (*held).max(*access);
        }
        self
    }
}

/// `contents: write, metadata: read`.
impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        for (index, (name, access)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name}: {}", access.word())?;
        }
        Ok(())
    }
}

const READ: &[(&str, Level)] = &[
    ("actions", Level::Read),
    ("checks", Level::Read),
    ("contents", Level::Read),
    ("metadata", Level::Read),
    ("pull_requests", Level::Read),
    ("statuses", Level::Read),
];

const PROPOSE: &[(&str, Level)] = &[
    ("contents", Level::Write),
    // The provider adds it to whatever is asked for.
    ("metadata", Level::Read),
    ("pull_requests", Level::Write),
];

/// Lets a failed job be run again, which tells a flaky one from a broken one.
const RERUN: &[(&str, Level)] = &[("actions", Level::Write)];

const EXECUTE: &[(&str, Level)] = &[
    ("contents", Level::Write),
    ("metadata", Level::Read),
    ("pull_requests", Level::Read),
];

/// What a token for this use is always asked with.
// Break it: answer the permissions of every use together;
// `app::tokens::each_use_gets_a_token_of_its_own_with_its_own_permissions` then fails.
pub fn needed(task: Use) -> Permissions {
    Permissions::of(match task {
        Use::Read => READ,
        Use::Propose => PROPOSE,
        Use::Execute => EXECUTE,
    })
}

/// What it is asked with besides, where the installation has it.
pub fn welcome(task: Use) -> Permissions {
    Permissions::of(match task {
        Use::Propose => RERUN,
        Use::Read | Use::Execute => &[],
    })
}

/// What an App needs so that every use can be served. With `reruns` also what is welcome.
pub fn of_app(reruns: bool) -> Permissions {
    let mut all = Permissions::default();
    for task in Use::ALL {
        all = all.with(&needed(task));
        if reruns {
            all = all.with(&welcome(task));
        }
    }
    all
}
