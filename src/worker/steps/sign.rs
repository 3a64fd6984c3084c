//! Signing a drafted statement and appending it.

use std::sync::Arc;

use super::super::Stepped;
use super::super::drafting::unsigned;
use super::super::repository::on_disk;
use super::super::work::{Work, expect, unread};
use super::notary;
use crate::attest::{Envelope, Role};
use crate::incident::{Outcome, SignedEnvelope, StepError};

/// The bytes that were committed before are signed, so that after a crash the same envelope comes out.
pub(super) async fn sign(work: Work<'_>, seq: u64) -> Stepped {
    let store = &work.engine.store;
    let drafts = store.within(&work.snapshot.organisation);
    let draft = drafts.draft(&work.snapshot.incident, seq).await;
    let draft = expect(
        draft.map_err(|error| unread(&error))?,
        "a drafted statement",
    )?;
    notary::check(work, seq, &draft.statement).await?;
    work.allow_acting()?;
    let envelope = signed(work, draft.role, seq, draft.statement).await?;
    if envelope.digest() != draft.pae {
        return Err(StepError::retry(
            std::time::Duration::from_mins(1),
            format!(
                "the statement drafted at position {seq} was changed in the database; restore it from a backup"
            ),
        ));
    }
    let envelope = envelope
        .to_bytes()
        .map_err(|error| StepError::retry(std::time::Duration::from_secs(5), error))?;
    Ok(Outcome {
        envelope: Some(SignedEnvelope { seq, envelope }),
        ..Outcome::default()
    })
}

/// The signer gets the chain before the event, too, and signs only what continues it. It may wait for the disk or for another process.
async fn signed(
    work: Work<'_>,
    role: Role,
    seq: u64,
    statement: Vec<u8>,
) -> Result<Envelope, StepError> {
    let scoped = work.engine.store.within(&work.snapshot.organisation);
    let ledger = scoped.ledger(&work.snapshot.incident).await;
    let ledger = ledger.map_err(|error| unread(&error))?;
    let events = usize::try_from(seq).unwrap_or(usize::MAX);
    let rows = ledger.into_iter().flat_map(|ledger| ledger.rows);
    let before: Vec<Vec<u8>> = rows.take(events).map(|row| row.envelope).collect();
    let keys = Arc::clone(&work.engine.keys);
    on_disk(move || {
        let envelope = keys.signer(role).sign_after(&statement, &before);
        envelope.map_err(|error| unsigned(&error))
    })
    .await
}
