//! What must hold the approval before a merge: a checkpoint of the log, and whatever else the project demands.

use std::time::Duration;

use super::super::anchoring::{Branch, Unanchored, holds, show};
use super::super::log::log_round;
use super::super::work::{Work, unread};
use crate::anchor::{Anchor, AnchorError, AnchorKind};
use crate::attest::predicate::CheckpointRef;
use crate::gate::AnchorDemand;
use crate::incident::{AuditEvent, StepError};
use crate::log::SignedCheckpoint;
use crate::signer::CheckpointRefusal;
use crate::store::StoreError;

/// Whether everything holds the approval.
#[derive(Debug)]
pub(super) enum Hold {
    /// Everything does. None: this installation's log has no key, and the project demands nothing.
    Held(Option<CheckpointRef>),
    /// Something does not, or not yet.
    Open(String),
    /// An anchor holds something that excludes the log.
    Contradicted(String),
}

/// What is done about an anchor that does not hold the approval yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lacking {
    /// It is shown the newest checkpoint.
    Show,
    /// Nothing.
    Leave,
}

/// Makes a checkpoint over every event of the incident, and looks whether everything that the project demands holds it.
pub(super) async fn hold(work: &Work<'_>, lacking: Lacking) -> Result<Hold, StepError> {
    let demands = &work.rules.document().anchors.required;
    let checkpoint = match log_round(work.engine).await {
        Ok(Some(checkpoint)) => checkpoint,
        Ok(None) if demands.is_empty() => return Ok(Hold::Held(None)),
        Ok(None) => {
            let open = "the project demands a checkpoint of the log, and the log has no key; make one with `caretaker keys add log`";
            return Ok(Hold::Open(open.to_owned()));
        }
        Err(CheckpointRefusal::Store(error)) => return Err(unread(&error)),
        // Break it: answer `Ok(Hold::Held(None))`; a database that was rolled back then merges
        // (`worker::anchoring::nothing_is_merged_while_the_log_is_not_the_one_that_was_signed_for`).
        Err(refusal) => return Ok(Hold::Open(refusal.to_string())),
    };
    let needed = match needed(work, &checkpoint).await? {
        Ok(needed) => needed,
        Err(open) => return Ok(Hold::Open(open)),
    };
    for demand in demands {
        let held = demanded(work, demand, &checkpoint, needed, lacking).await?;
        if !matches!(held, Hold::Held(_)) {
            return Ok(held);
        }
    }
    Ok(Hold::Held(reference(&checkpoint)))
}

/// How many leaves a checkpoint has at least that covers every event of the incident. Where it does not, or covers events that the
/// ledger does not have any more, the reason.
async fn needed(
    work: &Work<'_>,
    checkpoint: &SignedCheckpoint,
) -> Result<Result<u64, String>, StepError> {
    let snapshot = work.snapshot;
    let scoped = work.engine.store.within(&snapshot.organisation);
    let places = scoped.log_places(&snapshot.incident).await;
    let places = places.map_err(|error| unread(&error))?;
    let (head, appended) = (checkpoint.claimed().head(), snapshot.ledger.appended);
    let one_each = (0..appended).eq(places.iter().map(|(seq, _)| *seq));
    let last = places.iter().map(|(_, position)| *position).max();
    let Some(last) = last.filter(|last| one_each && *last < head.size()) else {
        let open = "the log does not hold exactly the events of this incident's ledger; `caretaker ledger verify` says which";
        return Ok(Err(open.to_owned()));
    };
    let mut walked = work.engine.walked.lock().await;
    match walked.events(&scoped, head, &snapshot.incident).await {
        Ok(logged) if logged == appended => Ok(Ok(last + 1)),
        // Break it: go on; a merge then follows a ledger whose end was cut off and hidden in the log
        // (`worker::cut::a_merge_does_not_follow_an_end_that_was_cut_off`).
        Ok(logged) => Ok(Err(format!(
            "the log has {logged} events of this incident and its ledger {appended}: somebody changed the database; restore it from a backup"
        ))),
        Err(CheckpointRefusal::Store(error)) => Err(unread(&error)),
        Err(refusal) => Ok(Err(refusal.to_string())),
    }
}

fn reference(checkpoint: &SignedCheckpoint) -> Option<CheckpointRef> {
    let claimed = checkpoint.claimed();
    Some(CheckpointRef {
        origin: claimed.origin().as_str().to_owned().try_into().ok()?,
        size: claimed.head().size(),
        root: claimed.head().root().to_digest(),
    })
}

