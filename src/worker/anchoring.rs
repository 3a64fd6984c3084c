//! Showing checkpoints of the log to others, before a merge where the project demands it, and from time to time.

mod branch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::log::{checkpoint_signer, log_round};
use crate::anchor::{Anchor, AnchorError, AnchorKind, LogReader, Receipt};
use crate::clock::Millis;
use crate::config::BranchAnchor;
use crate::id::ProjectId;
use crate::incident::NoticeEvent;
use crate::log::{ProofPlan, SignedCheckpoint, TileId, TreeHash, TreeHead, verify_consistency};
use crate::notify::Notification;
use crate::store::{Scoped, StoreError, StoredAnchor};

pub(super) use branch::Branch;

/// How often a worker looks whether an anchor is due.
const LOOK: Duration = Duration::from_secs(1);
/// How long an anchor that failed is left alone.
const AFTER_FAILURE_MILLIS: i64 = 60_000;
/// Receipts of one anchor that are looked at before it is asked again.
const MOST_RECEIPTS: u32 = 8;
/// How long one anchor may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An anchor and its pace.
#[derive(Clone)]
pub struct ShownTo {
    /// Who is shown checkpoints.
    pub anchor: Arc<dyn Anchor>,
    /// How often at least, while something is logged.
    pub every: Duration,
}

/// Everything that checkpoints are shown to.
#[derive(Clone, Default)]
pub struct Anchoring {
    /// Those outside of the provider.
    pub outside: Vec<ShownTo>,
    /// A branch at the provider.
    pub branch: Option<BranchAnchor>,
}

/// Why a checkpoint was not anchored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanchored {
    /// The anchor.
    #[error(transparent)]
    Anchor(#[from] AnchorError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The log in the database, as anchors read it.
struct StoredLog<'a>(Scoped<'a>);

#[async_trait]
impl LogReader for StoredLog<'_> {
    async fn consistency(&self, old: u64, new: u64) -> Result<Vec<TreeHash>, AnchorError> {
        let plan = ProofPlan::consistency(old, new).map_err(|error| unread(&error))?;
        let proof = self.0.log_proof(&plan).await;
        proof.map_err(|error| unread(&error))
    }

    async fn file(&self, tile: TileId) -> Result<Vec<u8>, AnchorError> {
        self.0.log_file(tile).await.map_err(|error| unread(&error))
    }
}

