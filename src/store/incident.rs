//! Incidents as they are read, and the one way to add a fact outside a worker's commit.

use sqlx::any::AnyRow;

use super::statement::statements;
use super::{StoreError, Work, value};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};
use crate::incident::{
    ClosedReason, Fact, Failure, LedgerState, Link, RecordedFact, Snapshot, Stage, stage,
};

statements! {
    /// One fact.
    pub(super) INSERT_FACT = "INSERT INTO fact (incident, ordinal, at, kind, body) VALUES ($1, $2, $3, $4, $5)";
    /// Makes room for one fact and fences whoever read the incident before; the row is locked from here on.
    ADVANCE = "UPDATE incident SET version = version + 1, next_fact = next_fact + 1, updated_at = $1, wake_at = $1, \
        wait_reason = NULL WHERE id = $2 AND organisation = $3 RETURNING next_fact - 1 AS ordinal";
    /// The projection that pages and queries read.
    SET_STAGE = "UPDATE incident SET stage = $1, closed_reason = $2 WHERE id = $3 AND organisation = $4";
}

/// An incident as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentRow {
    /// The incident.
    pub id: IncidentId,
    /// Its project.
    pub project: ProjectId,
    /// Where it is.
    pub stage: Stage,
    /// Why it ended without our merge.
    pub closed_reason: Option<ClosedReason>,
    /// What was observed first.
    pub failure: Failure,
    /// When it was opened.
    pub opened_at: Millis,
    /// When something about it was last written.
    pub updated_at: Millis,
    /// Until when it rests, and what for.
    pub wait: Option<(Millis, String)>,
    /// How often it was tried since the last progress.
    pub attempts: u32,
}

pub(super) fn from_row(row: &AnyRow) -> Result<IncidentRow, StoreError> {
    let wake_at = value::optional_integer(row, "wake_at")?.map(Millis);
    Ok(IncidentRow {
        id: value::parsed(row, "id")?,
        project: value::parsed(row, "project")?,
        stage: value::word(row, "stage")?,
        closed_reason: value::optional_word(row, "closed_reason")?,
        failure: value::document(row, "failure")?,
        opened_at: Millis(value::integer(row, "opened_at")?),
        updated_at: Millis(value::integer(row, "updated_at")?),
        wait: wake_at.zip(value::optional_text(row, "wait_reason")?),
        attempts: u32::try_from(value::count(row, "attempts")?).unwrap_or(u32::MAX),
    })
}

/// A snapshot from the row that heads it, its facts and its live link.
pub(super) fn snapshot(
    head: &AnyRow,
    facts: &[AnyRow],
    link: Option<&AnyRow>,
) -> Result<Snapshot, StoreError> {
    Ok(Snapshot {
        incident: value::parsed(head, "id")?,
        organisation: value::parsed(head, "organisation")?,
        project: value::parsed(head, "project")?,
        failure: value::document(head, "failure")?,
        version: value::integer(head, "version")?,
        opened_at: Millis(value::integer(head, "opened_at")?),
        facts: facts.iter().map(recorded_fact).collect::<Result<_, _>>()?,
        ledger: LedgerState {
            drafted: value::count(head, "next_draft")?,
            appended: value::count(head, "next_seq")?,
            head: value::optional_digest(head, "draft_head")?,
        },
        link: link.map(live_link).transpose()?,
        frozen: value::optional_text(head, "frozen")?.is_some(),
    })
}

pub(super) fn recorded_fact(row: &AnyRow) -> Result<RecordedFact, StoreError> {
    Ok(RecordedFact {
        ordinal: value::count(row, "ordinal")?,
        at: Millis(value::integer(row, "at")?),
        fact: value::document(row, "body")?,
    })
}

fn live_link(row: &AnyRow) -> Result<Link, StoreError> {
    Ok(Link {
        approval: value::parsed(row, "id")?,
        expires_at: Millis(value::integer(row, "expires_at")?),
    })
}

impl Work {
    /// Writes one fact down at a place that was made for it.
    pub(super) async fn insert_fact(
        &mut self,
        incident: &IncidentId,
        ordinal: i64,
        at: Millis,
        fact: &Fact,
    ) -> Result<(), StoreError> {
        let insert = sqlx::query(INSERT_FACT)
            .bind(incident.as_str())
            .bind(ordinal)
            .bind(at.0)
            .bind(fact.kind())
            .bind(value::json("a fact", fact)?);
        self.execute(insert).await.map(|_| ())
    }

    /// Adds a fact that no step gave: something happened outside. Raises the version, so that a worker that has not seen it
    /// loses its commit, and makes the incident due.
    pub(super) async fn add_fact(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        fact: &Fact,
        now: Millis,
    ) -> Result<(), StoreError> {
        let advance = sqlx::query(ADVANCE)
            .bind(now.0)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        let row = self.one(advance).await?;
        let ordinal = value::integer(&row, "ordinal")?;
        self.insert_fact(incident, ordinal, now, fact).await?;
        if let Some(after) = self.snapshot(organisation, incident, now).await? {
            let closed = after.closed().map(|(reason, _)| reason.as_str());
            let set = sqlx::query(SET_STAGE)
                .bind(stage(&after).as_str())
                .bind(closed)
                .bind(incident.as_str())
                .bind(organisation.as_str());
            self.execute(set).await?;
        }
        Ok(())
    }
}
