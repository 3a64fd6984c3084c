//! Health checks: which are due, who has them, and how each endpoint stood.

use std::time::Duration;

use super::statement::statements;
use super::work::lease_end;
use super::{Store, StoreError, value};
use crate::clock::Millis;
use crate::id::{OrganisationId, ProjectId};

statements! {
    /// Projects whose endpoints are watched.
    HEALTH_PROJECTS = "SELECT id, health FROM project WHERE watch = 'health' AND state = 'confirmed' AND removed_at IS NULL ORDER BY id";
    /// The checks that are known.
    HEALTH_NAMES = "SELECT project, name, next_at FROM health_watch ORDER BY project, name";
    /// A check that was never made.
    ADD_HEALTH = "INSERT INTO health_watch (project, name, state, next_at) VALUES ($1, $2, '', $3) \
        ON CONFLICT (project, name) DO NOTHING";
    /// Whether any is due. Asked before the database is locked for writing.
    ANY_HEALTH_DUE = "SELECT 1 AS due FROM health_watch h JOIN project p ON p.id = h.project \
        WHERE h.next_at <= $1 AND (h.lease_until IS NULL OR h.lease_until <= $1) \
        AND p.watch = 'health' AND p.state = 'confirmed' AND p.removed_at IS NULL LIMIT 1";
    /// One that is planned too late is due.
    ADVANCE_HEALTH = "UPDATE health_watch SET next_at = $1, lease_owner = NULL, lease_until = NULL \
        WHERE project = $2 AND name = $3 AND next_at > $1";
    /// Hands out due checks of confirmed projects. The outer condition is asked again for a row that another process has just
    /// taken.
    CLAIM_HEALTH = "UPDATE health_watch SET lease_owner = $1, lease_until = $2 \
        WHERE next_at <= $3 AND (lease_until IS NULL OR lease_until <= $3) AND (project, name) IN \
        (SELECT h.project, h.name FROM health_watch h JOIN project p ON p.id = h.project \
        WHERE h.next_at <= $3 AND (h.lease_until IS NULL OR h.lease_until <= $3) \
        AND p.watch = 'health' AND p.state = 'confirmed' AND p.removed_at IS NULL \
        ORDER BY h.next_at, h.project, h.name LIMIT $4) \
        RETURNING project, name, state, (SELECT p.organisation FROM project p WHERE p.id = health_watch.project) AS organisation";
    /// Keeps what a check came to, and the claim with it.
    KEEP_HEALTH = "UPDATE health_watch SET state = $1 WHERE project = $2 AND name = $3 AND lease_owner = $4";
    /// Ends the claim.
    REST_HEALTH = "UPDATE health_watch SET state = $1, next_at = $2, lease_owner = NULL, lease_until = NULL \
        WHERE project = $3 AND name = $4 AND lease_owner = $5";
    /// Ends the claim and changes nothing else.
    RELEASE_HEALTH = "UPDATE health_watch SET next_at = $1, lease_owner = NULL, lease_until = NULL \
        WHERE project = $2 AND name = $3 AND lease_owner = $4";
    /// Ends every claim of a name; the checks are due as they were.
    GIVE_BACK_HEALTH = "UPDATE health_watch SET lease_owner = NULL, lease_until = NULL WHERE lease_owner = $1";
    /// How the endpoints of a project stand.
    HEALTH_OF = "SELECT h.name, h.state, h.next_at FROM health_watch h JOIN project p ON p.id = h.project \
        WHERE p.organisation = $1 AND h.project = $2 ORDER BY h.name";
}

/// The right to make one check until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthClaim {
    /// Whose it is.
    pub organisation: OrganisationId,
    /// The project.
    pub project: ProjectId,
    /// The check.
    pub name: String,
    /// How the endpoint stood, as text; empty when it was never asked.
    pub state: String,
    /// Who claimed it.
    pub owner: String,
}

/// How one endpoint stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthRow {
    /// The check.
    pub name: String,
    /// The state, as text; empty when it was never asked.
    pub state: String,
    /// When it is asked next.
    pub next_at: Millis,
}

impl Store {
    /// Confirmed projects of every organisation whose endpoints are watched, with their checks as JSON.
    pub async fn health_projects(&self) -> Result<Vec<(ProjectId, String)>, StoreError> {
        let mut work = self.reading("listing the watched endpoints").await?;
        let rows = work.all(sqlx::query(HEALTH_PROJECTS)).await?;
        rows.iter()
            .map(|row| Ok((value::parsed(row, "id")?, value::text(row, "health")?)))
            .collect()
    }

    /// Every check that was ever planned: its project, its name and when it is due.
    pub async fn health_names(&self) -> Result<Vec<(ProjectId, String, Millis)>, StoreError> {
        let mut work = self.reading("listing the health checks").await?;
        let rows = work.all(sqlx::query(HEALTH_NAMES)).await?;
        rows.iter()
            .map(|row| {
                let next_at = Millis(value::integer(row, "next_at")?);
                Ok((
                    value::parsed(row, "project")?,
                    value::text(row, "name")?,
                    next_at,
                ))
            })
            .collect()
    }

