//! A worker's commit: everything that a step gave, in one transaction, or nothing.

use std::time::Duration;

use super::statement::statements;
use super::work::lease_end;
use super::{Claim, Store, StoreError, Work, ledger, value};
use crate::attest::dsse::{IN_TOTO, pae};
use crate::change::Sha256Digest;
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId};
use crate::incident::{
    ClosedReason, Draft, MergeLock, NewLink, Outcome, SignedEnvelope, Snapshot, stage,
};

statements! {
    /// The fence: nothing is written unless the incident is as it was read and the lease is ours.
    ADVANCE = "UPDATE incident SET version = version + 1, next_fact = next_fact + $1, stage = $2, closed_reason = $3, quiet = $4, \
        updated_at = $5, wake_at = $6, wait_reason = $7, attempts = 0, lease_until = $8 \
        WHERE id = $9 AND organisation = $10 AND version = $11 AND lease_owner = $12 RETURNING next_fact - $1 AS ordinal";
    /// The place of a draft.
    ADVANCE_DRAFTS = "UPDATE chain SET next_draft = next_draft + 1, draft_head = $1 \
        WHERE incident = $2 AND next_draft = $3 RETURNING next_draft";
    /// A draft.
    INSERT_DRAFT = "INSERT INTO statement (incident, seq, role, statement, pae) VALUES ($1, $2, $3, $4, $5)";
    /// The place of a signed event, which must link to the one before.
    ADVANCE_CHAIN = "UPDATE chain SET next_seq = next_seq + 1, head = $1 \
        WHERE incident = $2 AND next_seq = $3 AND COALESCE(head, '') = $4 AND next_seq < next_draft RETURNING next_seq";
    /// Taken when it is free, ours, or of an incident that is over; never while merges are frozen.
    TAKE_LOCK = "UPDATE project SET merge_holder = $1 WHERE id = $2 AND organisation = $3 AND frozen IS NULL AND (merge_holder IS NULL \
        OR merge_holder = $1 OR EXISTS (SELECT 1 FROM incident h WHERE h.id = project.merge_holder \
        AND h.stage IN ('blocked', 'resolved', 'escalated', 'closed')))";
    /// Given back by its holder only.
    RELEASE_LOCK = "UPDATE project SET merge_holder = NULL WHERE id = $1 AND organisation = $2 AND merge_holder = $3";
    /// The first reason stays.
    FREEZE = "UPDATE project SET frozen = COALESCE(frozen, $1) WHERE id = $2 AND organisation = $3";
    /// No link of the incident can be used any more.
    pub(super) REVOKE = "UPDATE approval SET revoked_at = $1 WHERE incident = $2 AND organisation = $3 AND revoked_at IS NULL \
        AND consumed_at IS NULL";
    /// A link.
    INSERT_LINK = "INSERT INTO approval (id, organisation, incident, token, request, principal, issued_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Commit {
    /// Written. The incident as it is now; the lease goes on.
    Done(Box<Snapshot>),
    /// Nothing was written: somebody else has the lease, or something happened to the incident since it was read. Drop the
    /// result and look again.
    Lost,
    /// Nothing was written: another incident of the project merges, or the project is frozen. Try again later.
    LockHeld,
}

impl Store {
    /// Writes what a step gave, if the incident is still as `snapshot` shows it and the lease is still the claim's. The
    /// lease is kept for `keep` from now on.
    pub async fn commit(
        &self,
        claim: &Claim,
        snapshot: &Snapshot,
        outcome: &Outcome,
        now: Millis,
        keep: Duration,
    ) -> Result<Commit, StoreError> {
        let after = snapshot.after(outcome, now);
        let mut work = self.writing("committing a step").await?;
        let writing = Writing {
            before: snapshot,
            after: &after,
            outcome,
            now,
        };
        if claim.incident != snapshot.incident {
            let reason = format!("the lease is on {}", claim.incident);
            return Err(writing.inconsistent(reason));
        }
        if !writing.advance(&mut work, claim, keep).await? {
            return Ok(Commit::Lost);
        }
        if !writing.lock(&mut work).await? {
            return Ok(Commit::LockHeld);
        }
        writing.documents_and_links(&mut work).await?;
        writing.statements(&mut work).await?;
        writing.messages(&mut work).await?;
        work.commit_and_nudge().await?;
        Ok(Commit::Done(Box::new(after)))
    }
}

