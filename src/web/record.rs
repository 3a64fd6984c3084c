//! Everything the store holds about one incident, read for pages and documents.

use super::evidence::kept;
use crate::approve::Consumption;
use crate::audit::{self, ApprovalRecord, AuditRecord, Entry, Records, StoredLedger};
use crate::clock::Millis;
use crate::id::IncidentId;
use crate::incident::Snapshot;
use crate::store::{ApprovalRow, AuditEntry, IncidentRow, Project, Scoped, StoreError};

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
    /// Its history beside the chain.
    pub audit: Vec<AuditEntry>,
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
            audit: scope.audit_events(incident).await?,
            row,
            snapshot,
            ledger,
            answer,
            read_at: now,
        }))
    }

    /// The history, oldest first.
    pub fn timeline(&self) -> Vec<Entry> {
        let approvals: Vec<ApprovalRecord> = self.approvals.iter().map(link).collect();
        let audit: Vec<AuditRecord> = self.audit.iter().map(event).collect();
        audit::timeline(&Records {
            opened_at: self.snapshot.opened_at,
            failure: &self.snapshot.failure,
            facts: &self.snapshot.facts,
            rows: &self.ledger.rows,
            approvals: &approvals,
            audit: &audit,
        })
    }
}

fn link(row: &ApprovalRow) -> ApprovalRecord {
    ApprovalRecord {
        approval: row.id.clone(),
        principal: row.principal.clone(),
        issued_at: row.issued_at,
        expires_at: row.expires_at,
        used: row.consumed_at.zip(row.decision),
        revoked_at: row.revoked_at,
    }
}

fn event(entry: &AuditEntry) -> AuditRecord {
    AuditRecord {
        at: entry.at,
        kind: entry.kind.clone(),
        detail: entry.detail.clone(),
    }
}
