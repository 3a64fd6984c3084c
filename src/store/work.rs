//! Claiming incidents: who works on what, and until when.

use std::time::Duration;

use super::statement::statements;
use super::{Store, StoreError, value};
use crate::clock::Millis;
use crate::id::{IncidentId, OrganisationId, ProjectId};

statements! {
    /// The heartbeat.
    EXTEND = "UPDATE incident SET lease_until = $1 WHERE id = $2 AND lease_owner = $3";
    /// Ends the lease and says when to look again, unless something happened that the worker has not seen.
    REST = "UPDATE incident SET lease_owner = NULL, lease_until = NULL, \
        wake_at = CASE WHEN version = $1 THEN $2 ELSE wake_at END, \
        wait_reason = CASE WHEN version = $1 THEN $3 ELSE wait_reason END, \
        attempts = CASE WHEN version = $1 THEN $4 ELSE attempts END \
        WHERE id = $5 AND lease_owner = $6";
    /// Ends the lease.
    RELEASE = "UPDATE incident SET lease_owner = NULL, lease_until = NULL WHERE id = $1 AND lease_owner = $2";
}

/// The right to work on one incident until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The incident.
    pub incident: IncidentId,
    /// Whose it is.
    pub organisation: OrganisationId,
    /// Its project.
    pub project: ProjectId,
    /// Who claimed it.
    pub owner: String,
    /// How often it was claimed since the last progress, this time included: a step that kills its worker counts too.
    pub attempts: u32,
}

/// When a lease that begins now ends.
pub(super) fn lease_end(now: Millis, lease: Duration) -> i64 {
    let millis = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
    now.plus_millis(millis).0
}

impl Store {
    /// Claims the incident that has been due longest and that nobody holds. `owner` must be unique to one task of one
    /// process: the lease is all that tells two of them apart.
    pub async fn claim(
        &self,
        owner: &str,
        now: Millis,
        lease: Duration,
    ) -> Result<Option<Claim>, StoreError> {
        let mut work = self.writing("claiming an incident").await?;
        let claim = sqlx::query(self.dialect.claim())
            .bind(value::exact("the worker's name", owner)?)
            .bind(lease_end(now, lease))
            .bind(now.0);
        let Some(row) = work.optional(claim).await? else {
            return Ok(None);
        };
        let claim = Claim {
            incident: value::parsed(&row, "id")?,
            organisation: value::parsed(&row, "organisation")?,
            project: value::parsed(&row, "project")?,
            owner: owner.to_owned(),
            attempts: u32::try_from(value::count(&row, "attempts")?).unwrap_or(u32::MAX),
        };
        work.commit().await?;
        Ok(Some(claim))
    }

    /// The heartbeat: the lease lasts from now on. False when somebody else has taken over.
    pub async fn extend(
        &self,
        claim: &Claim,
        now: Millis,
        lease: Duration,
    ) -> Result<bool, StoreError> {
        let mut work = self.writing("extending a lease").await?;
        let extend = sqlx::query(EXTEND)
            .bind(lease_end(now, lease))
            .bind(claim.incident.as_str())
            .bind(&claim.owner);
        let kept = work.execute(extend).await? == 1;
        work.commit().await?;
        Ok(kept)
    }

    /// Gives the incident back until `wake_at`; with none, until something happens to it. When its version is not the one
    /// that the worker has seen, something did, and it stays due. False when somebody else has taken over.
    pub async fn rest(
        &self,
        claim: &Claim,
        version: i64,
        wake_at: Option<Millis>,
        reason: &str,
        attempts: u32,
    ) -> Result<bool, StoreError> {
        let mut work = self.writing("letting an incident rest").await?;
        let reason = value::message(reason);
        let rest = sqlx::query(REST)
            .bind(version)
            .bind(wake_at.map(|at| at.0))
            .bind(wake_at.map(|_| reason.as_ref()))
            .bind(i64::from(attempts))
            .bind(claim.incident.as_str())
            .bind(&claim.owner);
        let ours = work.execute(rest).await? == 1;
        work.commit().await?;
        Ok(ours)
    }

    /// Gives the incident back as it is: due at once, if it was due.
    pub async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        let mut work = self.writing("releasing a lease").await?;
        let release = sqlx::query(RELEASE)
            .bind(claim.incident.as_str())
            .bind(&claim.owner);
        work.execute(release).await?;
        work.commit().await
    }
}