/// One commit under way.
struct Writing<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    outcome: &'a Outcome,
    now: Millis,
}

impl Writing<'_> {
    fn inconsistent(&self, reason: impl Into<String>) -> StoreError {
        StoreError::Inconsistent {
            incident: self.before.incident.clone(),
            reason: reason.into(),
        }
    }

    /// Passes the fence, and writes the facts at the places that it gives. False when the fence is closed.
    async fn advance(
        &self,
        work: &mut Work,
        claim: &Claim,
        keep: Duration,
    ) -> Result<bool, StoreError> {
        let closed = self.after.closed().map(|(reason, _)| reason);
        let quiet = matches!(closed, Some(ClosedReason::Rejected | ClosedReason::Expired));
        let pause = self.outcome.pause.as_ref();
        let reason = pause.map(|pause| value::message(&pause.reason));
        let advance = sqlx::query(ADVANCE)
            .bind(value::bigint("the facts", self.outcome.facts.len())?)
            .bind(stage(self.after).as_str())
            .bind(closed.map(ClosedReason::as_str))
            .bind(i64::from(quiet))
            .bind(self.now.0)
            .bind(pause.map_or(self.now, |pause| pause.until).0)
            .bind(reason.as_deref())
            .bind(lease_end(self.now, keep))
            .bind(self.before.incident.as_str())
            .bind(self.before.organisation.as_str())
            .bind(self.before.version)
            .bind(&claim.owner);
        let Some(row) = work.optional(advance).await? else {
            return Ok(false);
        };
        let first = value::count(&row, "ordinal")?;
        let new = &self.after.facts[self.before.facts.len()..];
        for (recorded, expected) in new.iter().zip(first..) {
            if recorded.ordinal != expected {
                let reason = format!(
                    "the next fact is number {expected}, the snapshot says {}",
                    recorded.ordinal
                );
                return Err(self.inconsistent(reason));
            }
            let known =
                |old: &crate::incident::RecordedFact| old.fact.kind() == recorded.fact.kind();
            let earlier = self.after.facts.iter().filter(|old| old.ordinal < expected);
            if !recorded.fact.repeats() && earlier.into_iter().any(known) {
                let reason = format!("the fact {:?} is known already", recorded.fact.kind());
                return Err(self.inconsistent(reason));
            }
            let ordinal = value::bigint("a fact's number", expected)?;
            work.insert_fact(&self.before.incident, ordinal, self.now, &recorded.fact)
                .await?;
        }
        Ok(true)
    }

    /// Takes or gives back the merge lock, and freezes. False when the lock cannot be had.
    async fn lock(&self, work: &mut Work) -> Result<bool, StoreError> {
        let incident = self.before.incident.as_str();
        let project = self.before.project.as_str();
        let organisation = self.before.organisation.as_str();
        match self.outcome.merge_lock {
            Some(MergeLock::Take) => {
                let take = sqlx::query(TAKE_LOCK)
                    .bind(incident)
                    .bind(project)
                    .bind(organisation);
                if work.execute(take).await? == 0 {
                    return Ok(false);
                }
            }
            Some(MergeLock::Release) => {
                let release = sqlx::query(RELEASE_LOCK)
                    .bind(project)
                    .bind(organisation)
                    .bind(incident);
                work.execute(release).await?;
            }
            None => {}
        }
        if let Some(reason) = &self.outcome.freeze {
            let reason = value::message(reason);
            let freeze = sqlx::query(FREEZE)
                .bind(reason.as_ref())
                .bind(project)
                .bind(organisation);
            work.execute(freeze).await?;
        }
        Ok(true)
    }

    /// Drafts, then the signed event.
    async fn statements(&self, work: &mut Work) -> Result<(), StoreError> {
        for draft in &self.outcome.drafts {
            self.draft(work, draft).await?;
        }
        match &self.outcome.envelope {
            Some(envelope) => self.append(work, envelope).await,
            None => Ok(()),
        }
    }

    async fn draft(&self, work: &mut Work, draft: &Draft) -> Result<(), StoreError> {
        if Sha256Digest::of(&pae(IN_TOTO, &draft.statement)) != draft.pae {
            let reason = format!("draft {} has another digest than it says", draft.seq);
            return Err(self.inconsistent(reason));
        }
        let seq = value::bigint("a draft's number", draft.seq)?;
        let advance = sqlx::query(ADVANCE_DRAFTS)
            .bind(draft.pae.to_string())
            .bind(self.before.incident.as_str())
            .bind(seq);
        if work.optional(advance).await?.is_none() {
            let reason = format!("draft {} is not the next one", draft.seq);
            return Err(self.inconsistent(reason));
        }
        let insert = sqlx::query(INSERT_DRAFT)
            .bind(self.before.incident.as_str())
            .bind(seq)
            .bind(draft.role.name())
            .bind(draft.statement.as_slice())
            .bind(draft.pae.to_string());
        work.execute(insert).await.map(|_| ())
    }

    async fn append(&self, work: &mut Work, signed: &SignedEnvelope) -> Result<(), StoreError> {
        let incident = &self.before.incident;
        let seq = value::bigint("an event's number", signed.seq)?;
        let drafted = work
            .draft(&self.before.organisation, incident, signed.seq)
            .await?;
        let row = ledger::derived(incident, seq, &signed.envelope, drafted.as_ref())?;
        let advance = sqlx::query(ADVANCE_CHAIN)
            .bind(&row.pae)
            .bind(incident.as_str())
            .bind(seq)
            .bind(row.prev.as_deref().unwrap_or_default());
        if work.optional(advance).await?.is_none() {
            let reason = format!(
                "event {seq} is not the next one of the chain, or does not link to the one before"
            );
            return Err(self.inconsistent(reason));
        }
        work.append(&self.before.organisation, &row, self.now)
            .await?;
        work.let_go(&self.before.organisation, &row).await
    }

    async fn documents_and_links(&self, work: &mut Work) -> Result<(), StoreError> {
        for document in &self.outcome.evidence {
            work.keep(
                &self.before.organisation,
                Some(&self.before.incident),
                document,
                self.now,
            )
            .await?;
        }
        let over = stage(self.after).is_final();
        if over || self.outcome.link.is_some() {
            let revoke = sqlx::query(REVOKE)
                .bind(self.now.0)
                .bind(self.before.incident.as_str())
                .bind(self.before.organisation.as_str());
            work.execute(revoke).await?;
        }
        match &self.outcome.link {
            Some(_) if over => Err(self.inconsistent("an incident that is over gets no new link")),
            Some(link) => {
                let (organisation, incident) = (&self.before.organisation, &self.before.incident);
                work.link(organisation, incident, link).await
            }
            None => Ok(()),
        }
    }

    async fn messages(&self, work: &mut Work) -> Result<(), StoreError> {
        let incident = &self.before.incident;
        let organisation = &self.before.organisation;
        for notice in &self.outcome.notices {
            work.notify(organisation, incident, notice, self.now)
                .await?;
        }
        for event in &self.outcome.audit {
            work.audit(
                organisation,
                Some(incident),
                Some(&self.before.project),
                event,
                self.now,
            )
            .await?;
        }
        Ok(())
    }
}

impl Work {
    /// Writes a link down.
    pub(super) async fn link(
        &mut self,
        organisation: &OrganisationId,
        incident: &IncidentId,
        link: &NewLink,
    ) -> Result<(), StoreError> {
        let insert = sqlx::query(INSERT_LINK)
            .bind(link.approval.as_str())
            .bind(organisation.as_str())
            .bind(incident.as_str())
            .bind(link.token.0.to_string())
            .bind(link.request.to_string())
            .bind(link.principal.as_str())
            .bind(link.issued_at.0)
            .bind(link.expires_at.0);
        self.execute(insert).await.map(|_| ())
    }
}
