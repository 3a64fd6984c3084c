//! What goes into a bundle of one incident.

use std::collections::BTreeSet;

use super::{Scoped, StoreError};
use crate::audit::{BundleContents, StoredLedger};
use crate::change::Sha256Digest;
use crate::id::IncidentId;
use crate::log::{LogProof, ProofPlan, SignedCheckpoint, TreeHash};

impl Scoped<'_> {
    /// The incident's events, each with the proof that it is in the log under `checkpoint`, the documents they name, and of each
    /// timestamp authority the oldest answer about a checkpoint over all of them. The trust roots are the caller's to add.
    ///
    /// # Errors
    /// The database fails, or an event is not in the log under that checkpoint.
    pub async fn bundle(
        &self,
        ledger: &StoredLedger,
        evidence: &BTreeSet<Sha256Digest>,
        checkpoint: &SignedCheckpoint,
    ) -> Result<BundleContents, StoreError> {
        let size = checkpoint.claimed().head().size();
        let places = self.log_places(&ledger.incident).await?;
        let mut events = Vec::new();
        for row in &ledger.rows {
            let place = places
                .iter()
                .find(|(seq, place)| i64::try_from(*seq) == Ok(row.seq) && *place < size);
            let (_, index) = place.ok_or_else(|| unlogged(&ledger.incident, row.seq))?;
            let plan = ProofPlan::inclusion(*index, size).map_err(|error| unreadable(&error))?;
            let hashes = self.log_proof(&plan).await?;
            let proof = LogProof::new(*index, hashes, checkpoint.clone());
            let proof = proof.map_err(|error| unreadable(&error))?;
            events.push((row.envelope.clone(), proof.to_string().into_bytes()));
        }
        let mut documents = Vec::new();
        for digest in evidence {
            if let Some(document) = self.evidence(digest).await? {
                documents.push((*digest, document.1));
            }
        }
        let mut contents = BundleContents {
            events,
            evidence: documents,
            ..BundleContents::default()
        };
        let over = places.iter().map(|(_, place)| place + 1).max().unwrap_or(0);
        for stamp in self.first_timestamps(over).await? {
            let stamped = stamp.0.claimed().head().size();
            let (old, new) = (stamped.min(size), stamped.max(size));
            if old < new {
                let plan = ProofPlan::consistency(old, new).map_err(|error| unreadable(&error))?;
                let proof = self.log_proof(&plan).await?;
                contents.consistency.push((old, new, proof));
            }
            contents.timestamps.push(stamp);
        }
        Ok(contents)
    }

    /// The proof of a plan, from the stored hashes.
    pub async fn log_proof(&self, plan: &ProofPlan) -> Result<Vec<TreeHash>, StoreError> {
        let mut hashes = self.log_hashes(plan.nodes()).await?.into_iter();
        let missing = || unreadable(&"a hash is missing");
        plan.build(|_| hashes.next().ok_or_else(missing))
    }
}

fn unreadable(reason: &impl ToString) -> StoreError {
    StoreError::Unreadable {
        what: "the log",
        reason: reason.to_string(),
    }
}

fn unlogged(incident: &IncidentId, seq: i64) -> StoreError {
    let reason = format!("event {seq} of {incident} is not in the log under this checkpoint");
    unreadable(&reason)
}
