//! Keeping the organisation's log: what was stored before there was one, the trust roots, signs of life, and checkpoints.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::log::{Leaf, LeafKind, Record, SignedCheckpoint};
use crate::signer::{CheckpointRefusal, CheckpointSigner};

/// How often a checkpoint is made while something is logged.
const EVERY: Duration = Duration::from_secs(1);
/// How long the log is silent at most, in milliseconds: an hour.
const HEARTBEAT_MILLIS: i64 = 3_600_000;
/// Earlier events that are logged in one transaction.
const AT_ONCE: u32 = 200;
/// Pause after a refusal: it is said again from time to time, since nothing is signed meanwhile.
const AFTER_REFUSAL: Duration = Duration::from_mins(1);

/// Keeps the log until it is told to stop.
pub async fn keep_log(engine: Arc<Engine>, stop: CancellationToken) {
    let mut pause = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = match log_round(&engine).await {
            Ok(_) => EVERY,
            Err(error) => {
                tracing::error!(%error, "no checkpoint of the log is signed");
                AFTER_REFUSAL
            }
        };
    }
}

/// Logs what is to be logged and makes a checkpoint over everything; none while the log is empty, or has no key.
///
/// # Errors
/// The database fails, or is not the one that was signed for before.
pub async fn log_round(engine: &Engine) -> Result<Option<SignedCheckpoint>, CheckpointRefusal> {
    let Some(signer) = checkpoint_signer(engine) else {
        return Ok(None);
    };
    let now = engine.now().await?;
    let (store, organisation) = (&engine.store, engine.keys.organisation());
    while store
        .log_what_is_not_logged(organisation, AT_ONCE, now)
        .await?
        > 0
    {}
    let scoped = store.within(organisation);
    let logged = scoped.logged(LeafKind::TrustRoot).await?;
    let versions = engine.keys.history().versions();
    for root in versions.skip(usize::try_from(logged).unwrap_or(usize::MAX)) {
        let leaf = root
            .to_bytes()
            .ok()
            .and_then(|bytes| Leaf::parse(&bytes).ok());
        if let Some(leaf) = leaf {
            store.log(organisation, &leaf, now).await?;
        }
    }
    let last = scoped.last_logged(LeafKind::Heartbeat).await?;
    if last.is_none_or(|last| now.0.saturating_sub(last.0) >= HEARTBEAT_MILLIS)
        && let Ok(leaf) = Leaf::record(Record::Heartbeat { at: now })
    {
        store.log(organisation, &leaf, now).await?;
    }
    signer.cover(store, now).await
}

/// The signer of checkpoints; none where the trust root lists no key of the log.
pub(super) fn checkpoint_signer(engine: &Engine) -> Option<CheckpointSigner<'_>> {
    CheckpointSigner::of(&engine.keys, &engine.settings.home)
}
