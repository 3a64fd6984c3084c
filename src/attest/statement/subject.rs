//! What statements are about.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::text::shown;
use crate::change::{Oid, Sha256Digest};

/// What a statement is about, by digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// A word for it; never compared with anything outside.
    pub name: String,
    /// Digests by in-toto's algorithm names: `sha256`, `gitCommit`, `gitTree`. All of them must match.
    #[cfg_attr(
        feature = "schemas",
        schemars(schema_with = "super::super::schema::subject_digests")
    )]
    pub digest: BTreeMap<String, String>,
}

/// A subject that follows from a predicate. Written as a [`Subject`] is, but without maps and strings, of which a log has millions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Derived {
    name: &'static str,
    digest: Digests,
}

/// Members in the order of their names, as in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Digests {
    Document {
        sha256: Sha256Digest,
    },
    Commit {
        #[serde(rename = "gitCommit")]
        commit: Oid,
        #[serde(rename = "gitTree")]
        tree: Oid,
    },
}

impl Derived {
    pub(super) const fn sha256(name: &'static str, sha256: Sha256Digest) -> Self {
        let digest = Digests::Document { sha256 };
        Self { name, digest }
    }

    pub(super) const fn commit(name: &'static str, commit: Oid, tree: Oid) -> Self {
        let digest = Digests::Commit { commit, tree };
        Self { name, digest }
    }
}

impl From<Derived> for Subject {
    fn from(Derived { name, digest }: Derived) -> Self {
        match digest {
            Digests::Document { sha256 } => Self::sha256(name, sha256),
            Digests::Commit { commit, tree } => Self::commit(name, commit, tree),
        }
    }
}

impl Subject {
    /// A subject named by SHA-256.
    pub fn sha256(name: &str, digest: Sha256Digest) -> Self {
        Self::new(name, &[("sha256", digest.to_string())])
    }

    /// A commit and its tree.
    pub fn commit(name: &str, commit: Oid, tree: Oid) -> Self {
        Self::new(
            name,
            &[
                ("gitCommit", commit.to_string()),
                ("gitTree", tree.to_string()),
            ],
        )
    }

    fn new(name: &str, digests: &[(&str, String)]) -> Self {
        let digest = digests
            .iter()
            .map(|(algorithm, value)| ((*algorithm).to_owned(), value.clone()));
        Self {
            name: name.to_owned(),
            digest: digest.collect(),
        }
    }

    /// Whether every digest is of a known, sound algorithm and well formed, and there is at least one.
    pub(super) fn is_sound(&self) -> bool {
        let sound = |(algorithm, value): (&String, &String)| match algorithm.as_str() {
            "sha256" => value.parse::<Sha256Digest>().is_ok(),
            "gitCommit" | "gitTree" => value.parse::<Oid>().is_ok(),
            _ => false,
        };
        !self.digest.is_empty() && self.digest.iter().all(sound)
    }
}

/// Subjects for a message.
pub(super) fn listed(subjects: &[Subject]) -> String {
    let words: Vec<String> = subjects
        .iter()
        .map(|subject| format!("{} {:?}", subject.name, subject.digest))
        .collect();
    if words.is_empty() {
        "none".to_owned()
    } else {
        shown(&words.join(", "))
    }
}
