//! Messages that wait for delivery, and the history beside the signed chain.

use sqlx::any::AnyRow;

use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::audit::AuditRecord;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{AuditEvent, Notice, NoticeEvent};

statements! {
    /// Something for the history.
    INSERT_AUDIT = "INSERT INTO audit_event (organisation, incident, project, kind, detail, at) VALUES ($1, $2, $3, $4, $5, $6)";
    /// Something to deliver.
    INSERT_NOTICE = "INSERT INTO notice (organisation, incident, event, text, created_at, due_at) VALUES ($1, $2, $3, $4, $5, $5)";
    /// Something to deliver that concerns a project and no incident.
    INSERT_PROJECT_NOTICE = "INSERT INTO notice (organisation, project, event, text, created_at, due_at) \
        VALUES ($1, $2, $3, $4, $5, $5)";
    /// Hands out due messages and hides them for the time that a delivery may take, so that two processes do not deliver the
    /// same one. The outer condition is asked again for a row that another process has just taken. A message whose incident
    /// still waits for a signature is held back for a while: whoever is told and looks at once should find the ledger whole.
    TAKE = "UPDATE notice SET due_at = $1, attempts = attempts + 1 WHERE due_at <= $2 AND number IN \
        (SELECT n.number FROM notice n WHERE n.due_at <= $2 AND (n.created_at <= $4 OR NOT EXISTS \
        (SELECT 1 FROM chain c WHERE c.incident = n.incident AND c.next_seq < c.next_draft)) \
        ORDER BY n.due_at, n.number LIMIT $3) \
        RETURNING number, organisation, incident, event, text, created_at, attempts, \
        COALESCE(project, (SELECT i.project FROM incident i WHERE i.id = notice.incident)) AS project";
    /// Delivered.
    DELIVERED = "UPDATE notice SET due_at = NULL, delivered_at = $1 WHERE number = $2";
    /// Not delivered.
    FAILED = "UPDATE notice SET due_at = $1 WHERE number = $2 AND delivered_at IS NULL";
}

/// How long a message waits for the signature of what it tells about, in seconds.
const HELD_SECONDS: i64 = 60;
/// How long a delivery may take before another process tries, in seconds.
const DELIVERY_SECONDS: i64 = 60;

/// A message that waits for delivery. It may be delivered twice when a process dies in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredNotice {
    /// Its number, by which it is acknowledged.
    pub number: i64,
    /// Whose it is.
    pub organisation: OrganisationId,
    /// The incident that it is about; none when it is about the project.
    pub incident: Option<IncidentId>,
    /// The project.
    pub project: ProjectId,
    /// What happened.
    pub event: NoticeEvent,
    /// In words.
    pub text: String,
    /// When it happened.
    pub created_at: Millis,
    /// How often delivery was tried, this time included.
    pub attempts: u32,
}

pub(super) fn audit_record(row: &AnyRow) -> Result<AuditRecord, StoreError> {
    Ok(AuditRecord {
        at: Millis(value::integer(row, "at")?),
        kind: value::text(row, "kind")?,
        detail: value::text(row, "detail")?,
    })
}

fn notice_from_row(row: &AnyRow) -> Result<StoredNotice, StoreError> {
    Ok(StoredNotice {
        number: value::integer(row, "number")?,
        organisation: value::parsed(row, "organisation")?,
        incident: optional_incident(row)?,
        project: value::parsed(row, "project")?,
        event: value::word(row, "event")?,
        text: value::text(row, "text")?,
        created_at: Millis(value::integer(row, "created_at")?),
        attempts: u32::try_from(value::count(row, "attempts")?).unwrap_or(u32::MAX),
    })
}

fn optional_incident(row: &AnyRow) -> Result<Option<IncidentId>, StoreError> {
    match value::optional_text(row, "incident")? {
        Some(_) => value::parsed(row, "incident").map(Some),
        None => Ok(None),
    }
}

