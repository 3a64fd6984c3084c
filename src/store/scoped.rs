//! What one organisation may read. Every statement here names the organisation; a test looks for it.

use super::approval::{self, ApprovalRow};
use super::incident::{self, IncidentRow};
use super::ledger;
use super::outbox;
use super::project::{self, Project};
use super::statement::statements;
use super::watch_state::{self, WatchState};
use super::{Store, StoreError, Work, value};
use crate::audit::{self, AuditRecord, Records, StoredLedger};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{Draft, Snapshot};

statements! {
    /// All of its projects.
    PROJECTS = "SELECT id, organisation, url, repository_id, full_name, host, rules, rules_digest, intent, owner, state, frozen, \
        draft_digest, created_at, confirmed_at, watch, health, schedule, removed_at FROM project \
        WHERE organisation = $1 AND removed_at IS NULL ORDER BY id";
    /// One project.
    PROJECT = "SELECT id, organisation, url, repository_id, full_name, host, rules, rules_digest, intent, owner, state, frozen, \
        draft_digest, created_at, confirmed_at, watch, health, schedule, removed_at FROM project \
        WHERE organisation = $1 AND id = $2";
    /// All of its incidents, newest first.
    INCIDENTS = "SELECT id, project, stage, closed_reason, failure, opened_at, updated_at, wake_at, wait_reason, attempts \
        FROM incident WHERE organisation = $1 ORDER BY opened_at DESC, id DESC";
    /// One incident.
    INCIDENT = "SELECT id, project, stage, closed_reason, failure, opened_at, updated_at, wake_at, wait_reason, attempts \
        FROM incident WHERE organisation = $1 AND id = $2";
    /// One incident with its chain and its project's freeze: the head of a snapshot, and of a ledger.
    HEAD = "SELECT i.id, i.organisation, i.project, i.project_url, i.repository_id, i.failure, i.version, i.stage, i.opened_at, \
        p.frozen, c.next_draft, c.draft_head, c.next_seq, c.head \
        FROM incident i JOIN project p ON p.id = i.project JOIN chain c ON c.incident = i.id \
        WHERE i.organisation = $1 AND i.id = $2";
    /// Its facts, in order.
    FACTS = "SELECT f.ordinal, f.at, f.body FROM fact f JOIN incident i ON i.id = f.incident \
        WHERE i.organisation = $1 AND f.incident = $2 ORDER BY f.ordinal";
    /// Its live link.
    LINK = "SELECT id, expires_at FROM approval WHERE organisation = $1 AND incident = $2 AND revoked_at IS NULL \
        AND consumed_at IS NULL AND expires_at > $3";
    /// Its signed events, in order.
    LEDGER = "SELECT l.incident, l.seq, l.envelope, l.type, l.role, l.keyid, l.event_id, l.prev, l.pae, l.occurred_at \
        FROM ledger l JOIN incident i ON i.id = l.incident WHERE i.organisation = $1 AND l.incident = $2 ORDER BY l.seq";
    /// Where the log has the incident's events, with the hashes of their leaves.
    LOGGED = "SELECT f.seq, f.position, n.hash FROM incident i JOIN log_leaf f ON f.organisation = i.organisation AND f.incident = i.id \
        LEFT JOIN log_node n ON n.organisation = f.organisation AND n.level = 0 AND n.position = f.position \
        WHERE i.organisation = $1 AND i.id = $2 ORDER BY f.seq, f.position";
    /// One unsigned statement.
    DRAFT = "SELECT s.seq, s.role, s.statement, s.pae FROM statement s JOIN incident i ON i.id = s.incident \
        WHERE i.organisation = $1 AND s.incident = $2 AND s.seq = $3";
    /// One document.
    pub(super) EVIDENCE = "SELECT media_type, bytes FROM evidence WHERE organisation = $1 AND digest = $2";
    /// Every document of an incident that is there and that it has not let go.
    EVIDENCE_OF = "SELECT e.digest, e.bytes FROM incident i JOIN evidence_use u ON u.organisation = i.organisation \
        AND u.incident = i.id JOIN evidence e ON e.organisation = u.organisation AND e.digest = u.digest \
        WHERE i.organisation = $1 AND i.id = $2 AND NOT EXISTS (SELECT 1 FROM evidence_gap g \
        WHERE g.organisation = u.organisation AND g.digest = u.digest AND g.incident = u.incident) ORDER BY e.digest";
    /// The links of an incident, oldest first.
    APPROVALS = "SELECT id, incident, request, principal, issued_at, expires_at, revoked_at, consumed_at, decision \
        FROM approval WHERE organisation = $1 AND incident = $2 ORDER BY issued_at, id";
    /// The history beside the chain, oldest first.
    AUDIT_EVENTS = "SELECT kind, detail, at FROM audit_event WHERE organisation = $1 AND incident = $2 ORDER BY number";
    /// What happened to a project itself, newest first.
    PROJECT_EVENTS = "SELECT kind, detail, at FROM audit_event WHERE organisation = $1 AND project = $2 AND incident IS NULL \
        ORDER BY number DESC LIMIT $3";
    /// How watching its projects goes, of those that were looked at.
    // Break it: leave `w.looked_at IS NOT NULL` out; a project that waits for its first look is then said to be fine
    // (`commands::projects::a_project_that_was_never_looked_at_says_so`).
    WATCH_STATES = "SELECT w.project, w.next_at, w.looked_at, w.answered_at, w.condition, w.since, w.detail, w.mend, w.lag, \
        w.requests, w.unchanged, w.counted_from, w.budget FROM project_watch w JOIN project p ON p.id = w.project \
        WHERE p.organisation = $1 AND w.looked_at IS NOT NULL ORDER BY w.project";
}

