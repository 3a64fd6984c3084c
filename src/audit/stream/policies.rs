//! Which rules are in force in each repository, as far as a log was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::attest::predicate::{PolicyVersion, Project};
use crate::change::Sha256Digest;

/// The newest version of the rules of each repository that has any. One whose rules were confirmed before versions were signed has
/// none, and nothing is demanded of its decisions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Policies(BTreeMap<String, Version>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Version {
    number: u64,
    rules: Sha256Digest,
}

impl Policies {
    /// Whether no repository has a version.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A version comes into force, if it is the next one: an earlier one that is logged again changes nothing.
    pub(super) fn enter(&mut self, version: &PolicyVersion) -> Result<(), (String, String)> {
        let Some(project) = &version.event.project else {
            return Ok(());
        };
        let entry = self.0.entry(project.place());
        let rules = version.policy.sha256;
        let number = version.version;
        let previous = version.previous.map(|previous| previous.sha256);
        let newest = match &entry {
            std::collections::btree_map::Entry::Occupied(newest) => Some(*newest.get()),
            std::collections::btree_map::Entry::Vacant(_) => None,
        };
        let next = newest.map_or(1, |newest| newest.number.saturating_add(1));
        // Break it: leave this out; whoever logs an old version again puts it into force
        // (`audit::policies::a_version_that_is_logged_again_changes_nothing`).
        if number != next || previous != newest.map(|newest| newest.rules) {
            let after = newest.map_or_else(|| "nothing".to_owned(), |it| it.rules.to_string());
            let expected = format!(
                "version {next} of the rules of {}, after {after}",
                project.uri
            );
            let after = previous.map_or_else(|| "nothing".to_owned(), |it| it.to_string());
            return Err((expected, format!("version {number}, after {after}")));
        }
        entry.insert_entry(Version { number, rules });
        Ok(())
    }

    /// Whether these are the rules in force.
    pub(super) fn check(
        &self,
        project: &Project,
        rules: Sha256Digest,
    ) -> Result<(), (String, String)> {
        let Some(newest) = self.0.get(&project.place()) else {
            return Ok(());
        };
        if newest.rules == rules {
            return Ok(());
        }
        let expected = format!(
            "a decision by version {} of the rules of {}, {}",
            newest.number, project.uri, newest.rules
        );
        Err((expected, format!("one by the rules {rules}")))
    }
}
