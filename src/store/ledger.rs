//! Signed events as they are stored.

use sqlx::any::AnyRow;

use super::log::Entry;
use super::statement::statements;
use super::{StoreError, Work, value};
use crate::attest::Role;
use crate::attest::predicate::Project;
use crate::attest::{Label, Text};
use crate::audit::{ChainRecord, KeptEvidence, LedgerRow, LogPlace, StoredLedger};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId};
use crate::incident::{Draft, Stage};

statements! {
    /// A signed event.
    APPEND = "INSERT INTO ledger (incident, seq, envelope, type, role, keyid, event_id, prev, pae, occurred_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
}

pub(super) fn draft_from_row(row: &AnyRow) -> Result<Draft, StoreError> {
    let role = value::text(row, "role")?;
    Ok(Draft {
        seq: value::count(row, "seq")?,
        role: Role::parse(&role).ok_or_else(|| StoreError::Unreadable {
            what: "a draft's role",
            reason: format!("{role:?} is no role"),
        })?,
        statement: value::bytes(row, "statement")?,
        pae: value::parsed(row, "pae")?,
    })
}

/// A ledger from the row that heads its incident and its own rows, without evidence and places in the log. The rows stay raw: judging them is the verifier's part.
pub(super) fn from_rows(head: &AnyRow, rows: &[AnyRow]) -> Result<StoredLedger, StoreError> {
    let uri = Text::new(&value::text(head, "project_url")?);
    let repository_id = Label::new(&value::text(head, "repository_id")?);
    Ok(StoredLedger {
        incident: value::parsed(head, "id")?,
        project: uri
            .ok()
            .zip(repository_id.ok())
            .map(|(uri, repository_id)| Project { uri, repository_id }),
        rows: rows.iter().map(row).collect::<Result<_, _>>()?,
        chain: ChainRecord {
            next_seq: value::count(head, "next_seq")?,
            head: value::optional_digest(head, "head")?,
        },
        places: Vec::new(),
        stage: value::word::<Stage>(head, "stage")?,
        drafted: value::count(head, "next_draft")?,
        evidence: KeptEvidence::default(),
    })
}

pub(super) fn place(row: &AnyRow) -> Result<LogPlace, StoreError> {
    Ok(LogPlace {
        seq: value::integer(row, "seq")?,
        position: value::integer(row, "position")?,
        hash: value::optional_bytes(row, "hash")?,
    })
}

fn row(row: &AnyRow) -> Result<LedgerRow, StoreError> {
    Ok(LedgerRow {
        incident: value::text(row, "incident")?,
        seq: value::integer(row, "seq")?,
        envelope: value::bytes(row, "envelope")?,
        kind: value::text(row, "type")?,
        role: value::text(row, "role")?,
        keyid: value::text(row, "keyid")?,
        event_id: value::text(row, "event_id")?,
        prev: value::optional_text(row, "prev")?,
        pae: value::text(row, "pae")?,
        occurred_at: value::integer(row, "occurred_at")?,
    })
}

/// The row for an envelope that is to stand at `seq` of the incident's chain, and be what was drafted there.
pub(super) fn derived(
    incident: &IncidentId,
    seq: i64,
    envelope: &[u8],
    drafted: Option<&Draft>,
) -> Result<LedgerRow, StoreError> {
    let refused = |reason: String| StoreError::Inconsistent {
        incident: incident.clone(),
        reason,
    };
    let row = LedgerRow::derive(envelope)
        .map_err(|error| refused(format!("the envelope cannot be stored: {error}")))?;
    if row.incident != incident.as_str() || row.seq != seq {
        let reason = format!(
            "the envelope says that it is event {} of {}, it was to be appended as event {seq}",
            row.seq, row.incident
        );
        return Err(refused(reason));
    }
    if drafted.is_none_or(|draft| draft.pae.to_string() != row.pae) {
        let reason =
            format!("the envelope does not sign the statement that is drafted as event {seq}");
        return Err(refused(reason));
    }
    Ok(row)
}

impl Work {
    /// Writes a signed event down at the place that the chain gave it, and logs it.
    pub(super) async fn append(
        &mut self,
        organisation: &OrganisationId,
        row: &LedgerRow,
        now: Millis,
    ) -> Result<(), StoreError> {
        let append = sqlx::query(APPEND)
            .bind(&row.incident)
            .bind(row.seq)
            .bind(row.envelope.as_slice())
            .bind(&row.kind)
            .bind(&row.role)
            .bind(&row.keyid)
            .bind(&row.event_id)
            .bind(row.prev.as_deref())
            .bind(&row.pae)
            .bind(row.occurred_at);
        self.execute(append).await?;
        let entry = Entry::Event {
            incident: &row.incident,
            seq: row.seq,
            envelope: &row.envelope,
        };
        self.log(organisation, &entry, now).await.map(|_| ())
    }
}
