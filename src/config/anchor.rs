//! `anchor`: what checkpoints of the log are shown to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::ServiceUrl;
use crate::id::ProjectId;
use crate::log::VerifierKey;

/// Anchors of one kind at most.
const MOST: usize = 16;

/// Everything that checkpoints are shown to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Anchors {
    /// A branch at the provider.
    pub branch: Option<BranchAnchor>,
    /// Timestamp authorities.
    pub timestamps: Vec<TimestampAnchor>,
    /// Witnesses.
    pub witnesses: Vec<WitnessAnchor>,
}

/// A branch at the provider that holds checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchAnchor {
    /// The project whose repository holds the branch, with everything that is logged; without one, each project's own repository
    /// holds checkpoints alone, which tell nothing of other projects.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// The branch. It should be protected from force pushes and deletion.
    #[serde(default = "branch")]
    pub name: String,
    /// How often at least, while something is logged.
    #[serde(default = "hourly")]
    pub every_seconds: u32,
}

/// A timestamp authority (RFC 3161).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampAnchor {
    /// Its name.
    pub name: String,
    /// Where requests are posted to.
    pub url: ServiceUrl,
    /// Certificates (PEM) that its own has to lead to.
    pub roots: PathBuf,
    /// How often at least, while something is logged.
    #[serde(default = "hourly")]
    pub every_seconds: u32,
}

/// A witness (C2SP tlog-witness).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessAnchor {
    /// Its name here.
    pub name: String,
    /// Where it is; `/add-checkpoint` follows.
    pub url: ServiceUrl,
    /// Its key as it prints it, `NAME+ID+KEY`.
    pub key: String,
    /// How often at least, while something is logged.
    #[serde(default = "each_minute")]
    pub every_seconds: u32,
}

fn branch() -> String {
    "caretaker-log".to_owned()
}

const fn hourly() -> u32 {
    3600
}

const fn each_minute() -> u32 {
    60
}

impl Anchors {
    /// With paths resolved against a folder.
    pub(super) fn resolve(mut self, folder: &Path) -> Result<Self, (&'static str, String)> {
        let names = |names: Vec<&str>| {
            let mut seen = std::collections::BTreeSet::new();
            let fault = names
                .iter()
                .find(|name| !is_name(name) || !seen.insert(**name));
            fault.map_or(Ok(()), |name| {
                Err(format!(
                    "the name {name:?} is used twice or is not 1 to 60 small letters, digits and hyphens"
                ))
            })
        };
        names(
            self.timestamps
                .iter()
                .map(|one| one.name.as_str())
                .collect(),
        )
        .map_err(|fault| ("anchor.timestamps", fault))?;
        names(self.witnesses.iter().map(|one| one.name.as_str()).collect())
            .map_err(|fault| ("anchor.witnesses", fault))?;
        if self.timestamps.len() > MOST || self.witnesses.len() > MOST {
            return Err(("anchor", format!("at most {MOST} of a kind")));
        }
        for witness in &self.witnesses {
            witness.key.parse::<VerifierKey>().map_err(|error| {
                (
                    "anchor.witnesses",
                    format!(
                        "the key of {}: {error}; `caretaker witness` prints it",
                        witness.name
                    ),
                )
            })?;
        }
        let paces = self.timestamps.iter().map(|one| one.every_seconds);
        let paces = paces.chain(self.witnesses.iter().map(|one| one.every_seconds));
        let mut paces = paces.chain(self.branch.iter().map(|one| one.every_seconds));
        if paces.any(|pace| !(1..=86_400).contains(&pace)) {
            return Err(("anchor", "every_seconds is 1 to 86400".to_owned()));
        }
        for authority in &mut self.timestamps {
            authority.roots = folder.join(&authority.roots);
        }
        Ok(self)
    }
}

fn is_name(name: &str) -> bool {
    (1..=60).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}
