//! Approval links: looked at as often as anyone likes, used once.

use serde::Serialize;
use sqlx::any::AnyRow;

use super::statement::statements;
use super::{Store, StoreError, Work, value};
use crate::approve::{
    ApprovalRequest, ApprovalToken, Consumption, HumanDecision, Principal, TokenHash,
};
use crate::audit::ApprovalRecord;
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{ApprovalId, IncidentId, OrganisationId};
use crate::incident::{EvidenceDocument, Fact};

statements! {
    /// Whose link it is. Possession of the link is what gives access, so no organisation is asked for.
    LOCATE = "SELECT id, organisation, incident, request, principal, issued_at, expires_at, revoked_at, consumed_at, decision \
        FROM approval WHERE token = $1";
    /// Locks the incident first, as a worker's commit does: whoever takes both locks takes them in one order.
    pub(super) LOCK = "UPDATE incident SET updated_at = updated_at WHERE id = $1 AND organisation = $2";
    /// The one statement that uses a link. All of its conditions stand in its predicate: of any number of simultaneous
    /// users one finds them true.
    CONSUME = "UPDATE approval SET consumed_at = $1, decision = $2 WHERE token = $3 AND consumed_at IS NULL \
        AND revoked_at IS NULL AND expires_at > $1 RETURNING id, request, principal, issued_at, expires_at";
}

/// The longest remark, in bytes: what a signed statement takes.
const LONGEST_COMMENT: usize = 500;

/// What became of a use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Consumed {
    /// It counts.
    Done {
        /// The incident that it answers.
        incident: IncidentId,
    },
    /// The link was used, revoked or too old. Nothing was written.
    Gone,
    /// There was never such a link.
    Unknown,
}

/// What a link is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalState {
    /// It can be used.
    Live,
    /// It was.
    Used,
    /// A newer one replaced it, or the incident is over.
    Revoked,
    /// Nobody used it in time.
    Expired,
}

/// A link as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The link.
    pub id: ApprovalId,
    /// Its incident.
    pub incident: IncidentId,
    /// Digest of the request that it is for.
    pub request: Sha256Digest,
    /// Who was asked.
    pub principal: Principal,
    /// When it was made.
    pub issued_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
    /// When it was revoked.
    pub revoked_at: Option<Millis>,
    /// When it was used.
    pub consumed_at: Option<Millis>,
    /// The answer.
    pub decision: Option<HumanDecision>,
}

impl ApprovalRow {
    /// The link as the history tells it.
    pub(super) fn record(&self) -> ApprovalRecord {
        ApprovalRecord {
            approval: self.id.clone(),
            principal: self.principal.clone(),
            issued_at: self.issued_at,
            expires_at: self.expires_at,
            used: self.consumed_at.zip(self.decision),
            revoked_at: self.revoked_at,
        }
    }

    /// What the link is good for at a moment.
    pub fn state(&self, now: Millis) -> ApprovalState {
        if self.consumed_at.is_some() {
            ApprovalState::Used
        } else if self.revoked_at.is_some() {
            ApprovalState::Revoked
        } else if self.expires_at <= now {
            ApprovalState::Expired
        } else {
            ApprovalState::Live
        }
    }
}

/// What the holder of a link is shown before answering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    /// The link.
    pub approval: ApprovalId,
    /// Its incident.
    pub incident: IncidentId,
    /// Whose it is.
    pub organisation: OrganisationId,
    /// The question.
    pub request: ApprovalRequest,
    /// What the link is good for now.
    pub state: ApprovalState,
    /// When it was made.
    pub issued_at: Millis,
    /// When it expires.
    pub expires_at: Millis,
    /// The answer that was given.
    pub decision: Option<HumanDecision>,
}

pub(super) fn from_row(row: &AnyRow) -> Result<ApprovalRow, StoreError> {
    Ok(ApprovalRow {
        id: value::parsed(row, "id")?,
        incident: value::parsed(row, "incident")?,
        request: value::parsed(row, "request")?,
        principal: value::parsed(row, "principal")?,
        issued_at: Millis(value::integer(row, "issued_at")?),
        expires_at: Millis(value::integer(row, "expires_at")?),
        revoked_at: value::optional_integer(row, "revoked_at")?.map(Millis),
        consumed_at: value::optional_integer(row, "consumed_at")?.map(Millis),
        decision: value::optional_word(row, "decision")?,
    })
}