/// Reads on behalf of one organisation; what belongs to another one is not there.
#[derive(Debug, Clone, Copy)]
pub struct Scoped<'a> {
    pub(super) store: &'a Store,
    pub(super) organisation: &'a OrganisationId,
}

impl Store {
    /// Everything that one organisation may read.
    pub const fn within<'a>(&'a self, organisation: &'a OrganisationId) -> Scoped<'a> {
        Scoped {
            store: self,
            organisation,
        }
    }
}

impl Scoped<'_> {
    /// All projects.
    pub async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        let mut work = self.store.reading("listing the projects").await?;
        let rows = work
            .all(sqlx::query(PROJECTS).bind(self.organisation.as_str()))
            .await?;
        rows.iter().map(project::from_row).collect()
    }

    /// One project.
    pub async fn project(&self, project: &ProjectId) -> Result<Option<Project>, StoreError> {
        let mut work = self.store.reading("reading a project").await?;
        let query = sqlx::query(PROJECT)
            .bind(self.organisation.as_str())
            .bind(project.as_str());
        let row = work.optional(query).await?;
        row.as_ref().map(project::from_row).transpose()
    }

    /// How watching the projects goes, for those that were ever scheduled.
    pub async fn watch_states(&self) -> Result<Vec<WatchState>, StoreError> {
        let mut work = self.store.reading("reading how watching goes").await?;
        let query = sqlx::query(WATCH_STATES).bind(self.organisation.as_str());
        let rows = work.all(query).await?;
        rows.iter().map(watch_state::from_row).collect()
    }

    /// What happened to a project beside its incidents, newest first, at most `limit` events.
    pub async fn project_events(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let mut work = self.store.reading("reading a project's history").await?;
        let query = sqlx::query(PROJECT_EVENTS)
            .bind(self.organisation.as_str())
            .bind(project.as_str())
            .bind(i64::from(limit));
        let rows = work.all(query).await?;
        rows.iter().map(outbox::audit_record).collect()
    }

    /// All incidents, newest first.
    pub async fn incidents(&self) -> Result<Vec<IncidentRow>, StoreError> {
        let mut work = self.store.reading("listing the incidents").await?;
        let rows = work
            .all(sqlx::query(INCIDENTS).bind(self.organisation.as_str()))
            .await?;
        rows.iter().map(incident::from_row).collect()
    }

    /// One incident.
    pub async fn incident(&self, incident: &IncidentId) -> Result<Option<IncidentRow>, StoreError> {
        let mut work = self.store.reading("reading an incident").await?;
        let row = work.optional(self.of_incident(INCIDENT, incident)).await?;
        row.as_ref().map(incident::from_row).transpose()
    }

    /// Everything known about an incident, of one moment; `now` decides whether its link is live.
    pub async fn snapshot(
        &self,
        incident: &IncidentId,
        now: Millis,
    ) -> Result<Option<Snapshot>, StoreError> {
        let mut work = self.store.reading("reading an incident").await?;
        work.snapshot(self.organisation, incident, now).await
    }

    /// The signed events of an incident with what the rest of the database says about them, raw, for verification.
    pub async fn ledger(&self, incident: &IncidentId) -> Result<Option<StoredLedger>, StoreError> {
        let mut work = self.store.reading("reading a ledger").await?;
        let Some(head) = work.optional(self.of_incident(HEAD, incident)).await? else {
            return Ok(None);
        };
        let rows = work.all(self.of_incident(LEDGER, incident)).await?;
        let facts = work.all(self.of_incident(FACTS, incident)).await?;
        let snapshot = incident::snapshot(&head, &facts, None)?;
        let mut ledger = ledger::from_rows(&head, &rows)?;
        let places = work.all(self.of_incident(LOGGED, incident)).await?;
        ledger.places = places.iter().map(ledger::place).collect::<Result<_, _>>()?;
        ledger.evidence = work
            .kept_evidence(self.organisation, &ledger.rows, &snapshot)
            .await?;
        Ok(Some(ledger))
    }

    /// One statement as it was drafted.
    pub async fn draft(
        &self,
        incident: &IncidentId,
        seq: u64,
    ) -> Result<Option<Draft>, StoreError> {
        let mut work = self.store.reading("reading a draft").await?;
        work.draft(self.organisation, incident, seq).await
    }

    /// A document with its media type. Bytes that are not what the digest says are an error, not evidence.
    pub async fn evidence(
        &self,
        digest: &Sha256Digest,
    ) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        let mut work = self.store.reading("reading evidence").await?;
        let found = work.document(self.organisation, digest).await?;
        let Some((media_type, bytes)) = found else {
            return Ok(None);
        };
        let found = Sha256Digest::of(&bytes);
        if found != *digest {
            let reason = format!("the bytes kept as {digest} have the digest {found}");
            return Err(StoreError::Unreadable {
                what: "evidence",
                reason,
            });
        }
        Ok(Some((media_type, bytes)))
    }

    /// Every document of an incident that is there, by the digest under which it is kept, unchecked.
    pub async fn evidence_of(
        &self,
        incident: &IncidentId,
    ) -> Result<Vec<(Sha256Digest, Vec<u8>)>, StoreError> {
        let mut work = self.store.reading("reading an incident's evidence").await?;
        let rows = work.all(self.of_incident(EVIDENCE_OF, incident)).await?;
        rows.iter()
            .map(|row| Ok((value::parsed(row, "digest")?, value::bytes(row, "bytes")?)))
            .collect()
    }

    /// The approval links of an incident, oldest first.
    pub async fn approvals(&self, incident: &IncidentId) -> Result<Vec<ApprovalRow>, StoreError> {
        let mut work = self.store.reading("reading the approvals").await?;
        let rows = work.all(self.of_incident(APPROVALS, incident)).await?;
        rows.iter().map(approval::from_row).collect()
    }

    /// What the history shows beside facts and signed events, oldest first.
    pub async fn audit_events(
        &self,
        incident: &IncidentId,
    ) -> Result<Vec<AuditRecord>, StoreError> {
        let mut work = self.store.reading("reading the history").await?;
        let rows = work.all(self.of_incident(AUDIT_EVENTS, incident)).await?;
        rows.iter().map(outbox::audit_record).collect()
    }

    /// Everything that happened to an incident, oldest first; none when there is no such incident.
    pub async fn timeline(
        &self,
        incident: &IncidentId,
    ) -> Result<Option<Vec<audit::Entry>>, StoreError> {
        let mut work = self.store.reading("reading the history").await?;
        let Some(head) = work.optional(self.of_incident(HEAD, incident)).await? else {
            return Ok(None);
        };
        let facts = work.all(self.of_incident(FACTS, incident)).await?;
        let snapshot = incident::snapshot(&head, &facts, None)?;
        let rows = work.all(self.of_incident(LEDGER, incident)).await?;
        let ledger = ledger::from_rows(&head, &rows)?;
        let approvals = work.all(self.of_incident(APPROVALS, incident)).await?;
        let approvals = approvals
            .iter()
            .map(|row| Ok(approval::from_row(row)?.record()))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let audit = work.all(self.of_incident(AUDIT_EVENTS, incident)).await?;
        let audit = audit
            .iter()
            .map(outbox::audit_record)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Some(audit::timeline(&Records {
            opened_at: snapshot.opened_at,
            failure: &snapshot.failure,
            facts: &snapshot.facts,
            rows: &ledger.rows,
            approvals: &approvals,
            audit: &audit,
        })))
    }

    fn of_incident<'q>(
        &'q self,
        statement: &'static str,
        incident: &'q IncidentId,
    ) -> super::Query<'q> {
        sqlx::query(statement)
            .bind(self.organisation.as_str())
            .bind(incident.as_str())
    }
}

impl Work {
    /// Everything known about an incident, as this transaction sees it.
    pub(super) async fn snapshot(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        now: Millis,
    ) -> Result<Option<Snapshot>, StoreError> {
        let head = sqlx::query(HEAD)
            .bind(organisation.as_str())
            .bind(incident.as_str());
        let Some(head) = self.optional(head).await? else {
            return Ok(None);
        };
        let facts = sqlx::query(FACTS)
            .bind(organisation.as_str())
            .bind(incident.as_str());
        let facts = self.all(facts).await?;
        let link = sqlx::query(LINK)
            .bind(organisation.as_str())
            .bind(incident.as_str())
            .bind(now.0);
        let link = self.optional(link).await?;
        incident::snapshot(&head, &facts, link.as_ref()).map(Some)
    }

    /// One statement as it was drafted, as this transaction sees it.
    pub(super) async fn draft(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        seq: u64,
    ) -> Result<Option<Draft>, StoreError> {
        let query = sqlx::query(DRAFT)
            .bind(organisation.as_str())
            .bind(incident.as_str())
            .bind(value::bigint("the draft's number", seq)?);
        let row = self.optional(query).await?;
        row.as_ref().map(ledger::draft_from_row).transpose()
    }
}