/// Whether an anchor holds the first `needed` leaves, by a receipt of it for a checkpoint that the log as it is now extends.
///
/// The receipts are the database's, so each is confirmed by the anchor's own means, and its checkpoint by a proof to `now`, which was
/// computed from the leaves and signed just now.
pub(super) async fn holds(
    engine: &Engine,
    anchor: &dyn Anchor,
    needed: u64,
    now: &SignedCheckpoint,
) -> Result<bool, Unanchored> {
    let scoped = engine.store.within(engine.keys.organisation());
    let log = StoredLog(engine.store.within(engine.keys.organisation()));
    let (kind, name) = (anchor.kind().as_str(), anchor.name());
    let head = now.claimed().head();
    for kept in scoped
        .anchor_receipts(kind, name, needed, MOST_RECEIPTS)
        .await?
    {
        if kept.size > head.size() {
            continue;
        }
        let stored = scoped.checkpoint_over(kept.size).await?;
        let stored = stored.filter(|stored| stored.size == kept.size);
        let Some(checkpoint) =
            stored.and_then(|stored| SignedCheckpoint::parse(stored.note.as_bytes()).ok())
        else {
            continue;
        };
        let ours = checkpoint_signer(engine).is_some_and(|signer| signer.is_ours(&checkpoint));
        let old = checkpoint.claimed().head();
        if !ours || old.size() != kept.size || !extends(&log, &old, &head).await? {
            continue;
        }
        // Break it: take the receipt for granted; whoever writes the database then merges without the witness
        // (`worker::anchoring::a_receipt_that_somebody_put_into_the_database_does_not_count`).
        match anchor.confirm(&checkpoint, &Receipt::from(kept)).await {
            Ok(()) => return Ok(true),
            Err(AnchorError::Refused { reason, .. }) => {
                tracing::error!(kind, name, reason, "a kept receipt does not hold");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

async fn extends(log: &StoredLog<'_>, old: &TreeHead, new: &TreeHead) -> Result<bool, AnchorError> {
    if old.size() == new.size() {
        return Ok(old.root() == new.root());
    }
    let proof = log.consistency(old.size(), new.size()).await?;
    Ok(verify_consistency(old, new, &proof).is_ok())
}

impl From<StoredAnchor> for Receipt {
    fn from(kept: StoredAnchor) -> Self {
        Self {
            size: kept.size,
            bytes: kept.receipt,
        }
    }
}

fn unread(error: &impl ToString) -> AnchorError {
    AnchorError::Unanswered {
        action: "reading the log for an anchor".to_owned(),
        reason: error.to_string(),
    }
}

/// Shows a checkpoint to one anchor, and keeps the receipt.
pub(super) async fn show(
    engine: &Engine,
    anchor: &dyn Anchor,
    checkpoint: &SignedCheckpoint,
) -> Result<(), Unanchored> {
    let organisation = engine.keys.organisation();
    let scoped = engine.store.within(organisation);
    let (kind, name) = (anchor.kind(), anchor.name());
    let size = checkpoint.claimed().head().size();
    let last = scoped.newest_anchor(kind.as_str(), name, size).await?;
    let last = last.map(Receipt::from);
    let now = engine.now().await?;
    let log = StoredLog(engine.store.within(organisation));
    let answer = anchor.anchor(checkpoint, &log, last.as_ref(), now);
    let receipt = tokio::time::timeout(PATIENCE, answer).await;
    let receipt = receipt.map_err(|_| AnchorError::Unanswered {
        action: format!("showing a checkpoint to {kind} {name}"),
        reason: format!("no answer within {} s", PATIENCE.as_secs()),
    })??;
    engine.passed("anchor").await;
    let stored = StoredAnchor {
        size: receipt.size,
        kind: kind.as_str().to_owned(),
        name: name.to_owned(),
        receipt: receipt.bytes,
        anchored_at: now,
    };
    Ok(engine.store.keep_anchor(organisation, &stored).await?)
}

/// Shows checkpoints to everything that is configured, each at its pace, until it is told to stop.
pub async fn keep_anchors(engine: Arc<Engine>, stop: CancellationToken) {
    let mut rounds = Rounds::default();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        if let Err(error) = rounds.round(&engine).await {
            tracing::warn!(%error, "anchors are looked at again");
        }
    }
}

/// What is remembered between two looks.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Anchors that failed, and when.
    failing: BTreeMap<(AnchorKind, String), Millis>,
}

impl Rounds {
    /// One look: shows the newest checkpoint to every anchor that is due. An anchor that fails is told once and holds up nothing.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn round(&mut self, engine: &Engine) -> Result<(), StoreError> {
        for shown in &engine.anchoring.outside {
            self.look(engine, shown.anchor.as_ref(), shown.every)
                .await?;
        }
        if let Some(settings) = &engine.anchoring.branch
            && let Some(project) = &settings.project
        {
            self.branch(engine, settings, project).await?;
        }
        Ok(())
    }

    /// The same for the branch that holds the whole log.
    async fn branch(
        &mut self,
        engine: &Engine,
        settings: &BranchAnchor,
        project: &ProjectId,
    ) -> Result<(), StoreError> {
        let key = (AnchorKind::Branch, project.to_string());
        let scoped = engine.store.within(engine.keys.organisation());
        let Some(project) = scoped.project(project).await? else {
            let reason = format!(
                "anchor.branch.project names {project}, which is not registered; `caretaker project list` shows those that are"
            );
            return self.failed(engine, key, &reason).await;
        };
        let connector = match engine.connectors.of(&project).await {
            Ok(connector) => connector,
            Err(reason) => return self.failed(engine, key, &reason).await,
        };
        let branch = Branch::new(engine, &project, connector.as_ref(), settings);
        let every = Duration::from_secs(settings.every_seconds.into());
        self.look(engine, &branch, every).await
    }

    async fn look(
        &mut self,
        engine: &Engine,
        anchor: &dyn Anchor,
        every: Duration,
    ) -> Result<(), StoreError> {
        let scoped = engine.store.within(engine.keys.organisation());
        let Some(newest) = scoped.newest_checkpoint().await? else {
            return Ok(());
        };
        let now = engine.now().await?;
        let key = (anchor.kind(), anchor.name().to_owned());
        let last = scoped
            .newest_anchor(key.0.as_str(), &key.1, newest.size)
            .await?;
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        let recent = |at: Millis, span: i64| now >= at && now.0.saturating_sub(at.0) < span;
        let held =
            last.is_some_and(|last| last.size >= newest.size || recent(last.anchored_at, every));
        let tried = self.failing.get(&key).copied();
        if held || tried.is_some_and(|at| recent(at, AFTER_FAILURE_MILLIS)) {
            return Ok(());
        }
        // Not the stored note: only what our key signs over the leaves as they are now is shown to anybody.
        let shown = match log_round(engine).await {
            Ok(Some(checkpoint)) => show(engine, anchor, &checkpoint).await,
            // Said by the task that makes checkpoints.
            Ok(None) | Err(_) => return Ok(()),
        };
        match shown {
            Ok(()) => {
                if self.failing.remove(&key).is_some() {
                    tracing::info!(kind = %key.0, name = %key.1, "the anchor answers again");
                }
                Ok(())
            }
            Err(Unanchored::Store(error)) => Err(error),
            Err(Unanchored::Anchor(error)) => self.failed(engine, key, &error.to_string()).await,
        }
    }

    /// Remembers a failure, and tells it when it is a new one.
    async fn failed(
        &mut self,
        engine: &Engine,
        key: (AnchorKind, String),
        reason: &str,
    ) -> Result<(), StoreError> {
        let now = engine.now().await?;
        let known = self.failing.get(&key).copied();
        if known.is_some_and(|at| now >= at && now.0.saturating_sub(at.0) < AFTER_FAILURE_MILLIS) {
            return Ok(());
        }
        tracing::error!(kind = %key.0, name = %key.1, reason, "a checkpoint of the log is not anchored");
        if known.is_none() {
            let text = format!("the log's anchor {} {} fails: {reason}", key.0, key.1);
            let told = Notification::new(NoticeEvent::Notice, None, None, text);
            if let Err(error) = engine.notifiers.deliver(&told).await {
                tracing::warn!(%error, "nobody was told of it");
            }
        }
        self.failing.insert(key, now);
        Ok(())
    }
}
