//! Letting evidence go: which incidents are due, and the deletion of what a signed gap names.

use super::super::statement::statements;
use super::super::{Store, StoreError, Work, value};
use crate::attest::predicate::GapReason;
use crate::attest::{Event, SignedDocument, Statement};
use crate::audit::LedgerRow;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId};
use crate::incident::Fact;

statements! {
    /// Whose a document is.
    pub(super) USE = "INSERT INTO evidence_use (organisation, digest, incident) VALUES ($1, $2, $3) \
        ON CONFLICT (organisation, digest, incident) DO NOTHING";
    /// Incidents that ended long ago, of projects that are there, and whose evidence was not let go yet; oldest first.
    DUE = "SELECT i.id FROM incident i WHERE i.organisation = $1 AND i.stage IN ('resolved', 'closed') AND i.updated_at < $2 \
        AND EXISTS (SELECT 1 FROM evidence_use u WHERE u.incident = i.id) \
        AND NOT EXISTS (SELECT 1 FROM fact f WHERE f.incident = i.id AND f.kind = 'evidence-due') \
        AND EXISTS (SELECT 1 FROM project p WHERE p.id = i.project AND p.removed_at IS NULL AND p.state <> 'draft') \
        ORDER BY i.updated_at, i.id LIMIT $3";
    /// Locks one of them, unless it is another's by now.
    TAKE_DUE = "UPDATE incident SET updated_at = $1 WHERE id = $2 AND organisation = $3 AND updated_at < $4 \
        AND stage IN ('resolved', 'closed') RETURNING id";
    /// What a gap says to be gone.
    GAP = "INSERT INTO evidence_gap (organisation, digest, incident, seq) VALUES ($1, $2, $3, $4)";
    /// Goes, unless another incident still has it.
    DELETE = "DELETE FROM evidence WHERE organisation = $1 AND digest = $2 AND NOT EXISTS (SELECT 1 FROM evidence_use u \
        WHERE u.organisation = evidence.organisation AND u.digest = evidence.digest AND NOT EXISTS (SELECT 1 FROM evidence_gap g \
        WHERE g.organisation = u.organisation AND g.digest = u.digest AND g.incident = u.incident))";
}

impl Store {
    /// Makes incidents due whose evidence has been kept long enough: finished before `before`, at most `limit` of them. Returns
    /// how many; the worker lets their evidence go.
    ///
    /// # Errors
    /// The database.
    pub async fn make_evidence_due(
        &self,
        organisation: &OrganisationId,
        before: Millis,
        now: Millis,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let mut work = self.reading("looking for evidence to let go").await?;
        let due = sqlx::query(DUE)
            .bind(organisation.as_str())
            .bind(before.0)
            .bind(i64::from(limit));
        let rows = work.all(due).await?;
        drop(work);
        let mut made = 0;
        for row in &rows {
            let incident: IncidentId = value::parsed(row, "id")?;
            let mut work = self.writing("making evidence due").await?;
            let take = sqlx::query(TAKE_DUE)
                .bind(now.0)
                .bind(incident.as_str())
                .bind(organisation.as_str())
                .bind(before.0);
            if work.optional(take).await?.is_some() {
                work.add_fact(organisation, &incident, &Fact::EvidenceDue, now)
                    .await?;
                work.commit_and_nudge().await?;
                made += 1;
            }
        }
        Ok(made)
    }
}

impl Work {
    /// Writes down what an appended gap of retention says, and deletes what no other incident needs.
    pub(in crate::store) async fn let_go(
        &mut self,
        organisation: &OrganisationId,
        row: &LedgerRow,
    ) -> Result<(), StoreError> {
        for digest in gone(&row.envelope) {
            let gap = sqlx::query(GAP)
                .bind(organisation.as_str())
                .bind(digest.to_string())
                .bind(&row.incident)
                .bind(row.seq);
            self.execute(gap).await?;
            let delete = sqlx::query(DELETE)
                .bind(organisation.as_str())
                .bind(digest.to_string());
            self.execute(delete).await?;
        }
        Ok(())
    }
}

/// What an envelope says to be gone because its time was over.
fn gone(envelope: &[u8]) -> Vec<Sha256Digest> {
    let statement = SignedDocument::parse(envelope)
        .ok()
        .and_then(|document| Statement::parse(document.unverified_payload()).ok());
    let mut digests = match statement.as_ref().and_then(Statement::as_event) {
        Some(Event::Gap(gap)) if gap.reason == Some(GapReason::Retention) => {
            gap.evidence.iter().map(|gone| gone.sha256).collect()
        }
        _ => Vec::new(),
    };
    digests.sort_unstable();
    digests.dedup();
    digests
}
