//! Checkpoints with the words of witnesses: what receipts add to what the log's key signed.
//!
//! Receipts were verified when they came. One that was changed since is handed out all the same if it has the form of a line: a
//! verifier that knows its witness refuses it, which is how the change shows.

use std::collections::BTreeMap;

use super::{Scoped, StoreError, StoredAnchor, StoredCheckpoint};
use crate::log::{AnchorKind, NoteSignature, SignedCheckpoint};

/// How many receipts are looked at for a checkpoint that was cosigned: of the newest, some hundred checkpoints' worth.
const RECEIPTS: u32 = 512;

impl Scoped<'_> {
    /// A stored checkpoint with the cosignatures that were received for it.
    ///
    /// # Errors
    /// The database fails, or the checkpoint is not one.
    pub async fn cosigned(
        &self,
        checkpoint: &StoredCheckpoint,
    ) -> Result<SignedCheckpoint, StoreError> {
        let receipts = self.anchors(checkpoint.size, RECEIPTS).await?;
        with_words(checkpoint, &receipts)
    }

    /// Of the checkpoints over at least `size` leaves the one that most witnesses cosigned, the newest of several; none if no
    /// witness did.
    ///
    /// # Errors
    /// The database fails, or the checkpoint is not one.
    pub async fn best_cosigned(&self, size: u64) -> Result<Option<SignedCheckpoint>, StoreError> {
        let receipts = self.anchors(size, RECEIPTS).await?;
        let mut witnesses: BTreeMap<u64, usize> = BTreeMap::new();
        for receipt in receipts.iter().filter(|receipt| is_cosignature(receipt)) {
            *witnesses.entry(receipt.size).or_default() += 1;
        }
        let best = witnesses
            .into_iter()
            .max_by_key(|(size, count)| (*count, *size));
        let Some((size, _)) = best else {
            return Ok(None);
        };
        match self.checkpoint_over(size).await? {
            Some(checkpoint) if checkpoint.size == size => {
                with_words(&checkpoint, &receipts).map(Some)
            }
            _ => Ok(None),
        }
    }
}

fn is_cosignature(receipt: &StoredAnchor) -> bool {
    receipt.kind == AnchorKind::Witness.as_str()
}

fn with_words(
    checkpoint: &StoredCheckpoint,
    receipts: &[StoredAnchor],
) -> Result<SignedCheckpoint, StoreError> {
    let unreadable = |reason: String| StoreError::Unreadable {
        what: "a checkpoint of the log",
        reason,
    };
    let mut signed = SignedCheckpoint::parse(checkpoint.note.as_bytes())
        .map_err(|error| unreadable(error.to_string()))?;
    let own = receipts
        .iter()
        .filter(|receipt| receipt.size == checkpoint.size && is_cosignature(receipt));
    for receipt in own {
        for line in String::from_utf8_lossy(&receipt.receipt).lines() {
            let added = NoteSignature::parse(line)
                .map_err(|error| error.to_string())
                .and_then(|line| signed.add(line).map_err(|error| error.to_string()));
            if let Err(error) = added {
                tracing::warn!(
                    witness = receipt.name,
                    size = receipt.size,
                    error,
                    "a witness's receipt in the database is not one; the checkpoint is handed out without it"
                );
            }
        }
    }
    Ok(signed)
}