/// Whether what one demand names holds the first `needed` leaves.
async fn demanded(
    work: &Work<'_>,
    demand: &AnchorDemand,
    checkpoint: &SignedCheckpoint,
    needed: u64,
    lacking: Lacking,
) -> Result<Hold, StepError> {
    let anchoring = &work.engine.anchoring;
    let (kind, wanted) = match demand {
        AnchorDemand::Checkpoint => return Ok(Hold::Held(None)),
        AnchorDemand::Branch => return in_branch(work, checkpoint, needed, lacking).await,
        AnchorDemand::Timestamp(name) => (AnchorKind::Timestamp, name.as_deref()),
        AnchorDemand::Witness(name) => (AnchorKind::Witness, name.as_deref()),
    };
    let outside = anchoring.outside.iter().map(|shown| shown.anchor.as_ref());
    let meant = outside.filter(|anchor| {
        anchor.kind() == kind && wanted.is_none_or(|wanted| wanted == anchor.name())
    });
    let meant: Vec<&dyn Anchor> = meant.collect();
    // Break it: leave this out; a project that demands a witness is then served without one
    // (`worker::anchoring::what_is_demanded_and_not_configured_blocks_the_merge`).
    if meant.is_empty() {
        return Ok(Hold::Open(format!(
            "the project demands {demand} before a merge, and none is configured; add it under `anchor`, or take it out of the rules"
        )));
    }
    for anchor in meant {
        let held = held_by(work, anchor, checkpoint, needed, lacking).await?;
        if !matches!(held, Hold::Held(_)) {
            return Ok(held);
        }
    }
    Ok(Hold::Held(None))
}

async fn in_branch(
    work: &Work<'_>,
    checkpoint: &SignedCheckpoint,
    needed: u64,
    lacking: Lacking,
) -> Result<Hold, StepError> {
    let Some(settings) = &work.engine.anchoring.branch else {
        return Ok(Hold::Open(
            "the project demands branch before a merge, and none is configured; add `anchor.branch`, or take it out of the rules".to_owned(),
        ));
    };
    let Some(place) = &settings.project else {
        let branch = Branch::new(work.engine, work.project, work.connector, settings);
        return held_by(work, &branch, checkpoint, needed, lacking).await;
    };
    let scoped = work.engine.store.within(&work.snapshot.organisation);
    let project = scoped
        .project(place)
        .await
        .map_err(|error| unread(&error))?;
    let Some(project) = project else {
        return Ok(Hold::Open(format!(
            "anchor.branch.project names {place}, which is not registered; `caretaker project list` shows those that are"
        )));
    };
    let connector = match work.engine.connectors.of(&project).await {
        Ok(connector) => connector,
        Err(reason) => {
            return Ok(Hold::Open(format!(
                "the repository of anchor.branch: {reason}"
            )));
        }
    };
    let branch = Branch::new(work.engine, &project, connector.as_ref(), settings);
    held_by(work, &branch, checkpoint, needed, lacking).await
}

async fn held_by(
    work: &Work<'_>,
    anchor: &dyn Anchor,
    checkpoint: &SignedCheckpoint,
    needed: u64,
    lacking: Lacking,
) -> Result<Hold, StepError> {
    let (kind, name) = (anchor.kind(), anchor.name());
    // Break it: look from 0 on; a receipt from before the approval then passes for one of it
    // (`worker::anchoring::a_receipt_from_before_the_approval_does_not_count`).
    let held = match holds(work.engine, anchor, needed, checkpoint).await {
        Ok(false) if lacking == Lacking::Show => {
            let shown = show(work.engine, anchor, checkpoint).await;
            shown.map(|()| true)
        }
        held => held,
    };
    match held {
        Ok(true) => Ok(Hold::Held(None)),
        Ok(false) => Ok(Hold::Open(format!(
            "{kind} {name} does not hold the approval any more"
        ))),
        Err(Unanchored::Store(error)) => Err(unread(&error)),
        Err(Unanchored::Anchor(error @ AnchorError::Contradiction { .. })) => {
            Ok(Hold::Contradicted(error.to_string()))
        }
        Err(Unanchored::Anchor(error)) => Ok(Hold::Open(format!(
            "the project demands that {kind} {name} holds the approval before the merge: {error}"
        ))),
    }
}

/// Anchors that the project does not demand and that have not held anything for three of their intervals: said in the incident's
/// history, and nothing waits for them.
pub(super) async fn overdue(work: &Work<'_>) -> Result<Vec<AuditEvent>, StepError> {
    let scoped = work.engine.store.within(&work.snapshot.organisation);
    let overdue = async {
        let mut events = Vec::new();
        let size = scoped.log_frontier().await?.size();
        for shown in &work.engine.anchoring.outside {
            let (kind, name) = (shown.anchor.kind(), shown.anchor.name());
            let last = scoped.newest_anchor(kind.as_str(), name, size).await?;
            let patience = shown.every.saturating_mul(3).max(Duration::from_mins(5));
            let late = last.as_ref().is_none_or(|last| {
                let since = work.now.0.saturating_sub(last.anchored_at.0);
                u128::try_from(since).is_ok_and(|since| since > patience.as_millis())
            });
            if late {
                let since = last.map_or_else(
                    || "it has never answered".to_owned(),
                    |last| format!("it answered last at {}", last.anchored_at),
                );
                events.push(AuditEvent {
                    kind: "anchor-failing",
                    detail: format!("{kind} {name}, which nothing waits for: {since}"),
                });
            }
        }
        Ok(events)
    };
    overdue.await.map_err(|error: StoreError| unread(&error))
}
