//! A stored manifest against what can be seen now.

use std::collections::BTreeMap;

use super::{ContextEntry, ContextManifest};
use crate::change::Sha256Digest;

/// Which hash of an input disagrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The content of a direct input: it was substituted.
    Content,
    /// The raw bytes of a quarantined input: the stored log was substituted.
    Raw,
    /// Its extraction: the reader now takes something else from the same bytes.
    Extraction,
}

/// One thing in which the manifest and the present differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discrepancy {
    /// The input is another one now.
    Substituted {
        /// Which input.
        name: String,
        /// Which of its hashes.
        part: Part,
        /// What the manifest says.
        recorded: Sha256Digest,
        /// What was found.
        live: Sha256Digest,
    },
    /// The manifest has an input that was not found.
    Missing {
        /// Which input.
        name: String,
    },
    /// An input was found that the manifest does not have in this trust class.
    Unrecorded {
        /// Which input.
        name: String,
    },
}

/// A quarantined input as it was read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedInput {
    /// What it is.
    pub name: String,
    /// SHA-256 of its bytes.
    pub raw: Sha256Digest,
    /// SHA-256 of what is extracted from them.
    pub extraction: Sha256Digest,
}

impl ContextManifest {
    /// Compares the direct inputs with live content, given as name and SHA-256. Empty when they agree; ordered by name.
    ///
    /// A name given twice with two contents is compared twice, so it cannot agree.
    pub fn compare(&self, live: &[(String, Sha256Digest)]) -> Vec<Discrepancy> {
        let recorded = self.entries().iter().filter_map(|entry| match entry {
            ContextEntry::Direct { name, sha256 } => {
                Some((name.as_str(), vec![(Part::Content, *sha256)]))
            }
            ContextEntry::Quarantined { .. } => None,
        });
        let found = live
            .iter()
            .map(|(name, sha256)| (name.as_str(), vec![(Part::Content, *sha256)]));
        differences(&recorded.collect(), found)
    }

    /// Compares the quarantined inputs with the same inputs read again. Empty when they agree; ordered by name.
    pub fn compare_extractions(&self, again: &[QuarantinedInput]) -> Vec<Discrepancy> {
        let recorded = self.entries().iter().filter_map(|entry| match entry {
            ContextEntry::Quarantined {
                name,
                raw,
                extraction,
            } => Some((
                name.as_str(),
                vec![(Part::Raw, *raw), (Part::Extraction, *extraction)],
            )),
            ContextEntry::Direct { .. } => None,
        });
        let found = again.iter().map(|input| {
            (
                input.name.as_str(),
                vec![(Part::Raw, input.raw), (Part::Extraction, input.extraction)],
            )
        });
        differences(&recorded.collect(), found)
    }
}

type Hashes = Vec<(Part, Sha256Digest)>;

fn differences<'m>(
    recorded: &BTreeMap<&str, Hashes>,
    live: impl Iterator<Item = (&'m str, Hashes)>,
) -> Vec<Discrepancy> {
    let mut found: BTreeMap<&str, Vec<Discrepancy>> = BTreeMap::new();
    for (name, hashes) in live {
        let here = found.entry(name).or_default();
        match recorded.get(name) {
            Some(expected) => here.extend(substitutions(name, expected, &hashes)),
            None => here.push(Discrepancy::Unrecorded {
                name: name.to_owned(),
            }),
        }
    }
    for name in recorded.keys() {
        found.entry(name).or_insert_with(|| {
            vec![Discrepancy::Missing {
                name: (*name).to_owned(),
            }]
        });
    }
    found.into_values().flatten().collect()
}

fn substitutions(name: &str, expected: &Hashes, live: &Hashes) -> Vec<Discrepancy> {
    expected
        .iter()
        .zip(live)
        .filter(|((_, recorded), (_, live))| recorded != live)
        .map(|((part, recorded), (_, live))| Discrepancy::Substituted {
            name: name.to_owned(),
            part: *part,
            recorded: *recorded,
            live: *live,
        })
        .collect()
}
