//! Signing a drafted statement and appending it.

use super::super::Stepped;
use super::super::drafting::unsigned;
use super::super::work::{Work, expect, unread};
use super::notary;
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
    let envelope = work
        .engine
        .keys
        .signer(draft.role)
        .sign(&draft.statement)
        .map_err(|error| unsigned(&error))?;
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
