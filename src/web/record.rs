//! Everything the store holds about one incident, read for pages and documents.

use super::evidence::kept;
use crate::approve::Consumption;
use crate::audit::{Entry, StoredLedger};
use crate::clock::Millis;
use crate::id::IncidentId;
use crate::incident::Snapshot;
use crate::store::{ApprovalRow, IncidentRow, Project, Scoped, StoreError};

/// One incident, as far as it can be told without the repository.
#[derive(Debug, Clone)]
pub struct IncidentRecord {
    /// The line that lists show.
    pub row: IncidentRow,
    /// Its facts.
    pub snapshot: Snapshot,
    /// Its project; none when it is gone.
    pub project: Option<Project>,
    /// Its signed events, raw.
    pub ledger: StoredLedger,
    /// Its approval links.
    pub approvals: Vec<ApprovalRow>,
    /// Its history, oldest first.
    pub timeline: Vec<Entry>,
    /// The record of the person's answer.
    pub answer: Option<Consumption>,
    /// When it was read.
    pub read_at: Millis,
}

impl IncidentRecord {
    /// Reads an incident; none when the organisation has no such incident.
    ///
    /// # Errors
    /// The database does not answer, or what it holds cannot be read.
    pub async fn read(
        scope: Scoped<'_>,
        incident: &IncidentId,
        now: Millis,
    ) -> Result<Option<Self>, StoreError> {
        let Some(row) = scope.incident(incident).await? else {
            return Ok(None);
        };
        let Some(snapshot) = scope.snapshot(incident, now).await? else {
            return Ok(None);
        };
        let Some(ledger) = scope.ledger(incident).await? else {
            return Ok(None);
        };
        let answer = match snapshot.consumption() {
            Some(digest) => kept(scope, &digest).await?,
            None => None,
        };
        let answer = answer.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Some(Self {
            project: scope.project(&row.project).await?,
            approvals: scope.approvals(incident).await?,
            timeline: scope.timeline(incident).await?.unwrap_or_default(),
            row,
            snapshot,
            ledger,
            answer,
            read_at: now,
        }))
    }
}
