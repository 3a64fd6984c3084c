//! Looking for evidence whose time is over.

use super::steps::let_go::cutoff;
use super::{Engine, WorkerError};

/// Incidents that one look makes due.
const AT_ONCE: u32 = 50;

/// Makes finished incidents due whose evidence was kept as long as the configuration says; the worker then lets it go like any
/// other step. Returns how many.
///
/// # Errors
/// The database does not answer.
pub async fn sweep_evidence(engine: &Engine) -> Result<u32, WorkerError> {
    let now = engine.now().await?;
    let Some(before) = cutoff(engine.settings.evidence_days, now) else {
        return Ok(0);
    };
    let (store, organisation) = (&engine.store, engine.keys.organisation());
    Ok(store
        .make_evidence_due(organisation, before, now, AT_ONCE)
        .await?)
}
