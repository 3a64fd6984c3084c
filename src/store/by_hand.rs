//! What a person does to an incident on this machine: wake it, have a new link sent, answer without one.

use super::approval::{self, LOCK};
use super::commit::REVOKE;
use super::statement::statements;
use super::{Store, StoreError, Work};
use crate::approve::{ApprovalRequest, ApprovalToken, HumanDecision, Principal};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{ApprovalId, IncidentId, OrganisationId};
use crate::incident::{AuditEvent, NewLink, Snapshot, Step, next, stage};

statements! {
    /// Ends the rest and forgets the failures. The version stays: a step under way is not lost to it.
    WAKE = "UPDATE incident SET wake_at = $1, wait_reason = NULL, attempts = 0 WHERE id = $2 AND organisation = $3 \
        RETURNING CAST(CASE WHEN lease_until > $1 THEN 1 ELSE 0 END AS BIGINT) AS held";
    /// The same, and fences whoever read the incident before.
    FENCE = "UPDATE incident SET version = version + 1, updated_at = $1, wake_at = $1, wait_reason = NULL, attempts = 0 \
        WHERE id = $2 AND organisation = $3";
}

/// What waking an incident came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Woken {
    /// It is due now.
    Due,
    /// It is due now, and a worker is at it already. When that attempt fails, it rests again.
    AtWork,
    /// Nothing is left to do about it. Nothing was written.
    Over,
}

/// An answer that the person who was asked gives on this machine.
#[derive(Debug, Clone, Copy)]
pub struct LocalAnswer<'a> {
    /// What it is about.
    pub incident: &'a IncidentId,
    /// Digest of the question as the person saw it.
    pub request: Sha256Digest,
    /// Who answers.
    pub principal: &'a Principal,
    /// The answer.
    pub decision: HumanDecision,
    /// A remark of at most 500 bytes.
    pub comment: Option<&'a str>,
    /// Identifier of the link that is made and used in one.
    pub approval: &'a ApprovalId,
    /// Its nonce.
    pub token: &'a ApprovalToken,
}

impl Store {
    /// Makes an incident due now, with its failed attempts forgotten.
    ///
    /// # Errors
    /// The database; or there is no such incident.
    pub async fn wake(
        &self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        by: &str,
        now: Millis,
    ) -> Result<Woken, StoreError> {
        let mut work = self.writing("waking an incident").await?;
        let snapshot = work.locked(organisation, incident, now).await?;
        if matches!(next(&snapshot, now), Step::Done | Step::AwaitRecovery) {
            return Ok(Woken::Over);
        }
        let wake = sqlx::query(WAKE)
            .bind(now.0)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        let row = work.one(wake).await?;
        let held = super::value::integer(&row, "held")? != 0;
        let detail = format!("by {by}; its failed attempts are forgotten");
        work.remark(&snapshot, "woken-by-hand", detail, now).await?;
        work.commit_and_nudge().await?;
        Ok(if held { Woken::AtWork } else { Woken::Due })
    }

    /// Revokes the link of a question that nobody has answered, so that a worker makes and sends another one.
    ///
    /// # Errors
    /// The database; or nothing is asked that could be asked again: [`StoreError::Refused`] says why.
    pub async fn renew_link(
        &self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        by: &str,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("revoking an approval link").await?;
        let snapshot = work.locked(organisation, incident, now).await?;
        open_question(&snapshot, work.doing, now)?;
        work.revoke(organisation, incident, now).await?;
        let fence = sqlx::query(FENCE)
            .bind(now.0)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        work.execute(fence).await?;
        let detail = format!("by {by}; the older link no longer works");
        work.remark(&snapshot, "link-asked-for", detail, now)
            .await?;
        work.commit_and_nudge().await
    }