impl Store {
    /// What a link is for. Changes nothing, whoever asks and however often.
    pub async fn approval_by_token(
        &self,
        token: &TokenHash,
        now: Millis,
    ) -> Result<Option<ApprovalView>, StoreError> {
        let mut work = self.reading("reading an approval link").await?;
        let Some((organisation, row)) = work.locate(token).await? else {
            return Ok(None);
        };
        let snapshot = work.snapshot(&organisation, &row.incident, now).await?;
        let request = snapshot.as_ref().and_then(|snapshot| snapshot.request());
        let Some(request) = request.filter(|request| request.digest() == row.request) else {
            let reason = format!(
                "{} is not for the question that {} asks",
                row.id, row.incident
            );
            return Err(StoreError::Unreadable {
                what: "an approval request",
                reason,
            });
        };
        Ok(Some(ApprovalView {
            request: request.clone(),
            state: row.state(now),
            approval: row.id,
            incident: row.incident,
            organisation,
            issued_at: row.issued_at,
            expires_at: row.expires_at,
            decision: row.decision,
        }))
    }

    /// Uses a link. In the same transaction the record of it becomes evidence, the answer becomes a fact of the incident,
    /// and the incident becomes due; a worker that has not seen the answer loses its commit.
    pub async fn consume(
        &self,
        token: &ApprovalToken,
        decision: HumanDecision,
        comment: Option<&str>,
        now: Millis,
    ) -> Result<Consumed, StoreError> {
        check_comment(comment)?;
        let mut work = self.writing("using an approval link").await?;
        let Some((organisation, located)) = work.locate(&token.hash()).await? else {
            return Ok(Consumed::Unknown);
        };
        let incident = located.incident;
        let lock = sqlx::query(LOCK)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        work.execute(lock).await?;
        let whose = (&organisation, &incident);
        if !work.use_link(whose, token, decision, comment, now).await? {
            return Ok(Consumed::Gone);
        }
        work.commit_and_nudge().await?;
        Ok(Consumed::Done { incident })
    }
}

/// Refuses a remark that a signed statement does not take.
pub(super) fn check_comment(comment: Option<&str>) -> Result<(), StoreError> {
    let too_long = comment.is_some_and(|comment| comment.len() > LONGEST_COMMENT);
    if too_long {
        return Err(StoreError::Value {
            what: "the remark",
            reason: "it is longer than 500 bytes",
        });
    }
    Ok(())
}

/// What a use leaves behind: the fact, and the record that it names.
fn written(record: &Consumption) -> (Fact, EvidenceDocument) {
    let fact = Fact::Consumed {
        approval: record.approval.clone(),
        decision: record.decision,
        evidence: record.digest(),
    };
    let document = EvidenceDocument {
        media_type: "application/json",
        bytes: record.to_bytes(),
    };
    (fact, document)
}

impl Work {
    /// Uses a link whose incident is locked: the record of it becomes evidence, the answer a fact. False when the link was
    /// used, revoked or has expired.
    pub(super) async fn use_link(
        &mut self,
        (organisation, incident): (&OrganisationId, &IncidentId),
        token: &ApprovalToken,
        decision: HumanDecision,
        comment: Option<&str>,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let consume = sqlx::query(CONSUME)
            .bind(now.0)
            .bind(decision.as_str())
            .bind(token.hash().0.to_string());
        let Some(row) = self.optional(consume).await? else {
            return Ok(false);
        };
        let record = Consumption {
            request: value::parsed(&row, "request")?,
            approval: value::parsed(&row, "id")?,
            token: token.hash(),
            nonce: None,
            issued_at: Millis(value::integer(&row, "issued_at")?),
            expires_at: Millis(value::integer(&row, "expires_at")?),
            consumed_at: now,
            decision,
            principal: value::parsed(&row, "principal")?,
            comment: comment.map(ToOwned::to_owned),
            seal: None,
        }
        .sealed_by(token);
        let (fact, document) = written(&record);
        self.keep(organisation, Some(incident), &document, now)
            .await?;
        self.add_fact(organisation, incident, &fact, now).await?;
        Ok(true)
    }

    async fn locate(
        &mut self,
        token: &TokenHash,
    ) -> Result<Option<(OrganisationId, ApprovalRow)>, StoreError> {
        let locate = sqlx::query(LOCATE).bind(token.0.to_string());
        let Some(row) = self.optional(locate).await? else {
            return Ok(None);
        };
        Ok(Some((
            value::parsed(&row, "organisation")?,
            from_row(&row)?,
        )))
    }
}