    /// Plans checks that were never made, to be made from `now` on; those that are planned already stay as they are.
    pub async fn add_health(
        &self,
        checks: &[(ProjectId, String)],
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("planning health checks").await?;
        for (project, name) in checks {
            let add = sqlx::query(ADD_HEALTH)
                .bind(project.as_str())
                .bind(value::exact("the check's name", name)?)
                .bind(now.0);
            work.execute(add).await?;
        }
        work.commit().await
    }

    /// Makes checks due that are planned later.
    pub async fn advance_health(
        &self,
        checks: &[(ProjectId, String)],
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("making health checks due").await?;
        for (project, name) in checks {
            let advance = sqlx::query(ADVANCE_HEALTH)
                .bind(now.0)
                .bind(project.as_str())
                .bind(name);
            work.execute(advance).await?;
        }
        work.commit().await
    }

    /// Claims up to `most` checks that are due, those that are due longest first. `owner` must be unique to this call.
    pub async fn claim_health(
        &self,
        owner: &str,
        now: Millis,
        lease: Duration,
        most: usize,
    ) -> Result<Vec<HealthClaim>, StoreError> {
        const DOING: &str = "claiming health checks";
        // Break it: leave the question out (`store::watched::while_nothing_is_due_nobody_waits_for_the_lock`).
        let mut work = self.reading(DOING).await?;
        let due = sqlx::query(ANY_HEALTH_DUE).bind(now.0);
        if work.optional(due).await?.is_none() {
            return Ok(Vec::new());
        }
        drop(work);
        let mut work = self.writing(DOING).await?;
        let claim = sqlx::query(CLAIM_HEALTH)
            .bind(value::exact("the watch's name", owner)?)
            .bind(lease_end(now, lease))
            .bind(now.0)
            .bind(value::bigint("the number of checks", most)?);
        let rows = work.all(claim).await?;
        let claims = rows
            .iter()
            .map(|row| {
                Ok(HealthClaim {
                    organisation: value::parsed(row, "organisation")?,
                    project: value::parsed(row, "project")?,
                    name: value::text(row, "name")?,
                    state: value::text(row, "state")?,
                    owner: owner.to_owned(),
                })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        work.commit().await?;
        Ok(claims)
    }

    /// Keeps what a check came to before anybody is told of it. False when somebody else has taken over: nothing is written
    /// then, and nothing may be told.
    pub async fn keep_health(&self, claim: &HealthClaim, state: &str) -> Result<bool, StoreError> {
        let mut work = self.writing("keeping a health check").await?;
        let keep = sqlx::query(KEEP_HEALTH)
            .bind(value::exact("the check's state", state)?)
            .bind(claim.project.as_str())
            .bind(&claim.name)
            .bind(&claim.owner);
        let ours = work.execute(keep).await? == 1;
        work.commit().await?;
        Ok(ours)
    }

    /// Keeps what a check came to, and gives it back until `next_at`. False when somebody else has taken over.
    pub async fn rest_health(
        &self,
        claim: &HealthClaim,
        state: &str,
        next_at: Millis,
    ) -> Result<bool, StoreError> {
        let mut work = self.writing("ending a health check").await?;
        let rest = sqlx::query(REST_HEALTH)
            .bind(value::exact("the check's state", state)?)
            .bind(next_at.0)
            .bind(claim.project.as_str())
            .bind(&claim.name)
            .bind(&claim.owner);
        let ours = work.execute(rest).await? == 1;
        work.commit().await?;
        Ok(ours)
    }

    /// Gives a check back until `next_at`, as it was.
    pub async fn release_health(
        &self,
        claim: &HealthClaim,
        next_at: Millis,
    ) -> Result<(), StoreError> {
        let mut work = self.writing("giving a health check back").await?;
        let release = sqlx::query(RELEASE_HEALTH)
            .bind(next_at.0)
            .bind(claim.project.as_str())
            .bind(&claim.name)
            .bind(&claim.owner);
        work.execute(release).await?;
        work.commit().await
    }

    /// Gives back every check that was claimed under this name, due as it was.
    pub async fn give_back_health(&self, owner: &str) -> Result<(), StoreError> {
        let mut work = self.writing("giving health checks back").await?;
        work.execute(sqlx::query(GIVE_BACK_HEALTH).bind(owner))
            .await?;
        work.commit().await
    }

    /// How the endpoints of a project stand.
    pub async fn health_of(
        &self,
        organisation: &OrganisationId,
        project: &ProjectId,
    ) -> Result<Vec<HealthRow>, StoreError> {
        let mut work = self.reading("reading the health checks").await?;
        let of = sqlx::query(HEALTH_OF)
            .bind(organisation.as_str())
            .bind(project.as_str());
        let rows = work.all(of).await?;
        rows.iter()
            .map(|row| {
                Ok(HealthRow {
                    name: value::text(row, "name")?,
                    state: value::text(row, "state")?,
                    next_at: Millis(value::integer(row, "next_at")?),
                })
            })
            .collect()
    }
}