impl Store {
    /// Up to `limit` messages that are due, oldest first. They are hidden from others for a minute: acknowledge each with
    /// [`Self::notice_delivered`] or [`Self::notice_failed`].
    pub async fn due_notices(
        &self,
        now: Millis,
        limit: u32,
    ) -> Result<Vec<StoredNotice>, StoreError> {
        let mut work = self.writing("taking due messages").await?;
        let take = sqlx::query(TAKE)
            .bind(now.plus_seconds(DELIVERY_SECONDS).0)
            .bind(now.0)
            .bind(i64::from(limit))
            .bind(now.plus_seconds(-HELD_SECONDS).0);
        let rows = work.all(take).await?;
        let mut notices = rows
            .iter()
            .map(notice_from_row)
            .collect::<Result<Vec<_>, _>>()?;
        work.commit().await?;
        notices.sort_by_key(|notice| (notice.created_at, notice.number));
        Ok(notices)
    }

    /// A message was delivered.
    pub async fn notice_delivered(&self, number: i64, now: Millis) -> Result<(), StoreError> {
        let mut work = self.writing("acknowledging a message").await?;
        work.execute(sqlx::query(DELIVERED).bind(now.0).bind(number))
            .await?;
        work.commit().await
    }

    /// A message could not be delivered: try again at `next_at`; with none, give it up.
    pub async fn notice_failed(
        &self,
        number: i64,
        next_at: Option<Millis>,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("putting a message back").await?;
        let failed = sqlx::query(FAILED)
            .bind(next_at.map(|at| at.0))
            .bind(number);
        work.execute(failed).await?;
        work.commit().await
    }

    /// Tells people something about a project, and keeps it in the project's history under `kind`.
    pub async fn tell_of_project(
        &self,
        organisation: &OrganisationId,
        project: &ProjectId,
        kind: &'static str,
        text: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("telling of a project").await?;
        let event = AuditEvent {
            kind,
            detail: text.to_owned(),
        };
        work.audit(organisation, None, Some(project), &event, now)
            .await?;
        work.notify_of_project(organisation, project, text, now)
            .await?;
        work.commit_and_nudge().await
    }

    /// Writes something into the history that belongs to no step, e.g. that a worker could not sign.
    pub async fn record(
        &self,
        organisation: &OrganisationId,
        incident: Option<&IncidentId>,
        project: Option<&ProjectId>,
        event: &AuditEvent,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("recording an event").await?;
        work.audit(organisation, incident, project, event, now)
            .await?;
        work.commit().await
    }
}

impl Work {
    pub(super) async fn audit(
        &mut self,
        organisation: &OrganisationId,
        incident: Option<&IncidentId>,
        project: Option<&ProjectId>,
        event: &AuditEvent,
        now: Millis,
    ) -> Result<(), StoreError> {
        let detail = value::message(&event.detail);
        let insert = sqlx::query(INSERT_AUDIT)
            .bind(organisation.as_str())
            .bind(incident.map(IncidentId::as_str))
            .bind(project.map(ProjectId::as_str))
            .bind(event.kind)
            .bind(detail.as_ref())
            .bind(now.0);
        self.execute(insert).await.map(|_| ())
    }

    /// A message about a project that concerns no incident.
    pub(super) async fn notify_of_project(
        &mut self,
        organisation: &OrganisationId,
        project: &ProjectId,
        text: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let text = value::message(text);
        let insert = sqlx::query(INSERT_PROJECT_NOTICE)
            .bind(organisation.as_str())
            .bind(project.as_str())
            .bind(value::spelling("a notice", &NoticeEvent::Notice)?)
            .bind(text.as_ref())
            .bind(now.0);
        self.execute(insert).await.map(|_| ())
    }

    pub(super) async fn notify(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        notice: &Notice,
        now: Millis,
    ) -> Result<(), StoreError> {
        let text = value::message(&notice.text);
        let insert = sqlx::query(INSERT_NOTICE)
            .bind(organisation.as_str())
            .bind(incident.as_str())
            .bind(value::spelling("a notice", &notice.event)?)
            .bind(text.as_ref())
            .bind(now.0);
        self.execute(insert).await.map(|_| ())
    }
}
