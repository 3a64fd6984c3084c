//! The log as it was read and hashed in this process, from its first leaf on.
//!
//! Where the database says that an incident's events are in the log is the database's word: whoever writes there can hide a leaf
//! from its incident. Here the leaves themselves are counted, all of them, since a leaf that was hidden can be anywhere, and they
//! have to make the tree that was signed for. It is remembered how far that went, so that each leaf is read once in a process.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::CheckpointRefusal;
use super::checkpoint::grown;
use crate::attest::dsse::SignedDocument;
use crate::id::IncidentId;
use crate::log::{Frontier, TreeHead};
use crate::store::Scoped;

/// How many events of each incident are in a log.
#[derive(Debug, Default)]
pub struct WalkedLog {
    tree: Frontier,
    events: HashMap<String, u64>,
}

impl WalkedLog {
    /// How many events of an incident are among the leaves of the tree that was signed for, after walking what is new of it.
    ///
    /// # Errors
    /// The database fails, or its leaves do not make that tree.
    pub async fn events(
        &mut self,
        scoped: &Scoped<'_>,
        head: TreeHead,
        incident: &IncidentId,
    ) -> Result<u64, CheckpointRefusal> {
        if self.tree.size() < head.size() {
            let mut found = Vec::new();
            let tree = grown(scoped, self.tree.clone(), head.size(), |entry| {
                found.extend(incident_of(entry));
            })
            .await?;
            // Break it: drop this comparison; a leaf that was exchanged for another one is then not missed
            // (`worker::cut::a_merge_does_not_follow_an_end_that_was_cut_off`).
            if tree.head() != head {
                return Err(CheckpointRefusal::Contradiction { size: head.size() });
            }
            self.tree = tree;
            for incident in found {
                *self.events.entry(incident).or_default() += 1;
            }
        }
        Ok(self.events.get(incident.as_str()).copied().unwrap_or(0))
    }
}

/// Of a statement no more than what is counted is read: an event in a ledger was read whole when it was appended.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    predicate: NamedPredicate<'a>,
}

#[derive(Deserialize)]
struct NamedPredicate<'a> {
    #[serde(borrow)]
    event: NamedEvent<'a>,
}

#[derive(Deserialize)]
struct NamedEvent<'a> {
    #[serde(borrow)]
    incident: Cow<'a, str>,
}

/// The incident of which a leaf is an event; none of any other leaf.
fn incident_of(entry: &[u8]) -> Option<String> {
    let document = SignedDocument::parse(entry).ok()?;
    let named: Named<'_> = serde_json::from_slice(document.unverified_payload()).ok()?;
    Some(named.predicate.event.incident.into_owned())
}