    /// Answers a question in the place of its link: a link is made and used in one transaction, under the conditions that
    /// hold for every link, and the one that was sent is revoked.
    ///
    /// That the principal is who they say is for the caller to know.
    ///
    /// # Errors
    /// The database; or the question is not open, is another one, or was put to somebody else: [`StoreError::Refused`].
    pub async fn answer_locally(
        &self,
        organisation: &OrganisationId,
        answer: &LocalAnswer<'_>,
        now: Millis,
    ) -> Result<(), StoreError> {
        approval::check_comment(answer.comment)?;
        let mut work = self.writing("answering an approval request").await?;
        let incident = answer.incident;
        let snapshot = work.locked(organisation, incident, now).await?;
        let request = open_question(&snapshot, work.doing, now)?;
        let refused = |reason: String| refusal(work.doing, incident, reason);
        if request.principal != *answer.principal {
            let reason = format!("{} was asked, not {}", request.principal, answer.principal);
            return Err(refused(reason));
        }
        if request.digest() != answer.request {
            let reason = "the question is not the one that was looked at; look at it again";
            return Err(refused(reason.to_owned()));
        }
        let link = NewLink {
            approval: answer.approval.clone(),
            token: answer.token.hash(),
            request: answer.request,
            principal: answer.principal.clone(),
            issued_at: now,
            expires_at: request.binding.expires_at,
        };
        work.revoke(organisation, incident, now).await?;
        work.link(organisation, incident, &link).await?;
        let used = work
            .use_link(
                (organisation, incident),
                answer.token,
                answer.decision,
                answer.comment,
                now,
            )
            .await?;
        if !used {
            return Err(refusal(work.doing, incident, "its time is over"));
        }
        let detail = format!("by {} on this machine, without a link", answer.principal);
        work.remark(&snapshot, "answered-locally", detail, now)
            .await?;
        work.commit_and_nudge().await
    }
}

fn refusal(
    doing: &'static str,
    incident: &IncidentId,
    reason: impl std::fmt::Display,
) -> StoreError {
    StoreError::Refused {
        doing,
        reason: format!("{incident}: {reason}; nothing was written"),
    }
}

/// The question that still waits for its answer, or why there is none.
fn open_question<'a>(
    snapshot: &'a Snapshot,
    doing: &'static str,
    now: Millis,
) -> Result<&'a ApprovalRequest, StoreError> {
    let refused = |reason: String| Err(refusal(doing, &snapshot.incident, reason));
    let Some(request) = snapshot.request() else {
        return refused(format!(
            "nobody is asked about it (it is {}); `caretaker incident explain` says what it waits for",
            stage(snapshot)
        ));
    };
    if let Some(decision) = snapshot.answer() {
        return refused(format!("it was answered already ({})", decision.as_str()));
    }
    let over = stage(snapshot).is_final() || snapshot.recovered().is_some();
    if over {
        return refused("it is over; `caretaker incident explain` says how it ended".to_owned());
    }
    if now >= request.binding.expires_at {
        return refused(format!(
            "the time for an answer ended at {}; when the job fails again, it is asked anew",
            request.binding.expires_at
        ));
    }
    Ok(request)
}

impl Work {
    /// Locks an incident against everything else that writes to it, and reads it.
    async fn locked(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        now: Millis,
    ) -> Result<Snapshot, StoreError> {
        let lock = sqlx::query(LOCK)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        self.execute(lock).await?;
        let snapshot = self.snapshot(organisation, incident, now).await?;
        snapshot.ok_or_else(|| {
            let reason =
                "there is no such incident; `caretaker incident list` shows those there are";
            refusal(self.doing, incident, reason)
        })
    }

    async fn revoke(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        now: Millis,
    ) -> Result<(), StoreError> {
        let revoke = sqlx::query(REVOKE)
            .bind(now.0)
            .bind(incident.as_str())
            .bind(organisation.as_str());
        self.execute(revoke).await.map(|_| ())
    }

    /// What was done by hand stands in the history.
    async fn remark(
        &mut self,
        snapshot: &Snapshot,
        kind: &'static str,
        detail: String,
        now: Millis,
    ) -> Result<(), StoreError> {
        let event = AuditEvent { kind, detail };
        let (organisation, project) = (&snapshot.organisation, &snapshot.project);
        let incident = Some(&snapshot.incident);
        self.audit(organisation, incident, Some(project), &event, now)
            .await
    }
}
